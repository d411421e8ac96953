"""A TCP proxy that understands frames: it sees requests, and can hold back or lose an answer.

The broker must advertise the proxy's address, or clients go around it: see `proxied_settings`. In a
cluster its followers then come through the proxy too.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from tests.process.ports import HOST, free_port
from tidelog.core.wire.headers import read_request_header

PRODUCE = 0
FETCH = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One request that passed."""

    api_key: int
    version: int
    client_id: str | None
    frame: bytes
    at_s: float = field(default_factory=time.monotonic)


Wanted = Callable[[Seen], bool]


def is_produce(seen: Seen) -> bool:
    return seen.api_key == PRODUCE


class Hold:
    """Answers that wait until somebody decides about them; those that come later pass."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.held: list[Seen] = []
        self._over = threading.Event()
        self._passes = True

    def release(self) -> None:
        """They go on as if nothing had been."""
        self._over.set()

    def lose(self) -> None:
        """They are lost with their connections, as if they had never left."""
        self._passes = False
        self._over.set()

    def passes(self, asked: Seen) -> bool:
        if self._over.is_set() or not self.wanted(asked):
            return True
        self.held.append(asked)
        self._over.wait()
        return self._passes


class Proxy:
    """Listens at once; forwards to the address that `forward_to` names later."""

    def __init__(self) -> None:
        self._port = free_port()
        self._listening = socket.create_server((HOST, self._port))
        self.address = f"{HOST}:{self._port}"
        self.requests: list[Seen] = []
        self.journal: list[tuple[str, Seen]] = []
        """("asked" or "answered", the request): noted before the bytes go on, so in true order."""
        self.answers: list[tuple[Seen, bytes]] = []
        """Every request that was answered, with the frame of its answer."""
        self.answers_lost = 0
        self.rewrite: Callable[[Seen], bytes] = lambda seen: seen.frame
        """What goes to the broker instead of a request."""
        self._target: tuple[str, int] | None = None
        self._lose: Callable[[int], bool] = lambda _: False
        self._holds: list[Hold] = []
        self._sockets: list[socket.socket] = []

    @property
    def proxied_settings(self) -> dict[str, str | int | bool]:
        """What a broker behind this proxy must be told."""
        return {"advertised.listeners": f"PLAINTEXT://{self.address}"}

    def forward_to(self, address: str) -> None:
        host, port = address.split(":")
        self._target = (host, int(port))
        self._start_accepting()

    def refuse(self) -> None:
        """Nobody listens here any more, as when a process is dead."""
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def listen_again(self) -> None:
        self._listening = socket.create_server((HOST, self._port))
        self._start_accepting()

    def reset(self) -> None:
        """Every connection ends, as when something on the way resets them."""
        for open_socket in list(self._sockets):
            with suppress(OSError):
                open_socket.shutdown(socket.SHUT_RDWR)

    def lose_answers(self, wanted: Callable[[int], bool]) -> None:
        """An answer to a Produce is lost with its connection when `wanted(its number)`; from 0."""
        self._lose = wanted

    def hold(self, wanted: Wanted = is_produce) -> Hold:
        """Keep such answers back until `release`."""
        hold = Hold(wanted)
        self._holds.append(hold)
        return hold

    def release(self) -> None:
        """Let everything go on."""
        while self._holds:
            self._holds.pop().release()

    def produce_requests(self) -> list[Seen]:
        return [seen for seen in self.requests if is_produce(seen)]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()
        for open_socket in [self._listening, *self._sockets]:
            open_socket.close()

    # Below here: one pair of threads per connection.

    def _start_accepting(self) -> None:
        threading.Thread(target=self._accept, args=[self._listening], daemon=True).start()

    def _accept(self, listening: socket.socket) -> None:
        assert self._target is not None
        while True:
            try:
                client, _ = listening.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._target)
            except OSError:
                client.close()
                continue
            self._sockets += [client, server]
            Link(self, client, server).start()

    def note_request(self, frame: bytes) -> Seen:
        header = read_request_header(memoryview(frame))
        seen = Seen(
            api_key=header.api_key,
            version=header.api_version,
            client_id=header.client_id,
            frame=frame,
        )
        self.requests.append(seen)
        self.journal.append(("asked", seen))
        return seen

    def may_pass(self, asked: Seen) -> bool:
        """Whether the answer goes on; waits while answers are held back."""
        if not all(hold.passes(asked) for hold in list(self._holds)):
            return False
        if is_produce(asked):
            number = self.answers_lost + self._passed
            if self._lose(number):
                self.answers_lost += 1
                return False
            self._passed += 1
        self.journal.append(("answered", asked))
        return True

    _passed = 0


class Link:
    """One client connection and its counterpart to the broker."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy = proxy
        self._client = client
        self._server = server
        self._asked: deque[Seen] = deque()

    def start(self) -> None:
        for work in (self._forward_requests, self._forward_answers):
            threading.Thread(target=work, daemon=True).start()

    def _forward_requests(self) -> None:
        try:
            while frame := _read_frame(self._client):
                seen = self._proxy.note_request(frame)
                self._asked.append(seen)
                frame = self._proxy.rewrite(seen)
                self._server.sendall(struct.pack(">i", len(frame)) + frame)
        except OSError:
            pass
        self._cut()

    def _forward_answers(self) -> None:
        try:
            while frame := _read_frame(self._server):
                asked = self._asked.popleft()
                if not self._proxy.may_pass(asked):
                    break
                self._proxy.answers.append((asked, frame))
                self._client.sendall(struct.pack(">i", len(frame)) + frame)
        except OSError:
            pass
        self._cut()

    def _cut(self) -> None:
        for side in (self._client, self._server):
            try:
                side.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def _read_frame(connection: socket.socket) -> bytes | None:
    """The next frame without its size; None at the end of the stream."""
    prefix = _read(connection, 4)
    if prefix is None:
        return None
    return _read(connection, struct.unpack(">i", prefix)[0])


def _read(connection: socket.socket, count: int) -> bytes | None:
    received = bytearray()
    while len(received) < count:
        piece = connection.recv(count - len(received))
        if not piece:
            return None
        received += piece
    return bytes(received)
