"""Links: connections that this process opened to other nodes, in the same ticks as its clients'.

Requests leave once at the end of a tick, answers go to the node as they come. Trouble has four
words: "refused" (every address of the host refuses), "closed" (the other side ended it), "reset",
and "unreachable" for everything else: no such host, no way to it, or silence for
CONNECT_TIMEOUT_MS. Unfinished answers have memory of their own: a crowd of clients cannot keep a
follower from reading its leader.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from asyncio import AbstractEventLoop, BufferedProtocol, Task, Transport
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, Protocol, cast

from tidelog.core.model.limits import MIB
from tidelog.core.model.trace import Trace
from tidelog.core.wire.frames import BadFrame, FrameReader, PartialFrameBudget
from tidelog.worlds.runtime.answers import AnswerQueue
from tidelog.worlds.runtime.events import LinkClosed, LinkOpened

CONNECT_TIMEOUT_MS = 10_000
"""As Kafka's socket.connection.setup.timeout.ms."""
ANSWER_BYTES_MAX = 128 * MIB
PARTIAL_ANSWERS_BYTES_MAX = 256 * MIB

assert ANSWER_BYTES_MAX < PARTIAL_ANSWERS_BYTES_MAX


class LinkEvents(Protocol):
    """What a node hears of its links."""

    def on_link_opened(self, link: int, now_ms: int) -> None: ...
    def on_link_closed(self, link: int, reason: str, now_ms: int) -> None: ...
    def on_answer(self, link: int, frame: memoryview, now_ms: int) -> None: ...


class Flushed(Protocol):
    """Whatever sends at the end of a tick."""

    def flush(self) -> None: ...


class LinkShell(Protocol):
    """The server around the links."""

    loop: AbstractEventLoop
    dirty: list[Flushed]
    piece: memoryview
    fail: Callable[[BaseException | str], NoReturn]

    def begin_tick(self) -> int: ...


class OutgoingLinks:
    """All links of one node, by the numbers that the node gave them."""

    def __init__(
        self, shell: LinkShell, *, trace: Trace, new_buffer: Callable[[int], memoryview]
    ) -> None:
        self.shell = shell
        self.events: LinkEvents
        self.trace = trace
        self.budget = PartialFrameBudget(
            PARTIAL_ANSWERS_BYTES_MAX, request_bytes_max=ANSWER_BYTES_MAX, new_buffer=new_buffer
        )
        self.starved: dict[FrameReader, SocketLink] = {}
        self._links: dict[int, SocketLink] = {}

    def connect(self, link: int, host: str, port: int, purpose: str) -> None:
        assert link not in self._links, f"link {link} is there already"
        self._links[link] = SocketLink(self, link, f"{host}:{port}", purpose)
        self._links[link].dial(host, port)

    def send(self, link: int, parts: Sequence[bytes | bytearray | memoryview]) -> None:
        known = self._links.get(link)
        if known is not None:
            known.send(parts)

    def disconnect(self, link: int) -> None:
        known = self._links.pop(link, None)
        if known is not None:
            known.drop()

    def drop_all(self) -> None:
        """The node has stopped: nobody waits for an answer any more."""
        for link in list(self._links):
            self.disconnect(link)

    def feed(self) -> None:
        """After a tick: let those read on that waited for memory."""
        if self.starved:
            for reader in self.budget.feed():
                self.starved.pop(reader).read_on()

    # What the links say.

    def opened(self, link: SocketLink) -> None:
        self.trace.emit(LinkOpened(link=link.number, address=link.address, purpose=link.purpose))
        try:
            self.events.on_link_opened(link.number, self.shell.begin_tick())
        except Exception as error:
            self.shell.fail(error)

    def closed(self, link: SocketLink, reason: str) -> None:
        self.starved.pop(link.reader, None)
        if self._links.pop(link.number, None) is None:
            return
        self.trace.emit(
            LinkClosed(link=link.number, address=link.address, purpose=link.purpose, reason=reason)
        )
        try:
            self.events.on_link_closed(link.number, reason, self.shell.begin_tick())
        except Exception as error:
            self.shell.fail(error)


