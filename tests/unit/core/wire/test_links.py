"""Links: answers find their askers, and every asker hears exactly once."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tidelog.core.wire.codec import encode
from tidelog.core.wire.headers import read_request_header, response_header
from tidelog.core.wire.links import Link, Links, NoAnswer
from tidelog.core.wire.messages.api_22_init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)

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
