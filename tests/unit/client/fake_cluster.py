"""A scripted cluster: brokers that answer like Kafka's, unless a test tells them otherwise.

Each partition has one log, the leader's. What a change of leaders keeps of it is the test's choice.
A *rule* sees each request before the broker does, and may give an answer, drop the request, or
close the connection.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.unit.client import fake_answers
from tests.unit.client.fake_fetch import Parked
from tests.unit.client.fake_log import FakePartition
from tests.unit.client.virtual import CONNECT_MS, TRAVEL_MS, Clock, Host
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.codec import decode, encode
from tidelog.core.wire.headers import read_request_header, response_header
from tidelog.core.wire.messages import MESSAGES
from tidelog.core.wire.schema import Message

PORT = 9092


class Drop:
    """The request is taken and never answered, nor any after it: answers keep their order."""


class Swallow:
    """The request is carried out and never answered, nor is any after it."""


class DropAnswer:
    """The request is carried out, and its answer is lost with the connection."""


class Close:
    """The connection is closed instead."""


class Seen(NamedTuple):
    """A request as a broker got it."""

    at_ms: int
    broker_id: int
    request: Any
    version: int


Rule = Callable[[int, Any], Message | Parked | Drop | Swallow | DropAnswer | Close | None]


class FakeBroker:
    """One broker: up (answers), silent (says nothing), or down (refuses connections)."""

    def __init__(self, broker_id: int) -> None:
        self.id = broker_id
        self.host = f"b{broker_id}"
        self.rack: str | None = None
        self.is_up = True
        self.is_silent = False
        self.sockets: list[FakeSocket] = []
        self.sessions: dict[int, dict[TopicPartition, Any]] = {}


class FakeCluster:
    """Brokers and topics, and what happened to them."""

    def __init__(self, clock: Clock | None = None, *, brokers: int = 3) -> None:
        self.clock = clock or Clock()
        self.brokers = {each: FakeBroker(each) for each in range(1, brokers + 1)}
        self.topics: dict[str, bytes] = {}
        self.partitions: dict[TopicPartition, FakePartition] = {}
        self.rules: list[Rule] = []
        self.seen: list[Seen] = []
        self.api_versions: dict[int, tuple[int, int]] = {}
        self.next_producer_id = 1_234
        self.gives_hints = True

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{each.host}:{PORT}" for each in self.brokers.values())

    def create(self, topic: str, *, partitions: int = 1, leader: int = 1) -> None:
        self.topics[topic] = bytes(15) + bytes([len(self.topics) + 10])
        for index in range(partitions):
            self.partitions[TopicPartition(topic, index)] = FakePartition(leader=leader)

    def __getitem__(self, name: str) -> FakePartition:
        topic, _, index = name.rpartition("-")
        return self.partitions[TopicPartition(topic, int(index))]

    def requests(self, api: type[Message], broker_id: int | None = None) -> list[Seen]:
        return [
            each
            for each in self.seen
            if isinstance(each.request, api) and broker_id in (None, each.broker_id)
        ]

    # What happens to brokers

    def kill(self, broker_id: int) -> None:
        """SIGKILL: its sockets close at once and new ones are refused."""
        broker = self.brokers[broker_id]
        broker.is_up = False
        sockets, broker.sockets = broker.sockets, []
        for each in sockets:
            each.close("closed")

    def start(self, broker_id: int) -> None:
        self.brokers[broker_id].is_up = True
        self.brokers[broker_id].is_silent = False

    def pause(self, broker_id: int) -> None:
        """SIGSTOP: connections open, and nobody answers."""
        self.brokers[broker_id].is_silent = True

    # The wire

    def connect(self, host: Host, link: int, name: str, port: int) -> FakeSocket:
        broker = next(each for each in self.brokers.values() if each.host == name)
        assert port == PORT
        made = FakeSocket(self, broker, host, link)
        self.clock.after(CONNECT_MS, made.arrive)
        return made

    def serve(self, socket: FakeSocket, frame: memoryview) -> None:
        broker = socket.broker
        header = read_request_header(frame)
        request_type = MESSAGES[header.api_key][0]
        request = decode(request_type, frame, header.api_version, header.body_position)
        self.seen.append(Seen(self.clock.now_ms, broker.id, request, header.api_version))
        verdict: Any = None
        for rule in self.rules:
            verdict = rule(broker.id, request)
            if verdict is not None:
                break
        if isinstance(verdict, Drop):
            socket.reserve()
            return
        if isinstance(verdict, Close):
            socket.close("closed")
            return
        answer = verdict
        if not isinstance(verdict, Message | Parked):
            answer = fake_answers.answer(self, broker, request)
        if answer is None:
            return
        number = socket.reserve()
        if isinstance(verdict, DropAnswer):
            socket.close("closed")
        if isinstance(verdict, DropAnswer | Swallow):
            return

        def reply(answer: Message) -> None:
            body = response_header(header.api_key, header.api_version, header.correlation_id)
            socket.answer(number, body + encode(answer, header.api_version))

        if isinstance(answer, Parked):
            answer.wait(self, broker, reply)
        else:
            reply(answer)


class FakeSocket:
    """One connection of a host to a broker."""

    def __init__(self, cluster: FakeCluster, broker: FakeBroker, host: Host, link: int) -> None:
        self.broker = broker
        self._cluster = cluster
        self._host = host
        self._link = link
        self._is_open = True
        self._answers: list[bytes | None] = []
        """In the order of the requests; None while one is being worked on."""
        self._told = 0

    def arrive(self) -> None:
        if not self._is_open:
            return
        if not self.broker.is_up:
            self.close("refused")
            return
        self.broker.sockets.append(self)
        self._host.opened(self._link)

    def send(self, data: bytes) -> None:
        (size,) = struct.unpack_from(">i", data)
        assert size == len(data) - 4, "one whole frame"
        self._cluster.clock.after(TRAVEL_MS, lambda: self._reach(data[4:]))

    def _reach(self, frame: bytes) -> None:
        if self._is_open and self.broker.is_up and not self.broker.is_silent:
            self._cluster.serve(self, memoryview(frame))

    def reserve(self) -> int:
        """A place in the order of answers."""
        self._answers.append(None)
        return len(self._answers) - 1

    def answer(self, number: int, frame: bytes) -> None:
        self._answers[number] = frame
        while self._told < len(self._answers) and self._answers[self._told] is not None:
            self._leave(self._answers[self._told] or b"")
            self._told += 1

    def _leave(self, frame: bytes) -> None:
        self._cluster.clock.after(TRAVEL_MS, lambda: self._tell(frame))

    def _tell(self, frame: bytes) -> None:
        if self._is_open:
            self._host.answered(self._link, frame)

    def close(self, reason: str) -> None:
        if self._is_open:
            self._is_open = False
            self._cluster.clock.after(TRAVEL_MS, lambda: self._host.closed(self._link, reason))

    def drop(self) -> None:
        self._is_open = False
        if self in self.broker.sockets:
            self.broker.sockets.remove(self)


def once(rule: Rule) -> Rule:
    """A rule for the first request to which it has something to say."""
    used: list[bool] = []

    def first(broker_id: int, request: Any) -> Any:
        verdict = None if used else rule(broker_id, request)
        if verdict is not None:
            used.append(True)
        return verdict

    return first
