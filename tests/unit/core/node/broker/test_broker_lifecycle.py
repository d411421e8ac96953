"""A broker registers, catches up, is let in, and leaves only when it is told that it may."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.unit.core.metadata.given import broker
from tests.unit.core.node.lone_links import LoneLinks
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.broker.broker_lifecycle import (
    WITHOUT_CONTROLLER_MS,
    BrokerLifecycle,
    Refused,
)
from tidelog.core.node.broker.session_watch import SessionWatch
from tidelog.core.node.controller.controller_channel import RETRY_MS
from tidelog.core.node.settings import NodeSettings
from tidelog.core.wire.links import NoAnswer, OnAnswer
from tidelog.core.wire.messages.api_62_broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from tidelog.core.wire.messages.api_63_broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from tidelog.core.wire.schema import Message

INTERVAL_MS = 2_000
BROKER_EPOCH = 77


class FakeNode(LoneLinks):
    """Stands for a node; what it asks the controller waits for the test's answer."""

    def __init__(self, *, clean_broker_epoch: int | None = None) -> None:
        super().__init__()
        self.settings = NodeSettings.of(
            {
                "node.id": "1",
                "listeners": "PLAINTEXT://here:9092",
                "log.dirs": "data",
                "broker.rack": "a",
            }
        )
        self.random = SimpleNamespace(getrandbits=lambda bits: 5, randbytes=lambda n: b"\5" * n)
        self.image = ClusterImage()
        self.metadata = SimpleNamespace(
            cluster_id="cluster",
            identity=SimpleNamespace(directory_ids=(b"d" * 16,)),
            applied_end_offset=0,
            is_active=False,
            requests_sent=0,
        )
        self.session_watch = SessionWatch(
            settings=self.settings,
            metadata=cast("Any", self.metadata),
            alarms=self.alarms,
            trace=self.trace,
        )
        self.asked: list[tuple[Message, OnAnswer]] = []
        self.published = 0
        self.life = BrokerLifecycle(
            settings=self.settings,
            image=self.image,
            metadata=cast("Any", self.metadata),
            directories=SimpleNamespace(
                clean_broker_epoch=lambda: clean_broker_epoch, offline_directory_ids=list
            ),
            channel=cast("Any", self),
            session_watch=self.session_watch,
            on_caught_up=self.publish_partitions,
            alarms=self.alarms,
            clock=self,
            trace=self.trace,
            random=cast("Any", self.random),
        )

    def ask(
        self, request: Message, version: int, then: OnAnswer, *, now_ms: int, timeout_ms: int
    ) -> None:
        self.asked.append((request, then))

    def publish_partitions(self, now_ms: int) -> None:
        self.published += 1

    def answer(self, answer: Message | NoAnswer) -> Message:
        """Answer the oldest question, and give it back."""
        request, then = self.asked.pop(0)
        then(answer, self.now_ms)
        return request

    def register(self) -> None:
        """The controller lets it in, and the metadata shows it."""
        self.life.start(self.now_ms)
        self.answer(BrokerRegistrationResponse(broker_epoch=BROKER_EPOCH))
        self.show_registration()

    def show_registration(self) -> None:
        record = broker(1)
        record.incarnation_id, record.broker_epoch = self.life.incarnation_id, BROKER_EPOCH
        self.image.apply(record)
        self.metadata.applied_end_offset = BROKER_EPOCH + 1
        self.life.end_of_tick(self.now_ms)


def alive(**changed: bool) -> BrokerHeartbeatResponse:
    answer = BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False)
    for name, value in changed.items():
        setattr(answer, name, value)
    return answer


def test_it_introduces_itself_with_its_address_and_rack() -> None:
    node = FakeNode(clean_broker_epoch=31)
    node.life.start(0)

    request, _ = node.asked[0]

    assert isinstance(request, BrokerRegistrationRequest)
    assert (request.broker_id, request.cluster_id, request.rack) == (1, "cluster", "a")
    assert [(each.host, each.port) for each in request.listeners] == [("here", 9092)]
    assert request.previous_broker_epoch == 31


@pytest.mark.scenario("X-7")
def test_without_a_clean_stop_it_claims_none() -> None:
    node = FakeNode(clean_broker_epoch=None)
    node.life.start(0)

    request, _ = node.asked[0]

    assert isinstance(request, BrokerRegistrationRequest)
    assert request.previous_broker_epoch == -1


