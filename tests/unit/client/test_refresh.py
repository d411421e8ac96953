"""When a client connects and asks for metadata, whom it asks, and how long it waits in between."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import pytest

from tests.unit.client.fake_answers import metadata
from tests.unit.client.fake_cluster import Close, Drop, FakeCluster, Seen
from tests.unit.client.virtual import Host
from tidelog.client.back_off import BackOff
from tidelog.client.cluster_metadata import Leader
from tidelog.client.config import client_config
from tidelog.client.events import Rebootstrapped
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.messages.api_03_metadata import MetadataRequest, MetadataResponse
from tidelog.core.wire.messages.api_18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from tidelog.core.wire.schema import int16


class Given:
    """A client that is interested in topic t."""

    def __init__(self, *, brokers: int = 3, seed: int = 3, **settings: Any) -> None:
        self.cluster = FakeCluster(brokers=brokers)
        self.cluster.create("t")
        self.clock = self.cluster.clock
        self.began_ms = self.clock.now_ms
        given = {name.replace("_", "."): value for name, value in settings.items()}
        config = client_config({"bootstrap.servers": self.cluster.bootstrap, **given})
        self.host = Host(self.cluster, config, seed=seed)
        self.client = self.host.client
        self.client.refresh.add_topic("t")

    def start(self) -> None:
        self.host.do(lambda now_ms: None)

    def asked(self) -> list[Seen]:
        return self.cluster.requests(MetadataRequest)

    def asked_ms(self) -> list[int]:
        return [each.at_ms - self.began_ms for each in self.asked()]

    def knows(self) -> bool:
        return self.client.metadata.leader(TopicPartition("t", 0)).broker_id is not None


def test_the_first_question_goes_to_one_of_the_given_addresses() -> None:
    given = Given()
    given.start()
    given.clock.run_until(given.knows, within_ms=20)

    assert len(given.asked()) == 1
    assert len(given.cluster.requests(ApiVersionsRequest)) == 1


def test_metadata_is_refreshed_when_it_is_old() -> None:
    given = Given(metadata_max_age_ms=10_000)
    given.start()
    given.clock.run_for(35_000)

    gaps = [after - before for before, after in pairwise(given.asked_ms())]
    assert len(gaps) == 3
    assert all(10_000 <= gap < 10_010 for gap in gaps)


def test_doubts_that_bring_nothing_new_are_asked_more_and_more_slowly() -> None:
    given = Given()
    given.cluster["t-0"].elect(None)
    given.start()
    given.clock.run_for(20_000)

    gaps = [after - before for before, after in pairwise(given.asked_ms())]
    assert gaps[0] < 130, "the first answer was news"
    assert 150 < gaps[2] < 260 and 300 < gaps[3] < 520
    assert all(790 <= gap <= 1_010 for gap in gaps[5:])


def test_a_new_topic_is_asked_for_at_once() -> None:
    given = Given()
    given.cluster["t-0"].elect(None)
    given.start()
    given.clock.run_for(10_000)
    given.cluster.create("u")

    given.host.do(lambda now_ms: given.client.refresh.add_topic("u"))
    given.clock.run_for(5)

    assert [each.name for each in given.asked()[-1].request.topics] == ["t", "u"]
    assert given.client.metadata.partition_count("u") == 1


def test_brokers_that_refuse_are_tried_again_after_growing_pauses_until_one_is_there() -> None:
    given = Given(brokers=1)
    given.cluster.kill(1)
    given.start()
    given.clock.run_for(10_000)
    given.cluster.start(1)
    given.clock.run_until(given.knows, within_ms=1_500)

    assert given.knows()


def test_another_broker_is_asked_when_one_is_dead() -> None:
    given = Given()
    given.start()
    given.clock.run_until(given.knows)
    given.cluster.kill(given.asked()[0].broker_id)
    given.cluster["t-0"].elect(2)

    given.host.do(lambda now_ms: given.client.refresh.request_update())
    given.clock.run_until(
        lambda: given.client.metadata.leader(TopicPartition("t", 0)) == Leader(2, 1),
        within_ms=1_000,
    )


def test_when_all_known_brokers_are_gone_the_given_addresses_are_tried_again() -> None:
    """The cluster moved: the metadata names brokers that nobody can reach."""
    given = Given(metadata_recovery_rebootstrap_trigger_ms=3_000)
    given.start()
    given.clock.run_until(given.knows)
    for broker in (1, 2, 3):
        given.cluster.kill(broker)
    given.host.do(lambda now_ms: given.client.refresh.request_update())
    given.clock.run_for(5_000)
    assert given.host.trace.of(Rebootstrapped)

    for broker in (1, 2, 3):
        given.cluster.start(broker)
    given.clock.run_until(given.knows, within_ms=2_000)


def test_without_rebootstrapping_the_known_brokers_are_all_there_is() -> None:
    given = Given(metadata_recovery_strategy="none", metadata_recovery_rebootstrap_trigger_ms=3_000)
    given.start()
    given.clock.run_until(given.knows)
    for broker in (1, 2, 3):
        given.cluster.kill(broker)
    given.clock.run_for(5_000)

    assert not given.host.trace.of(Rebootstrapped)
    given.cluster.start(2)
    given.cluster["t-0"].elect(2)
    given.clock.run_until(
        lambda: given.client.metadata.leader(TopicPartition("t", 0)) == Leader(2, 1),
        within_ms=3_000,
    )


def test_a_broker_may_ask_for_a_new_beginning() -> None:
    given = Given()
    answers = [MetadataResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)]
    given.start()
    given.clock.run_until(given.knows)

    def rule(broker_id: int, request: Any) -> Any:
        if isinstance(request, MetadataRequest) and answers:
            answer: Any = metadata(given.cluster, given.cluster.brokers[1], request)
            answer.error_code = answers.pop().error_code
            return answer
        return None

    given.cluster.rules.append(rule)
    given.host.do(lambda now_ms: given.client.refresh.request_update())
    given.clock.run_for(2_000)

    assert given.host.trace.of(Rebootstrapped) and given.knows()


def test_a_silent_broker_is_given_up_after_the_request_timeout() -> None:
    given = Given(request_timeout_ms=3_000)

    def silent_at_first(broker_id: int, request: Any) -> Any:
        is_early = given.clock.now_ms < given.began_ms + 3_000
        return Drop() if isinstance(request, MetadataRequest) and is_early else None

    given.cluster.rules.append(silent_at_first)
    given.start()
    given.clock.run_until(given.knows, within_ms=5_000)

    assert given.clock.now_ms - given.began_ms >= 3_000


def test_an_old_broker_says_which_versions_it_speaks() -> None:
    """It does not know today's ApiVersions and answers in its oldest form."""
    given = Given()
    seen_versions: list[int] = []

    def old(broker_id: int, request: Any) -> Any:
        if isinstance(request, ApiVersionsRequest):
            seen_versions.append(given.cluster.seen[-1].version)
            if given.cluster.seen[-1].version > 0:
                return _Version0(error_code=ErrorCode.UNSUPPORTED_VERSION)
        return None

    given.cluster.rules.append(old)
    given.start()
    given.clock.run_until(given.knows, within_ms=50)

    assert seen_versions == [4, 0]


