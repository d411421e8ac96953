"""Links: answers find their askers, and every asker hears exactly once."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from tidelog.core.wire.codec import decode, encode
from tidelog.core.wire.headers import read_request_header, response_header
from tidelog.core.wire.links import INTRODUCTION_MS_MAX, Link, Links, NoAnswer
from tidelog.core.wire.member_proof import MemberProof
from tidelog.core.wire.messages.api_17_sasl_handshake import SaslHandshakeResponse
from tidelog.core.wire.messages.api_22_init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from tidelog.core.wire.messages.api_36_sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from tidelog.core.wire.schema import Message
from tidelog.core.wire.scram import Credentials, ScramServer

API_KEY, VERSION = 22, 4


class FakeWires:
    def __init__(self) -> None:
        self.connected: list[tuple[int, str, int, str]] = []
        self.sent: list[tuple[int, bytes]] = []
        self.dropped: list[int] = []

    def connect(self, link: int, host: str, port: int, purpose: str) -> None:
        self.connected.append((link, host, port, purpose))

    def send(self, link: int, parts: Sequence[bytes | bytearray | memoryview]) -> None:
        self.sent.append((link, b"".join(bytes(part) for part in parts)))

    def disconnect(self, link: int) -> None:
        self.dropped.append(link)

    def answer_to(self, at: int, producer_id: int) -> memoryview:
        """The answer to the request that was sent as number `at`."""
        header = read_request_header(memoryview(self.sent[at][1])[4:])
        body = encode(InitProducerIdResponse(producer_id=producer_id), VERSION)
        return memoryview(response_header(API_KEY, VERSION, header.correlation_id) + body)


class Stage:
    def __init__(self) -> None:
        self.wires = FakeWires()
        self.links = Links(self.wires, client_id="me")
        self.answers: list[object] = []
        self.ends: list[str] = []
        self.link = self.links.open(
            "there", 9092, "quorum", on_closed=lambda why, now_ms: self.ends.append(why)
        )

    def ask(self, *, timeout_ms: int = 1_000, now_ms: int = 0) -> None:
        def then(answer: object, now_ms: int) -> None:
            got = answer.producer_id if isinstance(answer, InitProducerIdResponse) else answer
            self.answers.append(got)

        request = InitProducerIdRequest(transactional_id=None)
        self.link.ask(request, VERSION, then, timeout_ms=timeout_ms, now_ms=now_ms)


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_what_is_asked_before_the_link_opens_leaves_when_it_does(stage: Stage) -> None:
    stage.ask()
    assert stage.wires.connected == [(stage.link.id, "there", 9092, "quorum")]
    assert stage.wires.sent == []

    stage.links.on_link_opened(stage.link.id, 1)

    assert len(stage.wires.sent) == 1
    size = int.from_bytes(stage.wires.sent[0][1][:4])
    assert size == len(stage.wires.sent[0][1]) - 4


def test_answers_find_their_askers_in_order(stage: Stage) -> None:
    stage.links.on_link_opened(stage.link.id, 1)
    stage.ask()
    stage.ask()

    for at, producer_id in ((0, 70), (1, 71)):
        stage.links.on_answer(stage.link.id, stage.wires.answer_to(at, producer_id), 2)

    assert stage.answers == [70, 71]
    assert stage.link.unanswered == 0


def test_the_end_of_a_link_is_told_to_every_asker_and_then_to_its_owner(stage: Stage) -> None:
    stage.ask()
    stage.ask()

    stage.links.on_link_closed(stage.link.id, "refused", 5)

    assert stage.answers == [NoAnswer("refused")] * 2
    assert stage.ends == ["refused"]
    assert stage.link.is_closed


def test_a_request_without_an_answer_in_time_ends_the_link(stage: Stage) -> None:
    stage.links.on_link_opened(stage.link.id, 0)
    stage.ask(timeout_ms=500)
    stage.ask(timeout_ms=100)
    assert stage.links.next_deadline_ms == 100

    stage.links.expire(99)
    assert stage.answers == []
    stage.links.expire(100)

    assert stage.answers == [NoAnswer("timed out")] * 2
    assert stage.ends == ["timed out"]
    assert stage.wires.dropped == [stage.link.id]
    assert stage.links.next_deadline_ms is None


def test_a_closed_link_tells_nobody_and_hears_nothing(stage: Stage) -> None:
    stage.links.on_link_opened(stage.link.id, 0)
    stage.ask()
    answer = stage.wires.answer_to(0, 70)

    stage.link.close()
    stage.links.on_answer(stage.link.id, answer, 1)
    stage.links.on_link_closed(stage.link.id, "closed", 1)

    assert stage.answers == []
    assert stage.ends == []
    assert stage.wires.dropped == [stage.link.id]


def test_an_answer_that_nobody_asked_for_ends_the_link(stage: Stage) -> None:
    stage.links.on_link_opened(stage.link.id, 0)
    stage.ask()
    answer = stage.wires.answer_to(0, 70)
    stage.links.on_answer(stage.link.id, answer, 1)

    stage.links.on_answer(stage.link.id, answer, 2)

    assert stage.answers == [70]
    assert [end.split(":")[0] for end in stage.ends] == ["malformed answer"]


@pytest.mark.parametrize("cut", [0, 3, 6, 12])
def test_a_malformed_answer_counts_as_none(stage: Stage, cut: int) -> None:
    stage.links.on_link_opened(stage.link.id, 0)
    stage.ask()
    stage.ask()

    stage.links.on_answer(stage.link.id, stage.wires.answer_to(0, 70)[:cut], 1)

    assert all(isinstance(answer, NoAnswer) for answer in stage.answers)
    assert len(stage.answers) == 2
    assert stage.link.is_closed


def test_an_asker_may_close_the_link_in_its_answer(stage: Stage) -> None:
    stage.links.on_link_opened(stage.link.id, 0)
    link: Link = stage.link
    request = InitProducerIdRequest(transactional_id=None)
    link.ask(request, VERSION, lambda answer, now_ms: link.close(), timeout_ms=9, now_ms=0)

    stage.links.on_answer(link.id, stage.wires.answer_to(0, 1), 1)

    assert link.is_closed
    assert stage.ends == []


# A link that begins with an introduction: MemberProof on both sides of a pair of scripts.

SECRET = "thirty-two characters or a few more"


class Introduced:
    """A link of a node, and what the other side makes of its first frames."""

    def __init__(self, secret: str = SECRET) -> None:
        self.wires = FakeWires()
        self.refused: list[str] = []
        self.links = Links(self.wires, client_id="node-1", introductions=self)
        self.server = ScramServer(Credentials.of(secret), bytes(24))
        self.answers: list[object] = []
        self.ends: list[str] = []
        self.opened: list[int] = []
        self.link = self.links.open(
            "there",
            9092,
            "quorum",
            on_opened=self.opened.append,
            on_closed=lambda why, now_ms: self.ends.append(why),
        )
        self.link.ask(
            InitProducerIdRequest(transactional_id=None),
            VERSION,
            lambda answer, now_ms: self.answers.append(answer),
            timeout_ms=60_000,
            now_ms=0,
        )

    def introduction(self) -> MemberProof:
        return MemberProof(Credentials.of(SECRET), user="node-1", random=Random(1))

    def on_refused(self, host: str, port: int, reason: str, now_ms: int) -> None:
        self.refused.append(f"{host}:{port}: {reason}")

    def keys(self) -> list[int]:
        return [read_request_header(memoryview(sent)[4:]).api_key for _, sent in self.wires.sent]

    def answer(self, at: int, message: Message, now_ms: int = 1) -> None:
        header = read_request_header(memoryview(self.wires.sent[at][1])[4:])
        key, version, correlation_id = header[:3]
        frame = response_header(key, version, correlation_id) + encode(message, version)
        self.links.on_answer(self.link.id, memoryview(frame), now_ms)

    def said(self, at: int) -> bytes:
        """The SCRAM message in a frame that was sent."""
        frame = memoryview(self.wires.sent[at][1])[4:]
        header = read_request_header(frame)
        body = decode(SaslAuthenticateRequest, frame[header.body_position :], header.api_version)
        return bytes(body.auth_bytes)

    def challenge(self) -> None:
        self.answer(0, SaslHandshakeResponse(mechanisms=["SCRAM-SHA-256"]))
        first = self.server.first(self.said(1))
        self.answer(1, SaslAuthenticateResponse(auth_bytes=first))


def test_requests_leave_when_both_sides_know_each_other() -> None:
    stage = Introduced()
    stage.links.on_link_opened(stage.link.id, 1)
    assert stage.keys() == [17, 36]

    stage.challenge()
    assert stage.keys() == [17, 36, 36]
    assert not stage.link.is_open

    final = stage.server.final(stage.said(2))
    stage.answer(2, SaslAuthenticateResponse(auth_bytes=final), now_ms=5)

    assert stage.keys() == [17, 36, 36, 22]
    assert stage.opened == [5]
    stage.answer(3, InitProducerIdResponse(producer_id=7))
    assert stage.answers == [InitProducerIdResponse(producer_id=7)]


def test_a_server_that_only_says_yes_is_told_nothing() -> None:
    stage = Introduced()
    stage.links.on_link_opened(stage.link.id, 1)
    stage.challenge()

    stage.answer(2, SaslAuthenticateResponse(auth_bytes=b"v=" + b"A" * 43 + b"="))

    assert stage.keys() == [17, 36, 36]
    reason = "the server does not know the secret"
    assert stage.ends == [f"not introduced: {reason}"]
    assert stage.refused == [f"there:9092: {reason}"]
    assert stage.answers == [NoAnswer(f"not introduced: {reason}")]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (34, "the other node has no tidelog.cluster.secret"),
        (33, "the other node answered UNSUPPORTED_SASL_MECHANISM"),
    ],
)
def test_a_handshake_that_is_refused_ends_the_link(code: int, reason: str) -> None:
    stage = Introduced()
    stage.links.on_link_opened(stage.link.id, 1)

    stage.answer(0, SaslHandshakeResponse(error_code=code))

    assert stage.refused == [f"there:9092: {reason}"]
    assert stage.wires.dropped == [stage.link.id]


def test_an_introduction_that_nobody_answers_ends_the_link() -> None:
    stage = Introduced()
    stage.links.on_link_opened(stage.link.id, 1)
    assert stage.links.next_deadline_ms == 1 + INTRODUCTION_MS_MAX

    stage.links.expire(INTRODUCTION_MS_MAX)
    assert stage.ends == []
    stage.links.expire(1 + INTRODUCTION_MS_MAX)

    assert stage.ends == ["timed out"]
    assert stage.answers == [NoAnswer("timed out")]


def test_an_answer_out_of_order_ends_an_introduction() -> None:
    stage = Introduced()
    stage.links.on_link_opened(stage.link.id, 1)

    stage.answer(1, SaslAuthenticateResponse())

    assert stage.ends[0].startswith("malformed answer: it answers")


def test_a_probe_needs_no_introduction() -> None:
    stage = Introduced()
    probe = stage.links.open("there", 9092, "probe", is_introduced=False)

    stage.links.on_link_opened(probe.id, 1)

    assert probe.is_open
    assert stage.wires.sent == []
