"""The server's side of one connection: bytes become frames, answers become bytes.

Frames are cut by the real frame reader. Answers made of bytes leave at once; a slice of a file is
read when it is sent, which may be a little later than the answer was made.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from tidelog.core.node.ports import Part
from tidelog.core.storage.disk import DiskError, FileSlice, read_slice
from tidelog.core.wire.frames import BadFrame, FrameReader
from tidelog.worlds.simulator.network import End


class ServerProcess(Protocol):
    """The process around the connection."""

    is_over: bool

    def deliver(self, event: Callable[[], None]) -> None: ...
    def deliver_frame(self, connection: int, frame: memoryview) -> None: ...
    def connection_closed(self, connection: int) -> None: ...
    def connection_failed(self, connection: int, reason: str) -> None: ...
    def slow_send_us(self) -> int: ...
    def after(self, delay_us: int, action: Callable[[], None]) -> None: ...


class ServerConnection:
    """The server's side of one connection: bytes to frames, answers to bytes."""

    def __init__(self, process: ServerProcess, number: int, end: End, reader: FrameReader) -> None:
        self._process = process
        self._number = number
        self._end = end
        self._reader = reader
        self._received = bytearray()
        self._unsent: deque[Part] = deque()
        self._is_sending = False
        self._was_slow = False
        self._is_closing = False
        self.replies: list[Sequence[Part]] = []
        self.is_reading = True

    # Events of the network.

    def on_connected(self) -> None:
        raise AssertionError("a server does not connect")

    def on_bytes(self, data: bytes) -> None:
        self._received += data
        self._process.deliver(self.read_on)

    def on_closed(self, reason: str) -> None:
        self._process.deliver(lambda: self._process.connection_closed(self._number))

    # Calls of the process.

    def read_on(self) -> None:
        """Feed what has come to the reader and whole frames to the node, while it wants any."""
        try:
            while self.is_reading and not self._is_closing:
                frame = self._reader.next_frame()
                if frame is not None:
                    self._process.deliver_frame(self._number, frame)
                elif not self._take_in():
                    return
            if not self._is_closing:
                self._reader.park()
        except BadFrame as bad:
            self._process.connection_failed(self._number, str(bad))

    def send_replies(self) -> None:
        for parts in self.replies:
            self._unsent.extend(parts)
        self.replies.clear()
        if not self._is_sending:
            self._send()

    def close_after_replies(self) -> None:
        self._is_closing = True
        self._reader.close()
        self.send_replies()

    def _take_in(self) -> bool:
        if not self._received:
            return False
        buffer = self._reader.buffer()
        count = min(len(buffer), len(self._received))
        buffer[:count] = self._received[:count]
        self._reader.wrote(count)
        del self._received[:count]
        return True

    def _send(self) -> None:
        """Bytes leave at once; a slice of a file may be read a little later."""
        self._is_sending = False
        if not self._end.is_open or self._process.is_over:
            return
        ready: list[bytes] = []
        while self._unsent:
            part = self._unsent[0]
            if isinstance(part, FileSlice):
                delay_us = 0 if self._was_slow else self._process.slow_send_us()
                if delay_us:
                    self._was_slow = self._is_sending = True
                    self._process.after(delay_us, self._send)
                    break
                self._was_slow = False
                data = _read(part)
                if data is None:
                    self._end.reset()
                    self._process.connection_failed(self._number, "a slice could not be read")
                    return
                ready.append(data)
            else:
                ready.append(bytes(part))
            self._unsent.popleft()
        self._end.send(b"".join(ready))
        if self._is_closing and not self._unsent:
            self._end.close()


def _read(part: FileSlice) -> bytes | None:
    """The bytes that an answer promised, or None when they are no longer there."""
    try:
        data = read_slice(part)
    except DiskError:
        return None
    return data if len(data) == part.size_bytes else None
