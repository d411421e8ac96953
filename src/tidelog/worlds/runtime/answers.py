"""Answers on their way out of one connection: in order, in few writes, with little memory.

What is replied collects until `flush`, which the server calls once at the end of a tick. Bytes go
straight to the socket. Small slices of files are read into one buffer that all connections share
and leave together with the bytes around them; long slices go from the file's cache to the socket by
`sendfile`, without passing through this process. Only when the socket is full is a little handed to
the transport, which tells us (`pause_writing`, `resume_writing`) when it could be written. So a
slow reader costs one piece of memory at most, whatever it asked for.

Bytes of a slice that are not in memory are read by a thread: the loop never waits for a disk.
"""

from __future__ import annotations

import os
from asyncio import AbstractEventLoop, Future, Transport
from collections import deque
from collections.abc import Sequence
from typing import Protocol, cast

from tidelog.core.model.limits import (
    KIB,
    MATERIALISED_ANSWER_BYTES_MAX,
    MIB,
    UNANSWERED_REQUESTS_MAX,
)
from tidelog.core.node.ports import Part
from tidelog.core.storage.disk import DiskError, FileSlice
from tidelog.worlds.runtime.os_disk import OsFile

PIECE_BYTES = MATERIALISED_ANSWER_BYTES_MAX
LONG_SLICE_BYTES = 64 * KIB
"""From here on `sendfile` costs less than copying (a third of the CPU time for a whole piece)."""
PLUG_BYTES = 32 * KIB
"""What the transport gets when the socket is full, so that it tells us when there is room."""
TURN_BYTES_MAX = 1 * MIB
"""What one connection may send of its slices before the others get a turn."""
UNSENT_BYTES_MAX = 1 * MIB
"""Of answers in memory: with that much unsent nothing more is read from the client."""

assert PLUG_BYTES < LONG_SLICE_BYTES <= PIECE_BYTES <= TURN_BYTES_MAX


class Owner(Protocol):
    """The connection that the answers belong to."""

    def flush(self) -> None:
        """Call `AnswerQueue.flush` and look what follows from it."""

    def abort(self, reason: str, *, is_fault: bool = True) -> None:
        """What was promised to the client cannot be sent."""


