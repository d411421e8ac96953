"""Links of a real process: a node speaks first, and hears trouble in four words."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable, Coroutine
from functools import partial
from operator import contains
from typing import Any

import pytest

from tests.unit.worlds.runtime.fake_node import MIB, Stage, framed, loops, play
from tidelog.worlds.runtime import links as links_module
from tidelog.worlds.runtime.events import LinkClosed, LinkOpened

pytestmark = pytest.mark.parametrize("loop_name", loops())

LINK = 3
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


async def linked(stage: Stage) -> None:
    """The node calls itself: one more connection of its own server."""
    stage.server.connect(LINK, "127.0.0.1", stage.port, "probe")
    await stage.until(lambda: stage.node.link_events)
    assert stage.node.link_events == [(LINK, "opened")]
    stage.node.link_events.clear()


async def linked_to(stage: Stage, serve: Serve) -> asyncio.Server:
    """A link to a peer that behaves as the test wants."""
    peer = await asyncio.start_server(serve, "127.0.0.1", 0)
    stage.server.connect(LINK, "127.0.0.1", peer.sockets[0].getsockname()[1], "replica")
    return peer


def say(stage: Stage, *payloads: bytes) -> None:
    stage.server.begin_tick()
    for payload in payloads:
        stage.server.send(LINK, (struct.pack(">i", len(payload)), payload))


def test_requests_leave_together_and_answers_come_whole_and_in_order(loop_name: str) -> None:
    async def story(stage: Stage) -> None:
        await linked(stage)
        payloads = [b"e%d" % number for number in range(50)]
        say(stage, *payloads)
        await stage.until(lambda: len(stage.node.link_events) == 50)
        assert stage.node.link_events == [(LINK, payload) for payload in payloads]
        assert max(stage.node.ticks) == 50, "one write, read in one tick"
        [opened] = stage.trace.of(LinkOpened)
        assert (opened.address, opened.purpose) == (f"127.0.0.1:{stage.port}", "probe")

    play(loop_name, story)


def test_a_long_answer_arrives_whole_and_gives_its_memory_back(loop_name: str) -> None:
    async def story(stage: Stage) -> None:
        payload = b"e" + bytes(range(256)) * 30_000
        await linked(stage)
        say(stage, payload)
        await stage.until(lambda: stage.node.link_events)
        assert stage.node.link_events == [(LINK, payload)]
        assert stage.server._links.budget.used_bytes == 0

    play(loop_name, story)


def test_answers_starved_of_memory_are_fed_in_turn(
    loop_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links_module, "PARTIAL_ANSWERS_BYTES_MAX", 12 * MIB)
    monkeypatch.setattr(links_module, "ANSWER_BYTES_MAX", 10 * MIB)

    async def story(stage: Stage) -> None:
        server = stage.server
        for number in range(6):
            server.connect(number, "127.0.0.1", stage.port, "replica")
        await stage.until(lambda: len(stage.node.link_events) == 6)
        stage.node.link_events.clear()
        server.begin_tick()
        payloads = [b"e" + bytes([number]) * 9_000_000 for number in range(6)]
        for number, payload in enumerate(payloads):
            server.send(number, [framed(payload)])
        await stage.until(lambda: len(stage.node.link_events) == 6)
        assert sorted(stage.node.link_events) == list(enumerate(payloads))

    play(loop_name, story)


def test_nobody_listens_means_refused(loop_name: str) -> None:
    async def story(stage: Stage) -> None:
        with socket.socket() as reserved:
            reserved.bind(("127.0.0.1", 0))
            stage.server.connect(LINK, "127.0.0.1", reserved.getsockname()[1], "probe")
            await stage.until(lambda: stage.node.link_events)
        assert stage.node.link_events == [(LINK, "refused")]
        assert [event.reason for event in stage.trace.of(LinkClosed)] == ["refused"]

    play(loop_name, story)


@pytest.mark.parametrize("host", ["no.such.host.invalid", "a" * 80])
def test_a_host_that_is_not_there_is_unreachable(loop_name: str, host: str) -> None:
    async def no_such_host(*_: object, **__: object) -> list[Any]:
        raise socket.gaierror("no such host")

    async def story(stage: Stage) -> None:
        if host.endswith("invalid"):
            stage.server.loop.getaddrinfo = no_such_host  # type: ignore[method-assign]
        stage.server.connect(LINK, host, 9092, "probe")
        await stage.until(lambda: stage.node.link_events)
        assert stage.node.link_events == [(LINK, "unreachable")]

    play("asyncio", story)


def test_a_silent_host_is_unreachable_after_a_while(
    loop_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links_module, "CONNECT_TIMEOUT_MS", 30)

    async def story(stage: Stage) -> None:
        with socket.socket() as full, socket.socket() as waiting:
            full.bind(("127.0.0.1", 0))
            full.listen(0)
            waiting.connect(full.getsockname())  # the only place in its queue
            host, port = full.getsockname()
            stage.server.connect(LINK, host, port, "probe")
            stage.server.connect(LINK + 1, host, port, "probe")
            await stage.until(lambda: (LINK + 1, "unreachable") in stage.node.link_events)

    play(loop_name, story)


def test_an_end_is_closed_and_a_reset_is_reset(loop_name: str) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await reader.readexactly(8) == framed(b"kick"):
            peer = writer.get_extra_info("socket")
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    async def story(stage: Stage) -> None:
        for number, (word, reason) in enumerate(((b"kick", "reset"), (b"exit", "closed")), LINK):
            peer = await asyncio.start_server(hang_up, "127.0.0.1", 0)
            host, port = peer.sockets[0].getsockname()
            stage.server.connect(number, host, port, "probe")
            await stage.until(partial(contains, stage.node.link_events, (number, "opened")))
            stage.server.begin_tick()
            stage.server.send(number, [framed(word)])
            await stage.until(partial(contains, stage.node.link_events, (number, reason)))
            peer.close()

    play(loop_name, story)


def test_a_door_that_falls_shut_behind_us_is_a_reset(
    loop_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is killed: its listener took us a moment ago, and is closed before we look."""
    listener = socket.socket()

    class Dialled(socket.socket):
        def getsockname(self) -> Any:
            listener.close()
            return super().getsockname()

    async def story(stage: Stage) -> None:
        with listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            host, port = listener.getsockname()
            monkeypatch.setattr(socket, "socket", Dialled)
            stage.server.connect(LINK, host, port, "probe")
            await stage.until(lambda: stage.node.link_events)
            monkeypatch.undo()
        assert stage.node.link_events[-1] == (LINK, "reset")

    play(loop_name, story)


