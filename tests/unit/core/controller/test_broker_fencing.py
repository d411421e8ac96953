"""Brokers fenced, let in, leaving and forgotten, and what becomes of their partitions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.core.controller.cluster import (
    CAREFUL,
    Choices,
    applied,
    cluster,
    directory,
    roles,
    state,
)
from tidelog.core.controller.broker_fencing import (
    decide_directories_lost,
    decide_fencing,
    decide_forgetting,
    decide_leaving,
    decide_unfencing,
)
from tidelog.core.controller.events import (
    BrokerFenced,
    BrokerLeaves,
    BrokerUnfenced,
    ElectionKind,
    LeaderElected,
    LeaderLost,
)


@pytest.mark.scenario("D3-T9", "D3-T10", "D5-B2")
def test_a_fenced_broker_leaves_the_in_sync_set_and_its_successor_leads_at_once() -> None:
    image = cluster(state(1, 2, 3))

    changes = decide_fencing(image, CAREFUL, broker_ids=(1,), reason="test")

    assert changes.events == [
        BrokerFenced(broker_id=1, broker_epoch=1, reason="test"),
        LeaderElected(topic="t", partition=0, leader=2, leader_epoch=1, kind=ElectionKind.CLEAN),
    ]
    assert roles(applied(image, changes)) == (2, (2, 3), (), ())
    assert image.brokers[1].is_fenced


def test_a_follower_that_is_fenced_costs_no_leader_epoch() -> None:
    image = cluster(state(1, 2, 3))

    after = applied(image, decide_fencing(image, CAREFUL, broker_ids=(2,), reason="test"))

    assert roles(after) == (1, (1, 3), (), ())
    assert after.leader_epoch == 0


def test_a_broker_is_fenced_once() -> None:
    image = cluster(state(1, 2, 3, isr=(2, 3)), fenced=[1])

    assert decide_fencing(image, CAREFUL, broker_ids=(1,), reason="test").records == []


def test_brokers_whose_sessions_end_together_are_fenced_in_one_decision() -> None:
    """Nobody of them leads for a moment, and all that were in sync may lead when they return."""
    image = cluster(state(1, 2, 3))

    changes = decide_fencing(image, CAREFUL, broker_ids=(2, 1, 3), reason="test")

    assert changes.events == [
        BrokerFenced(broker_id=2, broker_epoch=2, reason="test"),
        BrokerFenced(broker_id=1, broker_epoch=1, reason="test"),
        BrokerFenced(broker_id=3, broker_epoch=3, reason="test"),
        LeaderLost(topic="t", partition=0, leader_epoch=1),
    ]
    assert roles(applied(image, changes)) == (None, (), (1, 2, 3), (1,))


def test_without_eligible_replicas_the_last_leader_stays_in_sync_when_all_are_fenced() -> None:
    image = cluster(state(2, 1, 3))

    changes = decide_fencing(
        image, Choices(keeps_eligible=False), broker_ids=(1, 2, 3), reason="test"
    )

    assert roles(applied(image, changes)) == (None, (2,), (), ())


@pytest.mark.scenario("D3-C7a")
def test_a_partition_goes_offline_rather_than_to_a_replica_that_lacks_records() -> None:
    image = cluster(state(1, 2, 3, isr=(1,)), fenced=[2])

    changes = decide_fencing(image, CAREFUL, broker_ids=(1,), reason="test")

    assert changes.events[1:] == [LeaderLost(topic="t", partition=0, leader_epoch=1)]
    assert roles(applied(image, changes)) == (None, (), (1,), (1,))


@pytest.mark.scenario("D3-C7b")
def test_where_it_is_allowed_a_replica_that_lacks_records_leads() -> None:
    image = cluster(state(1, 2, 3, isr=(1,)), fenced=[2])

    changes = decide_fencing(image, Choices(unclean=True), broker_ids=(1,), reason="test")

    assert roles(applied(image, changes)) == (3, (3,), (), ())


def test_unfencing_leads_what_nobody_leads() -> None:
    image = cluster(
        state(1, 2, 3, isr=(), leader=None, eligible=(1, 2), last_known=(1,)),
        state(2, 3, 1, isr=(2,)),
        fenced=[1],
    )

    changes = decide_unfencing(image, CAREFUL, broker_id=1)

    assert changes.events == [
        BrokerUnfenced(broker_id=1, broker_epoch=1),
        LeaderElected(topic="t", partition=0, leader=1, leader_epoch=1, kind=ElectionKind.ELIGIBLE),
    ]
    assert roles(applied(image, changes)) == (1, (1,), (2,), ())
    assert image.topics["t"].partitions[1].partition_epoch == 0
    assert image.brokers[1].is_active


@pytest.mark.scenario("X-8")
def test_unfencing_another_does_not_elect_a_last_known_leader_that_is_still_fenced() -> None:
    image = cluster(state(1, 2, 3, isr=(), leader=None, last_known=(1,)), fenced=[1, 2, 3])

    after = applied(image, decide_unfencing(image, CAREFUL, broker_id=2))

    assert after.leader is None
    assert after.leader_epoch == 0


def test_a_leaving_broker_hands_over_while_it_is_not_fenced_yet() -> None:
    image = cluster(state(1, 2, 3), state(2, 3, 1))

    changes = decide_leaving(image, CAREFUL, broker_id=1)

    assert BrokerLeaves(broker_id=1, broker_epoch=1) in changes.events
    assert roles(applied(image, changes)) == (2, (2, 3), (), ())
    assert image.topics["t"].partitions[1].isr == (2, 3)
    assert image.brokers[1].in_controlled_shutdown
    assert not image.brokers[1].is_fenced
    assert not image.index.leads_any(1)


def test_a_forgotten_broker_is_in_no_list_but_that_of_the_replicas() -> None:
    image = cluster(state(1, 2, 3), state(2, 1, isr=(2,), eligible=(1,)), fenced=[])

    after = applied(image, decide_forgetting(image, CAREFUL, broker_id=1))

    assert roles(after) == (2, (2, 3), (), ())
    assert after.replicas == (1, 2, 3)
    assert roles(image.topics["t"].partitions[1]) == (2, (2,), (), ())
    assert 1 not in image.brokers


def test_what_is_in_a_lost_directory_leaves_and_the_rest_of_the_broker_goes_on() -> None:
    here = state(1, 2, 3)
    there = replace(here, directories=(directory(9), directory(2), directory(3)))
    image = cluster(here, there)
    image.brokers[1] = replace(image.brokers[1], log_directories=(directory(1), directory(9)))

    changes = decide_directories_lost(image, CAREFUL, broker_id=1, lost=[directory(1)])

    assert roles(applied(image, changes)) == (2, (2, 3), (), ())
    assert image.topics["t"].partitions[1] == there
    assert image.brokers[1].log_directories == (directory(9),)
    assert not image.brokers[1].is_fenced
    again = decide_directories_lost(image, CAREFUL, broker_id=1, lost=[directory(1)])
    assert again.records == []


def test_a_copy_in_a_lost_directory_cannot_lead_though_its_broker_lives() -> None:
    image = cluster(state(1, 2, 3, isr=(3,)), fenced=[2])
    image.brokers[1] = replace(image.brokers[1], log_directories=(directory(9),))

    changes = decide_fencing(image, Choices(unclean=True), broker_ids=(3,), reason="test")

    assert applied(image, changes).leader is None