class AnswerQueue:
    """Answers stand in `_ready`, from the first one that has a slice on in `_later`."""

    __slots__ = (
        "_answers",
        "_fd",
        "_is_draining",
        "_is_reading_file",
        "_later",
        "_loop",
        "_owner",
        "_piece",
        "_ready",
        "_transport",
        "_unsent_bytes",
    )

    def __init__(
        self,
        loop: AbstractEventLoop,
        transport: Transport,
        piece: memoryview,
        owner: Owner,
    ) -> None:
        self._loop = loop
        self._transport = transport
        self._fd: int = transport.get_extra_info("socket").fileno()
        self._piece = piece
        self._owner = owner
        self._ready: list[bytes | bytearray | memoryview] = []
        self._later: deque[Part | None] = deque()
        """Parts of answers, and None at the end of each answer."""
        self._answers = 0
        self._unsent_bytes = 0
        self._is_draining = False
        """The transport still holds bytes that the socket did not take."""
        self._is_reading_file = False

    @property
    def is_empty(self) -> bool:
        return not (self._ready or self._later or self._is_draining)

    @property
    def is_full(self) -> bool:
        """The client has to read before it may ask more."""
        return self._answers >= UNANSWERED_REQUESTS_MAX or self._unsent_bytes >= UNSENT_BYTES_MAX

    @property
    def has_room(self) -> bool:
        """Half of what makes it full: there is no point in stopping and starting all the time."""
        return (
            not self._is_draining
            and self._answers < UNANSWERED_REQUESTS_MAX // 2
            and self._unsent_bytes < UNSENT_BYTES_MAX // 2
        )

    @property
    def unsent_bytes(self) -> int:
        """In memory: ours and what the transport holds."""
        return self._unsent_bytes + self._transport.get_write_buffer_size()

    def put(self, parts: Sequence[Part]) -> None:
        later = self._later
        for part in parts:
            if isinstance(part, FileSlice):
                if part.size_bytes:
                    later.append(part)
                continue
            self._unsent_bytes += len(part)
            if later:
                later.append(part)
            else:
                self._ready.append(part)
        if later:
            later.append(None)
        self._answers += 1

    def flush(self) -> None:
        """Send what can be sent now."""
        if self._is_draining or self._is_reading_file:
            return
        ready = self._ready
        if ready:
            self._ready = []
            if self._later:
                self._later.extendleft(reversed(ready))
            else:
                self._answers = self._unsent_bytes = 0
                self._write(ready[0] if len(ready) == 1 else b"".join(ready))
        if self._later:
            self._send_later()

    def pause_writing(self) -> None:
        self._is_draining = True

    def resume_writing(self) -> None:
        self._is_draining = False

    def clear(self) -> None:
        self._ready.clear()
        self._later.clear()
        self._answers = self._unsent_bytes = 0

    def _send_later(self) -> None:
        """Piece by piece, until the socket takes no more, files give no more, or others wait."""
        turn_bytes = 0
        while self._later and not self._is_draining and not self._is_reading_file:
            if turn_bytes >= TURN_BYTES_MAX:
                self._loop.call_soon(self._owner.flush)
                return
            part = self._later[0]
            if isinstance(part, FileSlice) and part.size_bytes >= LONG_SLICE_BYTES:
                turn_bytes += self._send_file(part)
                continue
            filled_bytes = self._fill(PIECE_BYTES)
            turn_bytes += filled_bytes
            self._write(self._piece[:filled_bytes])

    def _send_file(self, part: FileSlice) -> int:
        """The next part of a long slice, from the cache to the socket."""
        file = cast(OsFile, part.file)
        wished_bytes = min(part.size_bytes, PIECE_BYTES)
        try:
            if not file.is_cached(part.position, wished_bytes):
                self._read_in_thread(part)
                return 0
            if self._transport.is_closing():
                self.clear()
                return 0
            sent_bytes = os.sendfile(self._fd, file.descriptor(), part.position, wished_bytes)
        except BlockingIOError:
            sent_bytes = 0
        except DiskError as error:
            self._owner.abort(f"cannot send {error}")
            return 0
        except OSError as error:
            self._owner.abort(f"cannot send {part.file.path}: {error}", is_fault=False)
            return 0
        else:
            if not sent_bytes:
                self._abort_for_short(part)
                return 0
            self._shorten_next(part, sent_bytes)
        if sent_bytes < wished_bytes:
            filled_bytes = self._fill(PLUG_BYTES)
            self._write(self._piece[:filled_bytes])
        return sent_bytes

    def _fill(self, bytes_max: int) -> int:
        """Move the next parts of answers into the buffer, reading slices. Says how many bytes.

        Of a long slice only so much comes along that what is before it does not travel alone.
        """
        later = self._later
        piece = self._piece
        filled = 0
        while later and filled < bytes_max:
            part = later[0]
            if part is None:
                self._answers -= 1
                later.popleft()
            elif isinstance(part, FileSlice):
                if part.size_bytes >= LONG_SLICE_BYTES:
                    bytes_max = min(bytes_max, max(filled, PLUG_BYTES))
                    if filled == bytes_max:
                        break
                end = min(filled + part.size_bytes, bytes_max)
                count = self._read_cached(part, piece[filled:end])
                if count is None:
                    break
                filled += count
            else:
                count = min(len(part), bytes_max - filled)
                piece[filled : filled + count] = memoryview(part)[:count]
                filled += count
                self._unsent_bytes -= count
                if count == len(part):
                    later.popleft()
                else:
                    later[0] = memoryview(part)[count:]
        return filled

    def _read_cached(self, part: FileSlice, buffer: memoryview) -> int | None:
        """The beginning of the next slice, if it is in memory; None: wait, or give up."""
        try:
            count = cast(OsFile, part.file).read_cached_into(buffer, part.position)
        except DiskError as error:
            self._owner.abort(f"cannot send {error}")
            return None
        if count is None:
            self._read_in_thread(part)
        elif count == 0:
            self._abort_for_short(part)
            return None
        else:
            self._shorten_next(part, count)
        return count

    def _abort_for_short(self, part: FileSlice) -> None:
        self._owner.abort(f"{part.file.path} is shorter than what was to be sent of it")

    def _shorten_next(self, part: FileSlice, count: int) -> None:
        assert self._later[0] is part
        if count == part.size_bytes:
            self._later.popleft()
        else:
            self._later[0] = FileSlice(part.file, part.position + count, part.size_bytes - count)

    def _read_in_thread(self, part: FileSlice) -> None:
        file = cast(OsFile, part.file)
        try:
            file.pin()
        except DiskError as error:
            self._owner.abort(f"cannot send {error}")
            return
        self._is_reading_file = True
        length = min(part.size_bytes, PIECE_BYTES)
        future = self._loop.run_in_executor(
            None, os.pread, file.descriptor(), length, part.position
        )
        future.add_done_callback(lambda done: self._on_read(part, done))

    def _on_read(self, part: FileSlice, done: Future[bytes]) -> None:
        cast(OsFile, part.file).unpin()
        self._is_reading_file = False
        if not self._later:
            return
        error = done.exception()
        if error is not None:
            self._owner.abort(f"cannot send {part.file.path}: {error}")
            return
        data = done.result()
        if not data:
            self._abort_for_short(part)
            return
        self._shorten_next(part, len(data))
        self._unsent_bytes += len(data)
        self._later.appendleft(data)
        self._owner.flush()

    def _write(self, data: bytes | bytearray | memoryview) -> None:
        """Straight to the socket, for the transport holds nothing; what is left over goes to it."""
        assert not self._is_draining
        if self._transport.is_closing():
            self.clear()  # the number of the descriptor may belong to another connection by now
            return
        if not data:
            return
        try:
            sent_bytes = os.write(self._fd, data)
        except BlockingIOError:
            sent_bytes = 0
        except OSError as error:
            self._owner.abort(error.strerror or str(error), is_fault=False)
            return
        if sent_bytes < len(data):
            self._transport.write(bytes(memoryview(data)[sent_bytes:]))