class SocketLink(BufferedProtocol):
    """Dials, opens, ends; after a `drop` nothing is told of it."""

    __slots__ = (
        "_dialling", "_is_dirty", "_is_dropped", "_links", "_requests", "_transport", "address",
        "number", "purpose", "reader",
    )  # fmt: skip

    def __init__(self, links: OutgoingLinks, number: int, address: str, purpose: str) -> None:
        self._links = links
        self._dialling: Task[None] | None = None
        self._transport: Transport | None = None
        self._requests: AnswerQueue | None = None
        self._is_dirty = False
        self._is_dropped = False
        self.number = number
        self.address = address
        self.purpose = purpose
        self.reader = FrameReader(ANSWER_BYTES_MAX, links.budget)

    # What the node wishes.

    def dial(self, host: str, port: int) -> None:
        self._dialling = self._links.shell.loop.create_task(self._dial(host, port))

    def send(self, parts: Sequence[bytes | bytearray | memoryview]) -> None:
        assert self._requests is not None, "sent on a link that has not opened"
        self._requests.put(parts)
        if not self._is_dirty:
            self._is_dirty = True
            self._links.shell.dirty.append(self)

    def drop(self) -> None:
        self._is_dropped = True
        if self._transport is not None:
            self._transport.abort()
        elif self._dialling is not None:
            self._dialling.cancel()

    # The transport's side.

    def connection_made(self, transport: object) -> None:
        self._transport = cast(Transport, transport)
        if self._is_dropped:
            self._transport.abort()
            return
        self._transport.set_write_buffer_limits(high=0)
        shell = self._links.shell
        self._requests = AnswerQueue(shell.loop, self._transport, shell.piece, self)
        self._links.opened(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.reader.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        self.reader.wrote(nbytes)
        self._deliver()

    def pause_writing(self) -> None:
        if self._requests is not None:
            self._requests.pause_writing()

    def resume_writing(self) -> None:
        if self._requests is not None:
            self._requests.resume_writing()
            self.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._requests is not None:
            self._requests.clear()
        self.reader.close()
        self._end(_word_for(exc))

    # For the queue of requests and for the end of a tick.

    def flush(self) -> None:
        self._is_dirty = False
        if self._requests is not None:
            self._requests.flush()

    def abort(self, reason: str, *, is_fault: bool = True) -> None:
        """A request could not be sent: the other side does not take it."""
        assert self._transport is not None
        self._transport.abort()
        self._end("reset")

    def read_on(self) -> None:
        """There is memory again."""
        assert self._transport is not None
        if not self._is_dropped:
            self._transport.resume_reading()

    # Inside.

    async def _dial(self, host: str, port: int) -> None:
        loop = self._links.shell.loop
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_MS / 1000):
                connected = await _connected_socket(loop, host, port)
                await loop.create_connection(lambda: self, sock=connected)
        except ConnectionRefusedError:
            self._end("refused")
        except ConnectionError:
            self._end("reset")
        except (OSError, ValueError):  # time is up, no way, or a name that cannot be one
            self._end("unreachable")
        self._dialling = None

    def _end(self, reason: str) -> None:
        if not self._is_dropped:
            self._is_dropped = True
            self._links.closed(self, reason)

    def _deliver(self) -> None:
        links = self._links
        now_ms = links.shell.begin_tick()
        reader = self.reader
        on_answer = links.events.on_answer
        try:
            while not self._is_dropped and (frame := reader.next_frame()) is not None:
                on_answer(self.number, frame, now_ms)
        except BadFrame:
            self.abort("bad frame")
        except Exception as error:
            links.shell.fail(error)
        if reader.starved and not self._is_dropped:
            assert self._transport is not None
            self._transport.pause_reading()
            links.starved[reader] = self


async def _connected_socket(loop: AbstractEventLoop, host: str, port: int) -> socket.socket:
    """To the first address that takes us; ConnectionRefusedError only if all of them refuse."""
    trouble: OSError | None = None
    for family, kind, protocol, _, address in await _addresses(loop, host, port):
        dialled = socket.socket(family, kind, protocol)
        try:
            dialled.setblocking(False)
            dialled.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await loop.sock_connect(dialled, address)
            if dialled.getsockname() == _peer_of(dialled):
                # Where nobody listens the system may give us that very port and connect us to
                # ourselves.
                raise ConnectionRefusedError
        except OSError as error:
            dialled.close()
            if trouble is None or not isinstance(error, ConnectionRefusedError):
                trouble = error
        except BaseException:
            dialled.close()
            raise
        else:
            return dialled
    raise trouble or OSError(f"{host} has no address")


def _peer_of(connected: socket.socket) -> Any:
    """ConnectionResetError if it is gone already: a dying process closes its listener at last."""
    try:
        return connected.getpeername()
    except OSError as error:
        if error.errno in (errno.ENOTCONN, errno.EINVAL):
            raise ConnectionResetError(error.errno, "reset as soon as connected") from error
        raise


async def _addresses(loop: AbstractEventLoop, host: str, port: int) -> Sequence[Any]:
    """Numbers are understood at once, names are looked up by a thread."""
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    except socket.gaierror:
        return await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)


def _word_for(error: Exception | None) -> str:
    if error is None:
        return "closed"
    return "reset" if isinstance(error, ConnectionError) else "unreachable"