class _Version0(ApiVersionsResponse, api_key=18, versions="0-4", flexible_from=None):
    """Encoded without compact lengths, whatever was asked."""

    error_code: int = int16()


def test_a_connection_that_is_closed_while_it_is_made_ready_is_tried_again() -> None:
    given = Given(brokers=1)
    closed: list[int] = []

    def close_twice(broker_id: int, request: Any) -> Any:
        if isinstance(request, ApiVersionsRequest) and len(closed) < 2:
            closed.append(broker_id)
            return Close()
        return None

    given.cluster.rules.append(close_twice)
    given.start()
    given.clock.run_until(given.knows, within_ms=1_000)

    assert len(closed) == 2


@pytest.mark.parametrize(("failures", "expected"), [(0, 100), (1, 200), (2, 400), (9, 1_000)])
def test_pauses_double_up_to_their_limit_with_some_jitter(failures: int, expected: int) -> None:
    back_off = BackOff(first_ms=100, most_ms=1_000, random=Random(1))
    pauses = [back_off.pause_ms(failures) for _ in range(200)]

    assert min(pauses) >= expected * 0.8 - 1
    assert max(pauses) <= min(expected * 1.2, 1_000)
    assert len(set(pauses)) > 10


def test_a_limit_below_the_first_pause_is_the_pause() -> None:
    assert BackOff(first_ms=500, most_ms=100, random=Random(1)).pause_ms(3) == 100
