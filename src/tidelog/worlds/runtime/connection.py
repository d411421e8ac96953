"""One client's connection: frames go to the node as they come, answers wait for the tick's end.

Reading from the client stops for one or more of the reasons in `ReadStop`, and goes on when none
is left. Frames that had arrived by then stay in the reader.
"""

from __future__ import annotations

from asyncio import BufferedProtocol, Transport
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from tidelog.core.node.ports import Part
from tidelog.core.wire.frames import BadFrame, FrameReader
from tidelog.worlds.runtime.answers import AnswerQueue

if TYPE_CHECKING:
    from tidelog.worlds.runtime.server import Server


class ReadStop:
    """Why a connection is not read from: bits of `SocketConnection.stops`."""

    NODE = 1  # too many requests are unanswered
    OUTPUT = 2  # too many answers are unsent
    STARVED = 4  # no memory for the rest of a request
    CLOSING = 8
    FAULT = 16  # a fault holds back what it sent before


class SocketConnection(BufferedProtocol):
    """Born with its transport (`connection_made`), dead with it (`connection_lost`)."""

    __slots__ = (
        "_is_dirty",
        "_server",
        "_transport",
        "active_ms",
        "answers",
        "close_reason",
        "is_fault",
        "number",
        "peer",
        "reader",
        "stops",
    )

    _transport: Transport
    answers: AnswerQueue

    def __init__(self, server: Server) -> None:
        self._server = server
        self._is_dirty = False
        self.number = 0
        self.peer = ""
        self.active_ms = 0
        self.stops = 0
        self.close_reason: str | None = None
        self.is_fault = False
        self.reader = FrameReader(server.request_bytes_max, server.budget)

    # The transport's side.

    def connection_made(self, transport: object) -> None:
        server = self._server
        self._transport = cast(Transport, transport)
        self._transport.set_write_buffer_limits(high=0)
        self.answers = AnswerQueue(server.loop, self._transport, server.piece, self)
        address = self._transport.get_extra_info("peername")
        self.peer = str(address[0]).removeprefix("::ffff:") if address else ""
        server.opened(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.reader.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        self.reader.wrote(nbytes)
        self._deliver()

    def pause_writing(self) -> None:
        self.answers.pause_writing()

    def resume_writing(self) -> None:
        self.answers.resume_writing()
        self.active_ms = self._server.begin_tick()
        self.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.close_reason is None:
            self.close_reason = str(exc) if exc else "the client closed it"
        self.stops |= ReadStop.CLOSING
        self.answers.clear()
        self.reader.close()
        self._server.lost(self)

    # The node's side.

    def reply(self, parts: Sequence[Part]) -> None:
        self.answers.put(parts)
        if self.answers.is_full:
            self.stop_reading(ReadStop.OUTPUT)
        if not self._is_dirty:
            self._is_dirty = True
            self._server.dirty.append(self)

    def stop_reading(self, reason: int) -> None:
        if self._may_read():
            self._transport.pause_reading()
        self.stops |= reason

    def allow_reading(self, reason: int) -> None:
        if self.stops & reason:
            self.stops &= ~reason
            if not self.stops:
                self._server.loop.call_soon(self._read_on)

    def close(self, reason: str, *, is_fault: bool = True) -> None:
        """After everything that was replied. A fault is something that the client did."""
        if self.close_reason is None:
            self.close_reason = reason
            self.is_fault = is_fault
        self.stop_reading(ReadStop.CLOSING)
        if not self._is_dirty:
            self._is_dirty = True
            self._server.dirty.append(self)

    def abort(self, reason: str, *, is_fault: bool = True) -> None:
        """At once, dropping what was not sent."""
        if self.close_reason is None:
            self.close_reason = reason
            self.is_fault = is_fault
        self.stop_reading(ReadStop.CLOSING)
        self.answers.clear()
        self._transport.abort()

    @property
    def is_stalled(self) -> bool:
        """It began a request, and nobody but the client keeps it from going on."""
        return self.reader.held_bytes > 0 and not self.stops

    def flush(self) -> None:
        """Send what can be sent: at the end of a tick, and when the socket has room again."""
        self._is_dirty = False
        self.answers.flush()
        if self.stops:
            if self.stops & ReadStop.OUTPUT and self.answers.has_room:
                self.allow_reading(ReadStop.OUTPUT)
            if self.stops & ReadStop.CLOSING and self.answers.is_empty:
                self._transport.close()

    def _deliver(self) -> None:
        """Hand every whole frame to the node, unless one of them makes us stop."""
        server = self._server
        self.active_ms = now_ms = server.now_ms if server.in_tick else server.begin_tick()
        reader = self.reader
        try:
            while (frame := reader.next_frame()) is not None:
                server.on_frame(self.number, frame, now_ms)
                if self.stops:
                    reader.park()
                    return
        except BadFrame as error:
            self.abort(f"bad frame: {error}")
        except Exception as error:
            server.fail(error)
        if reader.starved:
            self.stop_reading(ReadStop.STARVED)
            server.starved[reader] = self

    def _read_on(self) -> None:
        if self._may_read():
            self._deliver()
        if self._may_read():
            self._transport.resume_reading()

    def _may_read(self) -> bool:
        return not self.stops and not self._transport.is_closing()
