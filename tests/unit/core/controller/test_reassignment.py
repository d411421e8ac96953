"""Reassignments: what is refused, how they begin, end and are cancelled, record by record."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.core.controller.cluster import (
    CAREFUL,
    ID,
    KEY,
    Choices,
    broker,
    directory,
    state,
)
from tests.unit.core.metadata import given
from tidelog.core.controller.alter_partition import IsrChange, Member, decide_isr_changes
from tidelog.core.controller.broker_fencing import decide_fencing
from tidelog.core.controller.events import ReassignmentEnded, ReassignmentStarted
from tidelog.core.controller.reassignment import (
    ReassignmentRequest,
    decide_reassignments,
)
from tidelog.core.metadata.cluster import PartitionState
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.model.errors import ErrorCode

Ids = tuple[int, ...]


def six_brokers(*states: PartitionState, fenced: Ids = ()) -> ClusterImage:
    brokers = [broker(each, fenced=each in fenced) for each in range(1, 7)]
    return given.image(*brokers, *given.topic("t", 1, *(states or (state(1, 2, 3),))))


def request(replicas: Ids | None, *, index: int = 0, topic: str = "t") -> ReassignmentRequest:
    return ReassignmentRequest(topic=topic, partition=index, replicas=replicas)


def reassign(
    image: ClusterImage,
    replicas: Ids | None,
    *,
    choices: Choices = CAREFUL,
    may_change_factor: bool = True,
) -> tuple[ErrorCode, list[object]]:
    changes, (outcome,) = decide_reassignments(
        image, choices, [request(replicas)], may_change_factor=may_change_factor
    )
    given.apply(image, changes.records)
    return (outcome.refusal.error if outcome.refusal else ErrorCode.NONE), changes.events


def partition(image: ClusterImage) -> PartitionState:
    return image.topics["t"].partitions[0]


def moving(image: ClusterImage) -> tuple[Ids, Ids, Ids]:
    now = partition(image)
    return now.replicas, now.adding_replicas, now.removing_replicas


def grow(image: ClusterImage, *isr: int) -> ErrorCode:
    """The leader asks for this in-sync set."""
    now = partition(image)
    assert now.leader is not None
    wanted = IsrChange(
        key=KEY,
        leader_epoch=now.leader_epoch,
        partition_epoch=now.partition_epoch,
        members=tuple(Member(each, each) for each in isr),
        leader_is_recovering=False,
    )
    decision = decide_isr_changes(image, CAREFUL, leader=now.leader, requests=[wanted])
    given.apply(image, decision.records)
    return decision.outcomes[0].error


@pytest.mark.scenario("X-40")
def test_new_replicas_join_the_assignment_and_count_for_nothing_yet() -> None:
    image = six_brokers()

    error, events = reassign(image, (4, 5, 6))

    now = partition(image)
    assert error == ErrorCode.NONE
    assert moving(image) == ((4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3))
    assert (now.leader, now.isr, now.leader_epoch) == (1, (1, 2, 3), 0)
    assert now.directories == tuple(map(directory, (4, 5, 6, 1, 2, 3)))
    assert [type(event) for event in events] == [ReassignmentStarted]


@pytest.mark.scenario("X-40", "D1-T4")
def test_it_ends_with_the_last_that_comes_into_sync_and_the_leader_moves() -> None:
    image = six_brokers()
    reassign(image, (4, 5, 6))

    assert grow(image, 1, 2, 3, 4) == ErrorCode.NONE
    assert grow(image, 1, 2, 3, 4, 5) == ErrorCode.NONE
    assert partition(image).leader_epoch == 0, "nobody has left yet"
    assert grow(image, 1, 2, 3, 4, 5, 6) == ErrorCode.NEW_LEADER_ELECTED

    now = partition(image)
    assert moving(image) == ((4, 5, 6), (), ())
    assert (now.leader, now.isr, now.leader_epoch) == (4, (4, 5, 6), 1)
    assert now.directories == tuple(map(directory, (4, 5, 6)))


def test_a_leader_that_stays_begins_a_leader_epoch_when_others_go() -> None:
    image = six_brokers()
    reassign(image, (1, 2, 4))

    assert grow(image, 1, 2, 3, 4) == ErrorCode.NONE

    now = partition(image)
    assert (now.replicas, now.isr) == ((1, 2, 4), (1, 2, 4))
    assert (now.leader, now.leader_epoch) == (1, 1)


def test_another_order_of_the_same_replicas_is_done_at_once() -> None:
    image = six_brokers()

    _, events = reassign(image, (3, 2, 1))

    now = partition(image)
    assert moving(image) == ((3, 2, 1), (), ())
    assert (now.leader, now.leader_epoch) == (1, 0), "it waits for a preferred election"
    assert now.directories == tuple(map(directory, (3, 2, 1)))
    assert [type(event) for event in events] == [ReassignmentEnded]


def test_what_is_there_already_changes_nothing() -> None:
    image = six_brokers()

    assert reassign(image, (1, 2, 3)) == (ErrorCode.NONE, [])
    assert partition(image).partition_epoch == 0


def test_fewer_replicas_are_done_at_once_if_all_that_stay_are_in_sync() -> None:
    image = six_brokers()

    reassign(image, (2, 3))

    now = partition(image)
    assert (now.replicas, now.isr, now.leader, now.leader_epoch) == ((2, 3), (2, 3), 2, 1)


@pytest.mark.scenario("X-40")
def test_a_dead_replica_is_replaced() -> None:
    image = six_brokers(state(1, 2, 3, isr=(1, 2)), fenced=(3,))
    reassign(image, (1, 2, 4))

    grow(image, 1, 2, 4)

    assert moving(image) == ((1, 2, 4), (), ())


def test_a_replica_that_dies_before_it_came_keeps_the_others_waiting() -> None:
    image = six_brokers()
    reassign(image, (4, 5, 6))
    grow(image, 1, 2, 3, 4, 5)

    changes = decide_fencing(image, CAREFUL, broker_ids=(4,), reason="")
    given.apply(image, changes.records)

    assert partition(image).isr == (1, 2, 3, 5)
    assert moving(image)[1] == (4, 5, 6)


@pytest.mark.scenario("X-40")
def test_cancelled_it_has_the_replicas_that_it_had() -> None:
    image = six_brokers()
    reassign(image, (4, 5, 6))
    grow(image, 1, 2, 3, 4)

    error, events = reassign(image, None)

    now = partition(image)
    assert error == ErrorCode.NONE
    assert moving(image) == ((1, 2, 3), (), ())
    assert (now.isr, now.leader, now.leader_epoch) == ((1, 2, 3), 1, 1)
    assert [type(event) for event in events] == [ReassignmentEnded]


def test_cancelled_over_a_second_target_it_still_has_the_replicas_that_it_had() -> None:
    """Kafka would keep those of the first target, too."""
    image = six_brokers()
    reassign(image, (4, 2, 3))
    reassign(image, (5, 6, 3))

    reassign(image, None)

    assert sorted(moving(image)[0]) == [1, 2, 3]


def test_a_new_leader_that_came_with_it_leads_no_more_when_it_is_cancelled() -> None:
    image = six_brokers(
        replace(
            state(4, 1, 2, isr=(4, 2), leader=4), adding_replicas=(4,), removing_replicas=(1, 2)
        )
    )

    reassign(image, None)

    now = partition(image)
    assert (now.replicas, now.isr, now.leader, now.leader_epoch) == ((1, 2), (2,), 2, 1)


LATE = replace(state(4, 1, 2, isr=(4,), leader=4), adding_replicas=(4,), removing_replicas=(1, 2))


def test_no_way_back_when_only_new_ones_are_in_sync() -> None:
    image = six_brokers(LATE)

    assert reassign(image, None) == (ErrorCode.INVALID_REPLICA_ASSIGNMENT, [])
    assert partition(image) == LATE


def test_a_topic_that_may_lose_records_goes_back_and_says_so() -> None:
    image = six_brokers(LATE)

    error, _ = reassign(image, None, choices=Choices(unclean=True))

    now = partition(image)
    assert error == ErrorCode.NONE
    assert (now.replicas, now.isr, now.leader) == ((1, 2), (1,), 1)
    assert now.leader_is_recovering


def test_nobody_that_was_dropped_stays_eligible_or_the_last_hope() -> None:
    image = six_brokers(state(1, 2, 3, isr=(2,), eligible=(1,)))

    reassign(image, (2,))

    now = partition(image)
    assert (now.replicas, now.isr, now.eligible_leader_replicas) == ((2,), (2,), ())


def test_a_last_leader_that_is_dropped_leaves_the_last_hope_to_the_first_that_stays() -> None:
    """Seed 63681647 of `replication`: nobody could lead any more, whoever came back."""
    image = six_brokers(LATE, fenced=(1, 2))

    error, _ = reassign(image, None, choices=Choices(unclean=True))

    now = partition(image)
    assert error == ErrorCode.NONE
    assert (now.replicas, now.isr, now.leader) == ((1, 2), (), None)
    assert (now.eligible_leader_replicas, now.last_known_leaders) == ((), (1,))


def test_the_last_hope_is_somebody_eligible_where_one_stays() -> None:
    before = state(4, 1, 2, isr=(), leader=None, eligible=(2, 4), last_known=(4,))
    image = six_brokers(replace(before, adding_replicas=(4,)), fenced=(1, 2, 4))

    reassign(image, None, choices=Choices(unclean=True))

    now = partition(image)
    assert (now.replicas, now.isr, now.leader) == ((1, 2), (), None)
    assert (now.eligible_leader_replicas, now.last_known_leaders) == ((2,), (2,))


def test_without_eligible_replicas_a_dead_last_leader_is_remembered_among_those_that_stay() -> None:
    before = replace(
        state(1, 2, 3, isr=(1,), leader=None), adding_replicas=(1,), removing_replicas=()
    )
    image = six_brokers(before, fenced=(1, 2, 3))

    choices = Choices(unclean=True, keeps_eligible=False)
    error, _ = reassign(image, None, choices=choices)

    now = partition(image)
    assert error == ErrorCode.NONE
    assert (now.replicas, now.isr, now.leader) == ((2, 3), (2,), None)


@pytest.mark.parametrize(
    ("replicas", "error"),
    [
        ((), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((1, 2, 2), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((1, 2, 9), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((1, 2, -1), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
    ],
)
def test_bad_targets_are_refused_and_nothing_is_written(
    replicas: Ids | None, error: ErrorCode
) -> None:
    image = six_brokers()

    assert reassign(image, replicas) == (error, [])
    assert partition(image) == state(1, 2, 3)


@pytest.mark.parametrize(
    ("replicas", "error"),
    [
        ((4, 5, 6), ErrorCode.NONE),
        ((4, 5), ErrorCode.INVALID_REPLICATION_FACTOR),
        ((1, 2, 3, 4), ErrorCode.INVALID_REPLICATION_FACTOR),
    ],
)
def test_the_number_of_replicas_is_kept_where_that_is_requested(
    replicas: Ids, error: ErrorCode
) -> None:
    image = six_brokers()

    assert reassign(image, replicas, may_change_factor=False)[0] == error


def test_the_number_is_that_of_a_target_under_way() -> None:
    image = six_brokers()
    reassign(image, (4, 5))

    assert reassign(image, (1, 2, 3), may_change_factor=False)[0] == (
        ErrorCode.INVALID_REPLICATION_FACTOR
    )
    assert reassign(image, (5, 6), may_change_factor=False)[0] == ErrorCode.NONE


def test_one_outcome_per_request_and_each_partition_once() -> None:
    image = six_brokers(state(1, 2, 3), state(2, 3, 1))
    requests = [
        request((4, 5, 6)),
        request((1, 2, 3), topic="nowhere"),
        request((4, 2, 3), index=7),
        request((4, 5, 6), index=1),
        request((1, 2, 4)),
    ]

    changes, outcomes = decide_reassignments(image, CAREFUL, requests, may_change_factor=True)

    errors = [each.refusal.error if each.refusal else ErrorCode.NONE for each in outcomes]
    assert errors == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NONE,
        ErrorCode.INVALID_REQUEST,
    ]
    assert [(each.topic, each.partition) for each in outcomes] == [
        (each.topic, each.partition) for each in requests
    ]
    assert len(changes.records) == 2
    assert image.topics["t"].topic_id == ID
