"""Sockets and a clock for one client: a loop that whoever needs something done turns.

It is the client's `wires`. The client gets no events while it calls: a connection that fails at
once fails in the next turn. Names are resolved while the loop waits for them.
"""

from __future__ import annotations

import errno
import selectors
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from random import Random
from struct import Struct

from tidelog.client.client import Client
from tidelog.client.config import ClientConfig
from tidelog.core.model.limits import REQUEST_BYTES_MAX
from tidelog.core.model.trace import Trace

_SIZE = Struct(">i")
_READ_BYTES = 256 * 1024
_LARGE_BYTES = 2 * _READ_BYTES
"""A frame from this size on is read into a buffer of its own, without being copied again."""
_WAKING_BYTES = 2**20
"""Of a large frame: fewer do not wake who waits for it, unless they are its last."""
_LARGE_BUFFERS_MAX = 3
_FRAME_BYTES_MAX = 2 * REQUEST_BYTES_MAX
_REFUSED = frozenset({errno.ECONNREFUSED})
_RESET = frozenset({errno.ECONNRESET, errno.EPIPE})


class Loop:
    """Turns are taken by one thread at a time; `wake` may be called by any."""

    def __init__(self, config: ClientConfig, trace: Trace | None = None) -> None:
        self._selector = selectors.DefaultSelector()
        self._sockets: dict[int, _Socket] = {}
        self._to_write: deque[_Socket] = deque()
        self._events: deque[Callable[[int], None]] = deque()
        self._deadline_ms: int | None = None
        self.large_buffers = _LargeBuffers()
        self._waker, self._wakee = socket.socketpair()
        self._wakee.setblocking(False)
        self._waker.setblocking(False)
        self._selector.register(self._wakee, selectors.EVENT_READ, None)
        self.client = Client(self, config, random=Random(), trace=trace)

    def now_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def wait(self, wait_ms: int | None) -> list[tuple[_Socket | None, int]]:
        """Sleep until something happens, at most `wait_ms` (None: as long as it takes)."""
        timeout_s = self._timeout_s(wait_ms)
        ready = self._selector.select(timeout_s)
        return [(key.data, mask) for key, mask in ready]

    def dispatch(self, ready: list[tuple[_Socket | None, int]]) -> None:
        """Pass what happened on to the client, and let it act."""
        now_ms = self.now_ms()
        for each, mask in ready:
            if each is None:
                self._drain_wakes()
            elif not each.is_over:
                each.on_ready(mask, now_ms)
        while self._events:
            self._events.popleft()(now_ms)
        if self._deadline_ms is not None and self._deadline_ms <= now_ms:
            self._deadline_ms = None
            self.client.on_timer(now_ms)
        self.client.end_of_tick(now_ms)
        self._write_all(now_ms)

    def turn(self, wait_ms: int | None) -> None:
        self.dispatch(self.wait(wait_ms))

    def wake(self) -> None:
        """End the wait of whoever waits."""
        try:
            self._waker.send(b"\0")
        except BlockingIOError:
            return  # it has been woken often enough

    def close(self) -> None:
        self.client.close()
        for each in list(self._sockets.values()):
            each.drop()
        self._sockets.clear()
        self._selector.close()
        self._waker.close()
        self._wakee.close()

    def _timeout_s(self, wait_ms: int | None) -> float | None:
        if self._events:
            return 0
        if self._deadline_ms is not None:
            left_ms = max(0, self._deadline_ms - self.now_ms())
            wait_ms = left_ms if wait_ms is None else min(wait_ms, left_ms)
        return None if wait_ms is None else wait_ms / 1_000

    def _write_all(self, now_ms: int) -> None:
        """What the turn gave to send; most of it leaves at once."""
        while self._to_write:
            each = self._to_write.popleft()
            if not each.is_over:
                each.on_ready(selectors.EVENT_WRITE, now_ms)

    def _drain_wakes(self) -> None:
        try:
            while self._wakee.recv(4_096):
                continue
        except BlockingIOError:
            return

    # The port

    def connect(self, link: int, host: str, port: int, purpose: str) -> None:
        made = self._sockets[link] = _Socket(self, link)
        reason = made.connect(host, port)
        if reason is not None:
            self._events.append(lambda now_ms: self.ended(link, reason, now_ms))

    def send(self, link: int, parts: Sequence[bytes | bytearray | memoryview]) -> None:
        self._sockets[link].send(parts)
        self._to_write.append(self._sockets[link])

    def disconnect(self, link: int) -> None:
        dropped = self._sockets.pop(link, None)
        if dropped is not None:
            dropped.drop()

    def arm(self, deadline_ms: int) -> None:
        if self._deadline_ms is None or deadline_ms < self._deadline_ms:
            self._deadline_ms = deadline_ms

    # What sockets report

    def opened(self, link: int, now_ms: int) -> None:
        self.client.on_link_opened(link, now_ms)

    def answered(self, link: int, frame: memoryview, now_ms: int) -> None:
        self.client.on_answer(link, frame, now_ms)

    def ended(self, link: int, reason: str, now_ms: int) -> None:
        dropped = self._sockets.pop(link, None)
        if dropped is not None:
            dropped.drop()
            self.client.on_link_closed(link, reason, now_ms)

    def watch(self, each: _Socket, mask: int) -> None:
        if each.watched == 0:
            self._selector.register(each.socket, mask, each)
        elif mask == 0:
            self._selector.unregister(each.socket)
        elif mask != each.watched:
            self._selector.modify(each.socket, mask, each)
        each.watched = mask