def test_partitions_are_opened_only_when_the_metadata_shows_this_incarnation() -> None:
    node = FakeNode()
    former = broker(1)
    former.incarnation_id, former.broker_epoch = b"f" * 16, 5
    node.image.apply(former)
    node.life.start(0)
    node.answer(BrokerRegistrationResponse(broker_epoch=BROKER_EPOCH))
    node.life.end_of_tick(0)
    assert node.published == 0, "the metadata still shows the former process"

    node.show_registration()

    assert node.published == 1
    heartbeat = node.answer(alive())
    assert isinstance(heartbeat, BrokerHeartbeatRequest)
    assert not heartbeat.want_fence
    assert heartbeat.current_metadata_offset == BROKER_EPOCH
    assert node.life.is_unfenced


def test_a_registration_without_an_answer_is_tried_again() -> None:
    node = FakeNode()
    node.life.start(0)
    node.answer(NoAnswer("no controller"))
    assert node.asked == []

    node.pass_to(RETRY_MS)

    assert isinstance(node.asked[0][0], BrokerRegistrationRequest)


def test_it_registers_at_once_when_a_controller_is_found() -> None:
    node = FakeNode()
    node.life.start(0)
    node.answer(NoAnswer("no controller"))

    node.life.on_leader_found(1)
    node.pass_to(1)

    assert isinstance(node.asked[0][0], BrokerRegistrationRequest)
    node.pass_to(RETRY_MS)
    assert len(node.asked) == 1, "not twice"


@pytest.mark.scenario("X-36")
def test_a_refused_registration_is_told_and_tried_again() -> None:
    node = FakeNode()
    node.life.start(0)
    node.answer(BrokerRegistrationResponse(error_code=ErrorCode.DUPLICATE_BROKER_REGISTRATION))
    assert Refused(what="registration", error="DUPLICATE_BROKER_REGISTRATION") in node.trace.events

    node.pass_to(1_000)

    assert isinstance(node.asked[0][0], BrokerRegistrationRequest)


def test_it_says_that_it_lives_once_per_interval() -> None:
    node = FakeNode()
    node.register()
    node.answer(alive())
    assert node.asked == []

    node.pass_to(INTERVAL_MS - 1)
    assert node.asked == []
    node.pass_to(INTERVAL_MS)

    assert isinstance(node.asked[0][0], BrokerHeartbeatRequest)


def test_a_broker_that_was_not_let_in_asks_again_soon() -> None:
    node = FakeNode()
    node.register()
    node.answer(alive(is_fenced=True))

    node.pass_to(RETRY_MS)

    assert len(node.asked) == 1
    assert not node.life.is_unfenced


@pytest.mark.scenario("D1-T2")
def test_a_broker_that_was_forgotten_registers_again() -> None:
    """Somebody unregistered it although it lives: without a registration nobody listens to it."""
    node = FakeNode()
    node.register()
    node.answer(BrokerHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))

    node.pass_to(1_000)
    again = node.answer(BrokerRegistrationResponse(broker_epoch=BROKER_EPOCH + 7))

    assert isinstance(again, BrokerRegistrationRequest)
    assert again.incarnation_id == node.life.incarnation_id
    assert node.life.broker_epoch == BROKER_EPOCH + 7
    assert node.published == 1, "its partitions stay open"


def test_it_leaves_when_the_controller_says_that_it_may() -> None:
    node = FakeNode()
    node.image.apply(broker(2))
    node.register()
    node.answer(alive())

    node.life.leave(0)

    assert not node.life.may_stop
    heartbeat = node.answer(alive())
    assert isinstance(heartbeat, BrokerHeartbeatRequest)
    assert heartbeat.want_shut_down
    assert not node.life.may_stop, "its leaderships have not moved yet"
    node.pass_to(RETRY_MS)
    node.answer(alive(should_shut_down=True))
    assert node.life.may_stop


def test_the_wish_to_leave_is_told_after_a_heartbeat_under_way() -> None:
    node = FakeNode()
    node.image.apply(broker(2))
    node.register()
    node.life.leave(0)
    assert len(node.asked) == 1, "one question at a time"

    node.answer(alive())

    second = node.answer(alive(should_shut_down=True))
    assert isinstance(second, BrokerHeartbeatRequest)
    assert second.want_shut_down
    assert node.life.may_stop


def test_alone_it_may_stop_at_once() -> None:
    node = FakeNode()
    node.register()
    node.answer(alive())

    node.life.leave(0)

    assert node.life.may_stop


def test_it_leaves_without_a_controller_after_a_while() -> None:
    """All nodes were asked to stop at once: nobody is left to hand anything over to."""
    node = FakeNode()
    node.image.apply(broker(2))
    node.register()
    node.answer(alive())
    node.life.leave(0)

    now_ms = 0
    while now_ms < WITHOUT_CONTROLLER_MS:
        node.answer(NoAnswer("no controller"))
        assert not node.life.may_stop
        now_ms += RETRY_MS
        node.pass_to(now_ms)
    node.answer(NoAnswer("no controller"))

    assert node.life.may_stop
