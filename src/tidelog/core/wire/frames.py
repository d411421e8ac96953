"""Frames: cutting a byte stream into requests without trusting a single length in it.

All connections read into one shared scratch buffer, so a connection that is between two requests
holds no memory at all. Only a request that has arrived in part gets a buffer of its own, and may
use little of it at first, then twice as much each time as bytes really arrive. What all connections
together may use is the `PartialFrameBudget`; a reader that may not use more is *starved* and must
not be read from until `PartialFrameBudget.feed` names it.

    reader.buffer()       where the next bytes go        (once per read)
    reader.wrote(count)   so many bytes came
    reader.next_frame()   a whole request, or None: call it until None, or call `park`
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

from tidelog.core.model.exceptions import TidelogError

SIZE_BYTES = 4
SCRATCH_BYTES = 64 * 1024
FIRST_BYTES = 4 * 1024
"""What a connection gets at first for a request that came in part."""
SHORT_BYTES_MAX = 4 * 1024 * 1024
"""Buffers of short requests are used again. A connection that finished one of some length is
trusted with as much at once the next time."""
POOL_BYTES_MAX = 16 * 1024 * 1024

assert FIRST_BYTES < SCRATCH_BYTES < SHORT_BYTES_MAX <= POOL_BYTES_MAX

_size_at = Struct(">i").unpack_from


class BadFrame(TidelogError):
    """The peer does not speak our protocol, or asks for too much: drop the connection."""


class PartialFrameBudget:
    """The bytes that unfinished requests of all connections may use together.

    A part as long as the longest request is held back for one reader at a time. So however many
    requests have stopped half-way, one can always be finished, which makes room for the next. Of
    the rest, long requests get no more than half: short ones are not kept waiting by them.
    """

    def __init__(
        self,
        bytes_max: int,
        *,
        request_bytes_max: int,
        new_buffer: Callable[[int], memoryview] = lambda size: memoryview(bytearray(size)),
    ) -> None:
        """`new_buffer` had better give memory that costs nothing until it is written to."""
        reserve_bytes = max(request_bytes_max + SIZE_BYTES, SHORT_BYTES_MAX)
        self.scratch = memoryview(bytearray(SCRATCH_BYTES))
        self.waiting: dict[FrameReader, None] = {}
        """Starved readers, longest wait first."""
        self.pooled_bytes = 0
        """What the pool keeps for the next short request that comes in parts."""
        self._new_buffer = new_buffer
        self._pool: dict[int, list[memoryview]] = {}
        self._has_more_room = False
        """Something was given back since starved readers were last asked."""
        self._short_bytes_max = max(0, bytes_max - reserve_bytes)
        self._long_bytes_max = self._short_bytes_max // 2
        self._ordinary_bytes = 0
        self._reserve_bytes = 0
        self._reserve_holder: FrameReader | None = None

    @property
    def used_bytes(self) -> int:
        return self._ordinary_bytes + self._reserve_bytes

    def feed(self) -> list[FrameReader]:
        """Let starved readers use more, as far as there is room: these may be read from again."""
        if not self._has_more_room:
            return []
        self._has_more_room = False
        return [reader for reader in list(self.waiting) if reader.try_to_grow()]

    def trim(self) -> None:
        """Free the pooled buffers: for quiet moments."""
        self._pool.clear()
        self.pooled_bytes = 0

    def grant(self, reader: FrameReader, size_bytes: int, *, is_short: bool) -> bool:
        """Whether this reader may use this many bytes more."""
        limit_bytes = self._short_bytes_max if is_short else self._long_bytes_max
        if self._ordinary_bytes + size_bytes <= limit_bytes:
            self._ordinary_bytes += size_bytes
            return True
        if self._reserve_holder is None:
            self._reserve_holder = reader
        if self._reserve_holder is reader:
            self._reserve_bytes += size_bytes
            return True
        return False

    def force(self, size_bytes: int) -> None:
        """What is needed to keep bytes that have already been received."""
        self._ordinary_bytes += size_bytes

    def leave(self, reader: FrameReader, size_bytes: int) -> None:
        """The reader uses none of its bytes any more."""
        if self._reserve_holder is reader:
            size_bytes -= self._reserve_bytes
            self._reserve_bytes = 0
            self._reserve_holder = None
        self._ordinary_bytes -= size_bytes
        assert self._ordinary_bytes >= 0
        self._has_more_room = True
        self.waiting.pop(reader, None)

    def take_buffer(self, size_bytes: int) -> memoryview:
        """A buffer of at least this size; its length alone costs no memory."""
        if size_bytes > SHORT_BYTES_MAX:
            return self._new_buffer(size_bytes)
        size_bytes = _pooled_size(size_bytes)
        pooled = self._pool.get(size_bytes)
        if pooled:
            self.pooled_bytes -= size_bytes
            return pooled.pop()
        return self._new_buffer(size_bytes)

    def give_back_buffer(self, buffer: memoryview) -> None:
        size_bytes = len(buffer)
        if size_bytes <= SHORT_BYTES_MAX and self.pooled_bytes + size_bytes <= POOL_BYTES_MAX:
            self._pool.setdefault(size_bytes, []).append(buffer)
            self.pooled_bytes += size_bytes


class FrameReader:
    """One connection's bytes on their way to becoming frames.

    Invariant: between two reads it either has no bytes or has them in a buffer of its own, never in
    the shared scratch buffer.
    """

    __slots__ = (
        "_budget",
        "_end",
        "_frame_bytes",
        "_own",
        "_proven_bytes",
        "_request_bytes_max",
        "_start",
        "_view",
        "held_bytes",
        "starved",
    )

    def __init__(self, request_bytes_max: int, budget: PartialFrameBudget) -> None:
        self.starved = False
        self.held_bytes = 0
        """How much of its own buffer it may use: its share of the budget."""
        self._request_bytes_max = request_bytes_max
        self._budget = budget
        self._own: memoryview | None = None
        self._view = budget.scratch
        self._start = 0
        self._end = 0
        self._frame_bytes = 0
        """Where reading into the own buffer stops: at the end of the request, if that is known."""
        self._proven_bytes = FIRST_BYTES

    def buffer(self) -> memoryview:
        """Where the next bytes are to be written. Never empty. Frames given before are void."""
        if self._own is None:
            return self._view
        assert not self.starved, "a starved reader was read from"
        return self._own[self._end : min(self._frame_bytes, self.held_bytes)]

    def wrote(self, count: int) -> None:
        """This many bytes were written at the beginning of `buffer()`."""
        self._end += count

    def next_frame(self) -> memoryview | None:
        """The next whole request without its size, writable, valid until the next call."""
        start = self._start
        available = self._end - start
        if available < SIZE_BYTES:
            self._keep_rest(None)
            return None
        size: int = _size_at(self._view, start)[0]
        if size < 0 or size > self._request_bytes_max:
            raise BadFrame(f"size {size} is not within 0..{self._request_bytes_max}")
        if available - SIZE_BYTES < size:
            self._keep_rest(size + SIZE_BYTES)
            return None
        self._start = end = start + SIZE_BYTES + size
        if size > self._proven_bytes:
            self._proven_bytes = min(size + SIZE_BYTES, SHORT_BYTES_MAX)
        return self._view[start + SIZE_BYTES : end]

    def park(self) -> None:
        """Stop in the middle of the frames: keep the rest, whole frames too, for later."""
        if self._own is None:
            self._keep_rest(None)

    def try_to_grow(self) -> bool:
        """Only for a starved reader; False means that it has to wait on."""
        assert self.starved
        self._grow()
        return not self.starved

    def close(self) -> None:
        """Give everything back."""
        if self._own is not None:
            self._budget.give_back_buffer(self._own)
            self._budget.leave(self, self.held_bytes)
            self._own = None
            self._view = self._budget.scratch
            self.held_bytes = 0
            self.starved = False
        self._start = self._end = 0

    def _keep_rest(self, frame_bytes: int | None) -> None:
        """`frame_bytes`: the length of the request that the rest begins, if that is known."""
        rest_bytes = self._end - self._start
        if rest_bytes == 0:
            self.close()
            return
        if frame_bytes is None:
            frame_bytes = max(rest_bytes, FIRST_BYTES)
        if self._own is None:
            self._use_own_buffer(rest_bytes, min(frame_bytes, self._proven_bytes))
        elif self._start:
            self._view[:rest_bytes] = self._view[self._start : self._end]
        self._start = 0
        self._end = rest_bytes
        self._frame_bytes = frame_bytes
        if rest_bytes == self.held_bytes < frame_bytes:
            self._grow()

    def _use_own_buffer(self, rest_bytes: int, trusted_bytes: int) -> None:
        """The rest is always kept: the scratch buffer belongs to everybody."""
        size_bytes = _pooled_size(trusted_bytes)
        if size_bytes <= SCRATCH_BYTES or not self._budget.grant(self, size_bytes, is_short=True):
            size_bytes = _pooled_size(rest_bytes)
            self._budget.force(size_bytes)
        own = self._budget.take_buffer(size_bytes)
        own[:rest_bytes] = self._view[self._start : self._end]
        self._own = self._view = own
        self.held_bytes = size_bytes

    def _grow(self) -> None:
        """Its buffer is full: use twice as much, in a longer buffer if need be, or starve."""
        assert self._own is not None and self._end == self.held_bytes
        is_short = self._frame_bytes <= SHORT_BYTES_MAX
        wanted_bytes = min(self._frame_bytes, max(2 * self._end, self._proven_bytes))
        if wanted_bytes <= SHORT_BYTES_MAX:
            wanted_bytes = _pooled_size(wanted_bytes)
        more_bytes = wanted_bytes - self.held_bytes
        self.starved = not self._budget.grant(self, more_bytes, is_short=is_short)
        if self.starved:
            self._budget.waiting[self] = None
            return
        self._budget.waiting.pop(self, None)
        self.held_bytes = wanted_bytes
        if wanted_bytes > len(self._own):
            needed_bytes = self._frame_bytes if wanted_bytes > SHORT_BYTES_MAX else wanted_bytes
            longer = self._budget.take_buffer(needed_bytes)
            longer[: self._end] = self._own[: self._end]
            self._budget.give_back_buffer(self._own)
            self._own = self._view = longer


def _pooled_size(size_bytes: int) -> int:
    """The next power of two, so that pooled buffers fit many requests."""
    return max(FIRST_BYTES, 1 << (size_bytes - 1).bit_length())