class _LargeBuffers:
    """Memory for large frames, used again once nobody has a view of it: allocating it costs as much
    as filling it."""

    def __init__(self) -> None:
        self._buffers: deque[bytearray] = deque(maxlen=_LARGE_BUFFERS_MAX)

    def take(self, size: int) -> memoryview:
        for each in self._buffers:
            if len(each) >= size and _is_free(each):
                return memoryview(each)[:size]
        made = bytearray(size + size // 4)
        self._buffers.append(made)
        return memoryview(made)[:size]


def _is_free(buffer: bytearray) -> bool:
    """Memory that somebody has a view of cannot change its size."""
    try:
        buffer.append(buffer.pop())
    except BufferError:
        return False
    return True


class _Socket:
    """One connection: bytes in, frames out, and back."""

    def __init__(self, loop: Loop, link: int) -> None:
        self._loop = loop
        self._link = link
        self.socket = socket.socket()
        self.watched = 0
        self.is_over = False
        self._is_open = False
        self._received = bytearray()
        self._large: memoryview | None = None
        """A large frame that is on its way, and how much of it has come."""
        self._large_filled = 0
        self._woken_for = 1
        self._unsent: deque[memoryview] = deque()

    def connect(self, host: str, port: int) -> str | None:
        """The reason why it failed at once; None: it is on its way."""
        try:
            family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        except (OSError, UnicodeError):  # no such host, or a name that cannot be one
            return "unreachable"
        self.socket.close()
        self.socket = socket.socket(family, kind)
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        code = self.socket.connect_ex(address)
        if code not in (0, errno.EINPROGRESS):
            return _reason(code)
        self._loop.watch(self, selectors.EVENT_WRITE)
        return None

    def send(self, parts: Sequence[bytes | bytearray | memoryview]) -> None:
        self._unsent.extend(memoryview(part) for part in parts if len(part))

    def drop(self) -> None:
        if not self.is_over:
            self.is_over = True
            self._loop.watch(self, 0) if self.watched else None
            self.socket.close()

    def on_ready(self, mask: int, now_ms: int) -> None:
        try:
            if not self._is_open:
                self._finish_connect(now_ms)
                return
            if mask & selectors.EVENT_WRITE:
                self._write()
            if mask & selectors.EVENT_READ:
                self._read(now_ms)
        except OSError as error:
            self._loop.ended(self._link, _reason(error.errno or 0), now_ms)

    def _finish_connect(self, now_ms: int) -> None:
        code = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self._loop.ended(self._link, _reason(code), now_ms)
            return
        if self.socket.getsockname() == self.socket.getpeername():
            # No listener there: the system chose that very port for our own end.
            self._loop.ended(self._link, "refused", now_ms)
            return
        self._is_open = True
        self._loop.watch(self, selectors.EVENT_READ)
        self._loop.opened(self._link, now_ms)

    def _write(self) -> None:
        while self._unsent:
            try:
                sent = self.socket.sendmsg(list(self._unsent)[:64])
            except BlockingIOError:
                self._loop.watch(self, selectors.EVENT_READ | selectors.EVENT_WRITE)
                return
            while sent:
                first = self._unsent.popleft()
                if sent < len(first):
                    self._unsent.appendleft(first[sent:])
                sent -= min(sent, len(first))
        self._loop.watch(self, selectors.EVENT_READ)

    def _read(self, now_ms: int) -> None:
        if self._large is not None:
            self._read_large(self._large, now_ms)
            return
        try:
            data = self.socket.recv(_READ_BYTES)
        except BlockingIOError:
            return
        if not data:
            self._loop.ended(self._link, "closed", now_ms)
            return
        self._received += data
        while not self.is_over and len(self._received) >= _SIZE.size:
            (size,) = _SIZE.unpack_from(self._received)
            if not 0 <= size <= _FRAME_BYTES_MAX:
                self._loop.ended(self._link, "reset", now_ms)
                return
            end = _SIZE.size + size
            if len(self._received) < end:
                if size >= _LARGE_BYTES:
                    self._begin_large(size, now_ms)
                return
            frame = bytes(memoryview(self._received)[_SIZE.size : end])
            del self._received[:end]
            self._loop.answered(self._link, memoryview(frame), now_ms)

    def _begin_large(self, size: int, now_ms: int) -> None:
        self._large = self._loop.large_buffers.take(size)
        self._large_filled = len(self._received) - _SIZE.size
        self._large[: self._large_filled] = memoryview(self._received)[_SIZE.size :]
        self._received.clear()
        self._read_large(self._large, now_ms)

    def _read_large(self, frame: memoryview, now_ms: int) -> None:
        """All that has come: what waits in the socket counts before anybody looks at the clock."""
        while self._large_filled < len(frame):
            try:
                count = self.socket.recv_into(frame[self._large_filled :])
            except BlockingIOError:
                self._wake_for(min(_WAKING_BYTES, len(frame) - self._large_filled))
                return
            if not count:
                self._loop.ended(self._link, "closed", now_ms)
                return
            self._large_filled += count
        self._wake_for(1)
        self._large = None
        self._loop.answered(self._link, frame, now_ms)

    def _wake_for(self, count: int) -> None:
        """Set how many bytes must have come before we wake; the end of the stream always wakes."""
        if count != self._woken_for:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, count)
            self._woken_for = count


def _reason(code: int) -> str:
    if code in _REFUSED:
        return "refused"
    return "reset" if code in _RESET else "unreachable"
