"""Elections on request and in rounds: preferred, unclean, refused."""

from __future__ import annotations

import pytest

from tests.unit.core.controller.cluster import CAREFUL, Choices, applied, cluster, roles, state
from tests.unit.core.metadata.given import apply
from tidelog.core.controller import elect_leaders
from tidelog.core.controller.elect_leaders import (
    ElectionRequest,
    decide_balance,
    decide_elections,
    decide_unclean_round,
    everywhere,
)
from tidelog.core.controller.election import Election
from tidelog.core.controller.events import ElectionKind, LeaderElected
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.model.errors import ErrorCode


def error(image: ClusterImage, election: Election, partition: int = 0, topic: str = "t") -> int:
    request = ElectionRequest(topic=topic, partition=partition)
    changes, (outcome,) = decide_elections(image, CAREFUL, [request], election)
    apply(image, changes.records)
    return ErrorCode.NONE if outcome.refusal is None else outcome.refusal.error


@pytest.mark.scenario("D5-B5")
def test_the_preferred_replica_leads_again_when_asked_for() -> None:
    image = cluster(state(1, 2, 3, leader=2))

    changes, (outcome,) = decide_elections(
        image, CAREFUL, [ElectionRequest(topic="t", partition=0)], Election.PREFERRED
    )

    assert outcome.refusal is None
    assert changes.events == [
        LeaderElected(topic="t", partition=0, leader=1, leader_epoch=1, kind=ElectionKind.PREFERRED)
    ]
    assert roles(applied(image, changes)) == (1, (1, 2, 3), (), ())


def test_each_refusal_of_a_preferred_election_has_its_code() -> None:
    image = cluster(
        state(1, 2, 3),
        state(1, 2, 3, isr=(2, 3)),
        state(3, 2, 1, leader=2),
        fenced=[3],
    )

    assert error(image, Election.PREFERRED, 0) == 84, "it leads already"
    assert error(image, Election.PREFERRED, 1) == 80, "it is not in sync"
    assert error(image, Election.PREFERRED, 2) == 80, "it is fenced"
    assert error(image, Election.PREFERRED, 3) == 3
    assert error(image, Election.PREFERRED, 0, topic="u") == 3


@pytest.mark.scenario("D5-U2")
def test_an_unclean_election_on_request_needs_no_permission_of_the_topic() -> None:
    image = cluster(state(1, 2, 3, isr=(), leader=None, eligible=(1,)), fenced=[1, 2])

    assert error(image, Election.UNCLEAN) == ErrorCode.NONE
    after = image.topics["t"].partitions[0]
    assert roles(after) == (3, (3,), (), ())
    assert after.leader_is_recovering
    assert error(image, Election.UNCLEAN) == 84


def test_an_unclean_election_needs_somebody_alive() -> None:
    image = cluster(state(1, 2, 3, isr=(), leader=None, eligible=(1,)), fenced=[1, 2, 3])

    assert error(image, Election.UNCLEAN) == 83


def test_a_partition_that_is_named_twice_is_elected_once() -> None:
    image = cluster(state(1, 2, 3, leader=2))
    request = ElectionRequest(topic="t", partition=0)

    changes, outcomes = decide_elections(image, CAREFUL, [request, request], Election.PREFERRED)

    assert len(changes.records) == 1
    assert [each.refusal and each.refusal.error for each in outcomes] == [None, 84]


def test_all_partitions_are_meant_when_none_is_named() -> None:
    image = cluster(state(1, 2, 3), state(2, 3, 1))

    assert everywhere(image) == [
        ElectionRequest(topic="t", partition=0),
        ElectionRequest(topic="t", partition=1),
    ]


@pytest.mark.scenario("D5-R6")
def test_leaderships_go_back_to_preferred_replicas_that_are_in_sync() -> None:
    image = cluster(state(1, 2, 3, leader=2), state(1, 2, 3, isr=(2,)), state(2, 1, 3))

    changes, is_more = decide_balance(image, CAREFUL)

    assert not is_more
    assert len(changes.records) == 1
    assert applied(image, changes).leader == 1
    assert decide_balance(image, CAREFUL)[0].records == []


def test_a_round_has_a_limit_and_says_that_there_is_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elect_leaders, "ELECTIONS_PER_ROUND", 2)
    image = cluster(*(state(1, 2, 3, leader=2) for _ in range(3)))

    changes, is_more = decide_balance(image, CAREFUL)
    apply(image, changes.records)

    assert (len(changes.records), is_more) == (2, True)
    assert len(decide_balance(image, CAREFUL)[0].records) == 1


def test_leaderless_partitions_are_led_when_their_topic_may_lose_records() -> None:
    image = cluster(state(1, 2, 3, isr=(), leader=None, eligible=(1,)), fenced=[1])

    assert decide_unclean_round(image, CAREFUL)[0].records == []
    changes, _ = decide_unclean_round(image, Choices(unclean=True))

    assert roles(applied(image, changes)) == (2, (2,), (), ())
