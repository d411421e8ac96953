"""A node that answers by the first byte of a frame: enough to try the shell around it."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from tidelog.core.model.trace import ListTrace
from tidelog.core.node.ports import Part
from tidelog.core.storage.disk import File, FileSlice
from tidelog.worlds.runtime.clock import MonotonicClock
from tidelog.worlds.runtime.os_disk import OsDisk, OsFile
from tidelog.worlds.runtime.server import Admission, Server, ServerLimits

MIB = 2**20
SLICE = struct.Struct(">qq")


class FakeNode:
    """Commands: e(cho), d(eferred echo), s(lice), c(lose), p(ause), x (a broken promise)."""

    def __init__(self) -> None:
        self.outbox: Server
        self.file: OsFile | None = None
        self.deferred: list[tuple[int, bytes]] = []
        self.opened: list[int] = []
        self.closed: list[int] = []
        self.frames = 0
        self.ticks: list[int] = []
        """How many frames each tick had."""
        self.timers: list[int] = []
        self.synced: list[tuple[File, int]] = []
        self.failed: list[tuple[str, str]] = []
        self.link_events: list[tuple[int, str | bytes]] = []
        self._frames_of_tick = 0
        self.paused: list[int] = []
        self.tick_ended: asyncio.Event | None = None

    def on_connection_opened(self, connection: int, peer: str, now_ms: int) -> None:
        self.opened.append(connection)

    def on_connection_closed(self, connection: int, now_ms: int) -> None:
        self.closed.append(connection)

    def on_frame(self, connection: int, frame: memoryview, now_ms: int) -> None:
        self.frames += 1
        self._frames_of_tick += 1
        command = frame[:1].tobytes()
        if command == b"e":
            self.outbox.reply(connection, [framed(bytes(frame))])
        elif command == b"d":
            self.deferred.append((connection, bytes(frame)))
        elif command == b"s":
            self._reply_slice(connection, *SLICE.unpack_from(frame, 1))
        elif command == b"c":
            self.outbox.reply(connection, [framed(b"bye")])
            self.outbox.close(connection, "asked to")
        elif command == b"p":
            self.paused.append(connection)
            self.outbox.pause_reading(connection)
            self.outbox.reply(connection, [framed(bytes(frame))])
        elif command == b"x":
            raise AssertionError("a broken promise")

    def _reply_slice(self, connection: int, position: int, size_bytes: int) -> None:
        assert self.file is not None
        parts: list[Part]
        parts = [struct.pack(">i", size_bytes), FileSlice(self.file, position, size_bytes)]
        self.outbox.reply(connection, parts)

    def on_link_opened(self, link: int, now_ms: int) -> None:
        self.link_events.append((link, "opened"))

    def on_link_closed(self, link: int, reason: str, now_ms: int) -> None:
        self.link_events.append((link, reason))

    def on_answer(self, link: int, frame: memoryview, now_ms: int) -> None:
        self.link_events.append((link, bytes(frame)))

    def on_synced(self, file: File, size_bytes: int, now_ms: int) -> None:
        self.synced.append((file, size_bytes))

    def on_sync_failed(self, file: File, reason: str, now_ms: int) -> None:
        self.failed.append((file.path, reason))

    def on_timer(self, now_ms: int) -> None:
        self.timers.append(now_ms)

    def end_of_tick(self, now_ms: int) -> None:
        self.ticks.append(self._frames_of_tick)
        self._frames_of_tick = 0
        if self.tick_ended is not None:
            self.tick_ended.set()
        deferred, self.deferred = self.deferred, []
        for connection, answer in deferred:
            self.outbox.reply(connection, [framed(answer)])


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def slice_request(position: int, size_bytes: int) -> bytes:
    return framed(b"s" + SLICE.pack(position, size_bytes))


class ProcessEnded(Exception):
    """Where a real process would be over; the loop's exception handler sees it pass by."""


class Stage:
    """A server with a fake node on a real socket, inside one loop."""

    def __init__(self, server: Server, node: FakeNode, trace: ListTrace, port: int) -> None:
        self.server = server
        self.node = node
        self.trace = trace
        self.port = port
        self.failures: list[object] = []

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def until(self, condition: Callable[[], object]) -> None:
        """Look again after every tick: nothing changes in between."""
        while not condition():
            self.node.tick_ended = asyncio.Event()
            await self.node.tick_ended.wait()


async def answer(reader: asyncio.StreamReader) -> bytes:
    size = struct.unpack(">i", await reader.readexactly(4))[0]
    return await reader.readexactly(size)


def loops() -> list[str]:
    try:
        import uvloop  # noqa: F401
    except ImportError:
        return ["asyncio"]
    return ["asyncio", "uvloop"]


def new_loop(name: str) -> asyncio.AbstractEventLoop:
    if name == "uvloop":
        import uvloop

        return uvloop.new_event_loop()
    return asyncio.new_event_loop()


def limits(*, connections_max: int = 1000, per_ip_max: int = 1000, **changes: Any) -> ServerLimits:
    values: dict[str, Any] = {
        "request_bytes_max": 10 * MIB,
        "idle_ms_max": None,
        "admission": lambda: Admission(connections_max, per_ip_max),
    }
    return ServerLimits(**(values | changes))


@contextmanager
def closing(loop: asyncio.AbstractEventLoop) -> Iterator[asyncio.AbstractEventLoop]:
    try:
        yield loop
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


def play(
    loop_name: str,
    story: Callable[[Stage], Coroutine[Any, Any, None]],
    *,
    disk: OsDisk | None = None,
    node: FakeNode | None = None,
    server_limits: ServerLimits | None = None,
) -> Stage:
    """Run one story against a fresh server; it must not take longer than a test may."""
    node = node or FakeNode()
    trace = ListTrace()
    failures: list[object] = []

    def fail(reason: BaseException | str) -> NoReturn:
        if not isinstance(reason, ProcessEnded):
            failures.append(reason)
            node.end_of_tick(0)
        raise ProcessEnded

    with closing(new_loop(loop_name)) as loop:
        server = Server(
            loop=loop,
            clock=MonotonicClock(),
            trace=trace,
            limits=server_limits or limits(),
            fail=fail,
        )
        node.outbox = server
        server.serve(node, disk)
        listening = socket.create_server(("127.0.0.1", 0))
        stage = Stage(server, node, trace, listening.getsockname()[1])
        stage.failures = failures

        async def run() -> None:
            await server.listen(listening, backlog=50)
            await asyncio.wait_for(story(stage), 20)
            server.stop_accepting()
            await server.close_connections("the end", within_ms=0)

        loop.run_until_complete(run())
    return stage