def test_nothing_is_heard_of_a_dropped_link(loop_name: str) -> None:
    async def story(stage: Stage) -> None:
        await linked(stage)
        say(stage, b"e too late")
        stage.server.disconnect(LINK)
        stage.server.connect(LINK + 1, "127.0.0.1", stage.port, "probe")
        stage.server.disconnect(LINK + 1)
        await stage.until(lambda: stage.node.closed)
        reader, writer = await stage.connect()
        writer.write(framed(b"e"))
        await reader.readexactly(5)
        assert stage.node.link_events == []
        assert stage.server._links.budget.used_bytes == 0

    play(loop_name, story)


def test_an_answer_of_an_impossible_size_ends_the_link(loop_name: str) -> None:
    async def nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(struct.pack(">i", -2) + b"rest")
        await reader.read()

    async def story(stage: Stage) -> None:
        peer = await linked_to(stage, nonsense)
        await stage.until(lambda: len(stage.node.link_events) == 2)
        assert stage.node.link_events == [(LINK, "opened"), (LINK, "reset")]
        peer.close()

    play(loop_name, story)


def test_a_broken_promise_while_an_answer_is_heard_ends_the_process(loop_name: str) -> None:
    def broken(link: int, frame: memoryview, now_ms: int) -> None:
        raise AssertionError("a broken promise")

    async def story(stage: Stage) -> None:
        await linked(stage)
        stage.node.on_answer = broken  # type: ignore[method-assign]
        say(stage, b"e")
        await stage.until(lambda: stage.failures)

    assert [str(failure) for failure in play(loop_name, story).failures] == ["a broken promise"]


def test_a_peer_that_does_not_read_gets_the_rest_later(loop_name: str) -> None:
    payload = bytes(8 * MIB)
    received: list[bytes] = []

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.append(await reader.readexactly(4 + len(payload)))
        writer.write(framed(b"thanks"))
        await reader.read()

    async def story(stage: Stage) -> None:
        peer = await linked_to(stage, slow)
        await stage.until(lambda: stage.node.link_events)
        say(stage, payload)
        await stage.until(lambda: len(stage.node.link_events) == 2)
        assert stage.node.link_events[1] == (LINK, b"thanks")
        assert received == [framed(payload)]
        peer.close()

    play(loop_name, story)
