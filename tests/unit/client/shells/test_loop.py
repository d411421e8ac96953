"""The loop's sockets: what they say about a door behind which nobody is."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from tests.process.ports import HOST, free_port
from tidelog.client.config import Address, ClientConfig
from tidelog.client.shells import loop as loop_module
from tidelog.client.shells.loop import Loop

LINK = 7


class SelfConnecting(socket.socket):
    """What chance does with a closed port of those that the system chooses from: the near end of
    the connection gets the very port that it goes to, and TCP opens it from both sides."""

    def connect_ex(self, address: Any) -> int:
        self.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.bind(address)
        return super().connect_ex(address)


class Client:
    """Notes what the loop tells."""

    def __init__(self) -> None:
        self.events: list[tuple[object, ...]] = []

    def on_link_opened(self, link: int, now_ms: int) -> None:
        self.events.append(("opened", link))

    def on_link_closed(self, link: int, reason: str, now_ms: int) -> None:
        self.events.append(("closed", link, reason))

    def end_of_tick(self, now_ms: int) -> None: ...

    def close(self) -> None: ...


def told_about(port: int, *, host: str = HOST) -> list[tuple[object, ...]]:
    loop = Loop(ClientConfig(bootstrap=(Address(host, port),)))
    loop.client = client = Client()  # type: ignore[assignment]
    loop.connect(LINK, host, port, "a test")
    while not client.events:
        loop.turn(None)
    loop.close()
    return client.events


def test_a_closed_port_refuses() -> None:
    assert told_about(free_port()) == [("closed", LINK, "refused")]


def test_a_name_that_cannot_be_one_is_unreachable() -> None:
    assert told_about(9092, host="a" * 80) == [("closed", LINK, "unreachable")]


def test_an_open_port_opens() -> None:
    with socket.create_server((HOST, 0)) as listening:
        assert told_about(listening.getsockname()[1]) == [("opened", LINK)]


def test_a_connection_to_itself_counts_as_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody listens there; a client that took it for open would wait for its own answers."""
    mine = SimpleNamespace(**{**vars(socket), "socket": SelfConnecting})
    monkeypatch.setattr(loop_module, "socket", mine)
    assert told_about(free_port()) == [("closed", LINK, "refused")]


class Hearing(Client):
    """Notes the answers, which must last after the loop has told them."""

    def __init__(self) -> None:
        super().__init__()
        self.frames: list[memoryview] = []

    def on_answer(self, link: int, frame: memoryview, now_ms: int) -> None:
        self.frames.append(frame)


@contextmanager
def connected() -> Iterator[tuple[Loop, Hearing, socket.socket]]:
    """A loop, who hears its answers, and the other end of its connection."""
    with socket.create_server((HOST, 0)) as listening:
        port = listening.getsockname()[1]
        loop = Loop(ClientConfig(bootstrap=(Address(HOST, port),)))
        loop.client = client = Hearing()  # type: ignore[assignment]
        loop.connect(LINK, HOST, port, "a test")
        there, _ = listening.accept()
        with there, closing(loop):
            yield loop, client, there


@pytest.mark.parametrize("sizes", [(10, 600_000, 5), (3_000_000, 3_000_000), (0, 524_287, 524_288)])
def test_frames_of_all_sizes_come_whole_and_in_order(sizes: tuple[int, ...]) -> None:
    """Large ones are read into a place of their own; what follows them must not be lost."""
    sent = [bytes([65 + number]) * size for number, size in enumerate(sizes)]
    with connected() as (loop, client, there):
        stream = b"".join(struct.pack(">i", len(each)) + each for each in sent)
        sending = threading.Thread(target=there.sendall, args=(stream,))
        sending.start()
        while len(client.frames) < len(sent):
            loop.turn(None)
        sending.join()

    assert [bytes(each) for each in client.frames] == sent


def test_a_large_frame_that_comes_by_drops_wakes_seldom_and_the_next_small_one_at_once() -> None:
    with connected() as (loop, client, there):
        content = b"x" * 3_100_000
        there.sendall(struct.pack(">i", len(content)))
        wakes = 0
        for start in range(0, len(content), 10_000):
            there.sendall(content[start : start + 10_000])
            ready = loop.wait(0)
            wakes += len(ready)
            loop.dispatch(ready)
        while not client.frames:
            loop.turn(None)
        there.sendall(struct.pack(">i", 1) + b"y")
        while len(client.frames) < 2:
            loop.turn(None)

    assert [bytes(frame) for frame in client.frames] == [content, b"y"]
    assert wakes < 30, f"{wakes} times for {len(content) // 10_000} drops"


def test_a_connection_that_ends_inside_of_a_large_frame_is_closed() -> None:
    with connected() as (loop, client, there):
        there.sendall(struct.pack(">i", 1_000_000) + b"x" * 100_000)
        there.close()
        while ("closed", LINK, "closed") not in client.events:
            loop.turn(None)

    assert client.frames == []


def test_memory_of_large_frames_is_used_again_only_when_nobody_looks_at_it() -> None:
    """Whoever keeps a part of an answer must find in it what was there."""
    with connected() as (loop, client, there):

        def hear(letter: bytes, size: int = 600_000) -> memoryview:
            sending = threading.Thread(target=there.sendall, args=(struct.pack(">i", size),))
            sending.start()
            sending.join()
            sending = threading.Thread(target=there.sendall, args=(letter * size,))
            sending.start()
            while not client.frames:
                loop.turn(None)
            sending.join()
            return client.frames.pop()

        kept = hear(b"a")[100:200]
        seen = id(hear(b"b").obj)
        again = hear(b"c")
        larger = hear(b"d", 2_000_000)

    assert bytes(kept) == b"a" * 100
    assert id(again.obj) == seen, "the memory of a frame that nobody has any more"
    assert bytes(again) == b"c" * 600_000 and bytes(larger) == b"d" * 2_000_000
