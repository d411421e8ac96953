"""Growing topics: what is refused, and which partitions come."""

from __future__ import annotations

from random import Random

import pytest

from tests.unit.core.metadata.given import apply, broker, image, state, topic
from tidelog.core.controller.partitions import Growth, decide_growth
from tidelog.core.model.errors import ErrorCode


@pytest.mark.parametrize(
    ("requested", "error"),
    [
        (Growth(topic="t", partitions_count=3), None),
        (Growth(topic="t", partitions_count=3, assignments=((2, 1), (1, 2))), None),
        (Growth(topic="no", partitions_count=3), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (Growth(topic="t", partitions_count=1), ErrorCode.INVALID_PARTITIONS),
        (Growth(topic="t", partitions_count=0), ErrorCode.INVALID_PARTITIONS),
        (Growth(topic="t", partitions_count=-1), ErrorCode.INVALID_PARTITIONS),
        (
            Growth(topic="t", partitions_count=3, assignments=((1, 2),)),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
        (
            Growth(topic="t", partitions_count=2, assignments=((1,),)),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
        (
            Growth(topic="t", partitions_count=2, assignments=((1, 9),)),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
        (
            Growth(topic="t", partitions_count=2, assignments=((1, 1),)),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
        (
            Growth(topic="t", partitions_count=2, assignments=((),)),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
        (Growth(topic="t", partitions_count=10_001), None),
        (Growth(topic="t", partitions_count=10_002), ErrorCode.POLICY_VIOLATION),
        (Growth(topic="t", partitions_count=2**31 - 1), ErrorCode.POLICY_VIOLATION),
    ],
)
def test_the_first_reason_to_refuse_growth(requested: Growth, error: ErrorCode | None) -> None:
    cluster = image(broker(1), broker(2), *topic("t", 1, state(1, 2)))

    decision = decide_growth(cluster, [requested], random=Random(1))

    (outcome,) = decision.outcomes
    assert outcome.topic == requested.topic
    assert (None if outcome.refusal is None else outcome.refusal.error) == error
    assert bool(decision.records) == (error is None)


def test_new_partitions_follow_the_old_ones_with_their_replication_factor() -> None:
    cluster = image(broker(1), broker(2), *topic("t", 1, state(1, 2)))

    decision = decide_growth(cluster, [Growth(topic="t", partitions_count=4)], random=Random(1))
    apply(cluster, decision.records)

    partitions = cluster.topics["t"].partitions
    assert len(partitions) == 4
    assert all(set(partition.replicas) == {1, 2} for partition in partitions)
    assert sorted(partition.replicas[0] for partition in partitions) == [1, 1, 2, 2]
    assert all(partition.leader_epoch == 0 for partition in partitions)


def test_assigned_partitions_are_placed_as_given() -> None:
    cluster = image(broker(1), broker(2, fenced=True), *topic("t", 1, state(1, 2)))

    requested = Growth(topic="t", partitions_count=2, assignments=((2, 1),))
    apply(cluster, decide_growth(cluster, [requested], random=Random(1)).records)

    added = cluster.topics["t"].partitions[1]
    assert (added.replicas, added.isr, added.leader) == ((2, 1), (1,), 1)


def test_a_topic_named_twice_is_left_alone() -> None:
    cluster = image(broker(1), *topic("t", 1, state(1)), *topic("u", 2, state(1)))
    requests = [
        Growth(topic="t", partitions_count=2),
        Growth(topic="u", partitions_count=2),
        Growth(topic="t", partitions_count=3),
    ]

    decision = decide_growth(cluster, requests, random=Random(1))

    errors = [(o.topic, o.refusal and o.refusal.error) for o in decision.outcomes]
    assert errors == [("t", ErrorCode.INVALID_REQUEST), ("u", None)]
    assert len(decision.records) == 1


def test_the_limit_counts_all_topics_of_a_request() -> None:
    cluster = image(broker(1), *topic("t", 1, state(1)), *topic("u", 2, state(1)))
    requests = [
        Growth(topic="t", partitions_count=6_001),
        Growth(topic="u", partitions_count=6_001),
    ]

    decision = decide_growth(cluster, requests, random=Random(1))

    errors = [o.refusal and o.refusal.error for o in decision.outcomes]
    assert errors == [None, ErrorCode.POLICY_VIOLATION]
    assert len(decision.records) == 6_000
