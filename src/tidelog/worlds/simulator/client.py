"""A wire client for workloads and stories: real request bytes out, answers matched in order.

It connects when there is a request to send, pipelines requests, and knows three outcomes of a call:
a reply, `CallFailed` for a request that was never sent (so it had no effect), and `CallFailed` for
one that was sent (so its effect is unknown). A call that takes too long closes the connection, as
Kafka's clients do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from struct import Struct

from tidelog.core.model.exceptions import TidelogError
from tidelog.core.wire.codec import decode, encode
from tidelog.core.wire.headers import read_response_header, request_header
from tidelog.core.wire.links import Introduction, Outgoing
from tidelog.core.wire.messages import MESSAGES
from tidelog.core.wire.schema import Message
from tidelog.worlds.simulator.network import End, Network
from tidelog.worlds.simulator.world import Scheduled, SimWorld

_SIZE = Struct(">i")
DEFAULT_TIMEOUT_MS = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFailed:
    """No answer came."""

    reason: str
    was_sent: bool


Outcome = Message | CallFailed
Then = Callable[[Outcome], None]


class Call:
    """One request under way."""

    __slots__ = ("correlation_id", "frame", "is_over", "request", "then", "timer", "version")

    def __init__(
        self, request: Message, version: int, correlation_id: int, frame: bytes, then: Then
    ) -> None:
        self.request = request
        self.version = version
        self.correlation_id = correlation_id
        self.frame = frame
        self.then = then
        self.timer: Scheduled | None = None
        self.is_over = False


class UnexpectedReply(TidelogError, AssertionError):
    """An answer that does not belong to the request whose turn it is."""


class WireClient:
    """One client with at most one connection to one server."""

    def __init__(self, *, world: SimWorld, network: Network, name: str, server: str) -> None:
        self.name = name
        self._world = world
        self._network = network
        self._server = server
        self._link: ClientConnection | None = None
        self._next_correlation_id = 1

    @property
    def in_flight(self) -> int:
        return self._link.in_flight if self._link is not None else 0

    def call(
        self,
        request: Message,
        version: int,
        then: Then,
        *,
        timeout_ms: int = DEFAULT_TIMEOUT_MS,
        is_answered: bool = True,
    ) -> None:
        """Send a request; `then` gets its outcome once, or never if no answer is expected."""
        correlation_id = self._next_correlation_id
        self._next_correlation_id += 1
        header = request_header(
            request.api_key, version, correlation_id=correlation_id, client_id=self.name
        )
        body = encode(request, version)
        frame = b"".join((_SIZE.pack(len(header) + len(body)), header, body))
        call = Call(request, version, correlation_id, frame, then)
        if self._link is None or self._link.is_over:
            self._link = ClientConnection(self._world)
            self._link.open(self._network, local=self.name, remote=self._server)
        self._link.submit(call, is_answered=is_answered, timeout_ms=timeout_ms)

    def introduce(
        self, introduction: Introduction, then: Callable[[CallFailed | None], None]
    ) -> None:
        """The first exchange on a connection; `then` gets None when it has succeeded."""

        def ask(requests: Sequence[Outgoing]) -> None:
            for request, version in requests:
                self.call(request, version, on_answer)

        def on_answer(outcome: Outcome) -> None:
            if isinstance(outcome, CallFailed):
                then(outcome)
                return
            ask(introduction.on_answer(outcome))
            if introduction.is_over:
                then(None)

        ask(introduction.begin())

    def disconnect(self) -> None:
        """Drop the connection; every call under way fails."""
        if self._link is not None:
            self._link.fail("disconnected")
            self._link = None


class ClientConnection:
    """One connection of a client, from its connect to its end."""

    def __init__(self, world: SimWorld) -> None:
        self._world = world
        self._end: End | None = None
        self._is_connected = False
        self.is_over = False
        self._unsent: deque[tuple[Call, bool]] = deque()
        self._awaiting: deque[Call] = deque()
        self._received = bytearray()

    @property
    def in_flight(self) -> int:
        return len(self._unsent) + len(self._awaiting)

    def open(self, network: Network, *, local: str, remote: str) -> None:
        self._end = network.connect(local, remote, self)

    def submit(self, call: Call, *, is_answered: bool, timeout_ms: int) -> None:
        if is_answered:
            call.timer = self._world.after(timeout_ms * 1_000, lambda: self._time_out(call))
        self._unsent.append((call, is_answered))
        if self._is_connected:
            self._send()

    def fail(self, reason: str) -> None:
        """The connection is lost, and with it every answer."""
        if self.is_over:
            return
        self.is_over = True
        assert self._end is not None
        if self._end.is_open:
            self._end.close()
        sent = [(call, True) for call in self._awaiting]
        unsent = [(call, False) for call, is_answered in self._unsent if is_answered]
        self._awaiting.clear()
        self._unsent.clear()
        for call, was_sent in sent + unsent:
            self._finish(call, CallFailed(reason=reason, was_sent=was_sent))

    # Events of the network.

    def on_connected(self) -> None:
        self._is_connected = True
        self._send()

    def on_bytes(self, data: bytes) -> None:
        self._received += data
        while not self.is_over and len(self._received) >= _SIZE.size:
            (size,) = _SIZE.unpack_from(self._received)
            if len(self._received) < _SIZE.size + size:
                return
            frame = bytes(self._received[_SIZE.size : _SIZE.size + size])
            del self._received[: _SIZE.size + size]
            self._on_answer(memoryview(frame))

    def on_closed(self, reason: str) -> None:
        self.fail(reason)

    def _on_answer(self, frame: memoryview) -> None:
        if not self._awaiting:
            raise UnexpectedReply("a reply without a request")
        call = self._awaiting.popleft()
        api_key = call.request.api_key
        correlation_id, position = read_response_header(frame, api_key, call.version)
        if correlation_id != call.correlation_id:
            raise UnexpectedReply(f"answer {correlation_id}, the turn is {call.correlation_id}")
        answer = decode(MESSAGES[api_key][1], frame, call.version, position)
        self._finish(call, answer)

    def _send(self) -> None:
        assert self._end is not None
        while self._unsent:
            call, is_answered = self._unsent.popleft()
            if is_answered:
                self._awaiting.append(call)
            self._end.send(call.frame)

    def _time_out(self, call: Call) -> None:
        if not call.is_over:
            self.fail("timed out")

    def _finish(self, call: Call, outcome: Outcome) -> None:
        call.is_over = True
        if call.timer is not None:
            call.timer.cancel()
        call.then(outcome)
