"""Creating and deleting topics: which refusal a client sees, and the records of the rest."""

from __future__ import annotations

import base64
from random import Random

import pytest

from tests.unit.core.controller.given import rules
from tests.unit.core.metadata.given import DIRECTORY, apply, broker, image, state, topic, topic_id
from tidelog.core.controller.partitions import ReplicaAssignment
from tidelog.core.controller.topic_ids import new_topic_id, new_uuid
from tidelog.core.controller.topics import (
    CreatedTopic,
    DeletedTopic,
    NewTopic,
    decide_create,
    decide_delete,
)
from tidelog.core.metadata.cluster import UNASSIGNED_DIRECTORY
from tidelog.core.metadata.records import (
    ConfigRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from tidelog.core.model.errors import ErrorCode


def refused(requested: NewTopic) -> ErrorCode | None:
    """The error for this one wish, on three brokers of which 3 is fenced and `a.b` exists."""
    cluster = image(broker(1), broker(2), broker(3, fenced=True), *topic("a.b", 1, state(1)))
    decision = decide_create(cluster, [requested], rules())
    (outcome,) = decision.outcomes
    assert outcome.name == requested.name
    assert (outcome.refusal is None) == bool(decision.records)
    return None if outcome.refusal is None else outcome.refusal.error


def assign(*replicas: tuple[int, ...]) -> tuple[ReplicaAssignment, ...]:
    return tuple(ReplicaAssignment(index, brokers) for index, brokers in enumerate(replicas))


@pytest.mark.parametrize(
    ("requested", "error"),
    [
        (NewTopic(name="t"), None),
        (NewTopic(name="t", partitions_count=3, replication_factor=2), None),
        (NewTopic(name="t", configs=(("retention.ms", "5"),)), None),
        (NewTopic(name="t", assignments=assign((1, 2), (2, 1))), None),
        # Names
        (NewTopic(name=""), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic(name=".."), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic(name="ä"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic(name="x" * 250), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic(name="x" * 249), None),
        (NewTopic(name="a_b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic(name="a.b"), ErrorCode.TOPIC_ALREADY_EXISTS),
        (NewTopic(name="a-b"), None),
        (NewTopic(name="__cluster_metadata"), ErrorCode.INVALID_REQUEST),
        # Settings
        (NewTopic(name="t", configs=(("retention.ms", None),)), ErrorCode.INVALID_CONFIG),
        (NewTopic(name="t", configs=(("retention.ms", "x"),)), ErrorCode.INVALID_CONFIG),
        (NewTopic(name="t", configs=(("unknown", "1"),)), ErrorCode.INVALID_CONFIG),
        (NewTopic(name="t", configs=(("retention.ms", "1" * 32_768),)), ErrorCode.INVALID_CONFIG),
        # Counts
        (NewTopic(name="t", partitions_count=0), ErrorCode.INVALID_PARTITIONS),
        (NewTopic(name="t", partitions_count=-2), ErrorCode.INVALID_PARTITIONS),
        (NewTopic(name="t", replication_factor=0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic(name="t", replication_factor=-5), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic(name="t", replication_factor=4), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic(name="t", partitions_count=10_001), ErrorCode.POLICY_VIOLATION),
        (NewTopic(name="t", partitions_count=10_000), ErrorCode.POLICY_VIOLATION),
        (NewTopic(name="t", partitions_count=9_999), None),
        # Assignments
        (
            NewTopic(name="t", partitions_count=1, assignments=assign((1,))),
            ErrorCode.INVALID_REQUEST,
        ),
        (
            NewTopic(name="t", replication_factor=1, assignments=assign((1,))),
            ErrorCode.INVALID_REQUEST,
        ),
        (NewTopic(name="t", assignments=assign(())), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic(name="t", assignments=assign((1, 9))), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic(name="t", assignments=assign((1, 1))), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (
            NewTopic(name="t", assignments=assign((1,), (1, 2))),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
        (NewTopic(name="t", assignments=assign((3,))), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (
            NewTopic(
                name="t", assignments=(ReplicaAssignment(0, (1,)), ReplicaAssignment(0, (1,)))
            ),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
        (
            NewTopic(
                name="t", assignments=(ReplicaAssignment(0, (1,)), ReplicaAssignment(2, (1,)))
            ),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
        # Several reasons at once: the first question decides
        (NewTopic(name="", partitions_count=0), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic(name="a.b", configs=(("unknown", "1"),)), ErrorCode.TOPIC_ALREADY_EXISTS),
        (
            NewTopic(name="t", partitions_count=0, configs=(("unknown", "1"),)),
            ErrorCode.INVALID_CONFIG,
        ),
        (
            NewTopic(name="t", partitions_count=0, replication_factor=0),
            ErrorCode.INVALID_REPLICATION_FACTOR,
        ),
    ],
)
def test_the_first_reason_to_refuse_a_topic(requested: NewTopic, error: ErrorCode | None) -> None:
    assert refused(requested) == error


def test_a_topic_is_written_as_topic_then_settings_then_partitions() -> None:
    cluster = image(broker(1))
    requested = NewTopic(name="t", configs=(("retention.ms", "5"),))

    decision = decide_create(cluster, [requested], rules(partitions=2))

    kinds = [type(record) for record in decision.records]
    assert kinds == [TopicRecord, ConfigRecord, PartitionRecord, PartitionRecord]
    apply(cluster, decision.records)
    (outcome,) = decision.outcomes
    assert outcome == CreatedTopic(
        name="t",
        topic_id=cluster.topics["t"].topic_id,
        partitions_count=2,
        replication_factor=1,
        configs=(("retention.ms", "5"),),
    )
    assert cluster.topics["t"].partitions == [state(1), state(1)]
    assert cluster.topic_config("t") == {"retention.ms": "5"}


def test_deciding_changes_nothing() -> None:
    cluster = image(broker(1))

    decide_create(cluster, [NewTopic(name="t")], rules())

    assert not cluster.topics


def test_an_assignment_is_kept_as_given_and_led_by_its_first_active_broker() -> None:
    cluster = image(broker(1, fenced=True), broker(2), broker(3))
    requested = NewTopic(
        name="t", assignments=(ReplicaAssignment(1, (3, 1, 2)), ReplicaAssignment(0, (1, 2, 3)))
    )

    apply(cluster, decide_create(cluster, [requested], rules()).records)

    first, second = cluster.topics["t"].partitions
    assert (first.replicas, first.isr, first.leader) == ((1, 2, 3), (2, 3), 2)
    assert (second.replicas, second.isr, second.leader) == ((3, 1, 2), (3, 2), 3)


def test_a_broker_with_several_directories_chooses_itself() -> None:
    several = RegisterBrokerRecord(
        broker_id=2, broker_epoch=2, fenced=False, log_dirs=[DIRECTORY, bytes(16)]
    )
    cluster = image(broker(1), several)
    requested = NewTopic(name="t", assignments=assign((1, 2)))

    apply(cluster, decide_create(cluster, [requested], rules()).records)

    assert cluster.topics["t"].partitions[0].directories == (DIRECTORY, UNASSIGNED_DIRECTORY)


def test_brokers_that_are_all_leaving_cannot_take_a_topic() -> None:
    cluster = image(broker(1, leaving=True))

    placed, assigned = (
        decide_create(cluster, [requested], rules()).outcomes[0].refusal
        for requested in (NewTopic(name="t"), NewTopic(name="t", assignments=assign((1,))))
    )

    assert placed is not None
    assert placed.error == ErrorCode.INVALID_REPLICATION_FACTOR
    assert assigned is not None
    assert assigned.error == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_a_name_given_twice_is_refused_once_and_the_others_are_created() -> None:
    requests = [NewTopic(name="twice"), NewTopic(name="once"), NewTopic(name="twice")]

    decision = decide_create(image(broker(1)), requests, rules())

    errors = {outcome.name: outcome.refusal for outcome in decision.outcomes}
    assert len(decision.outcomes) == 2
    assert errors["once"] is None
    assert errors["twice"] is not None
    assert errors["twice"].error == ErrorCode.INVALID_REQUEST
    assert [r.name for r in decision.records if isinstance(r, TopicRecord)] == ["once"]


def test_too_many_partitions_in_all_refuse_the_whole_request() -> None:
    requests = [
        NewTopic(name="a", partitions_count=5_000),
        NewTopic(name="b", partitions_count=5_001),
    ]

    decision = decide_create(image(broker(1)), requests, rules())

    assert decision.records == []
    assert [o.refusal and o.refusal.error for o in decision.outcomes] == [
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.POLICY_VIOLATION,
    ]


def test_topic_ids_are_random_uuids_of_version_4_that_look_like_no_option() -> None:
    random = Random(3)
    ids = [new_uuid(random) for _ in range(2_000)]

    assert len(set(ids)) == len(ids)
    for each in ids:
        assert each[6] >> 4 == 4
        assert each[8] >> 6 == 2
        assert not base64.urlsafe_b64encode(each).startswith(b"-")
    assert any(base64.urlsafe_b64encode(each).startswith(b"_") for each in ids)


def test_an_id_that_is_taken_is_not_given_again() -> None:
    first = new_topic_id(Random(1), taken=())

    assert new_topic_id(Random(1), taken={first}) != first


ID = topic_id(1)
OTHER = topic_id(2)


@pytest.mark.parametrize(
    ("requests", "outcomes", "deleted"),
    [
        ([DeletedTopic(name="t")], [("t", ID, None)], [ID]),
        ([DeletedTopic(topic_id=ID)], [("t", ID, None)], [ID]),
        ([], [], []),
        (
            [DeletedTopic(name="no")],
            [("no", None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)],
            [],
        ),
        ([DeletedTopic(topic_id=OTHER)], [(None, OTHER, ErrorCode.UNKNOWN_TOPIC_ID)], []),
        ([DeletedTopic()], [(None, None, ErrorCode.INVALID_REQUEST)], []),
        (
            [DeletedTopic(name="t", topic_id=ID)],
            [("t", ID, ErrorCode.INVALID_REQUEST)],
            [],
        ),
        (
            [DeletedTopic(name="t"), DeletedTopic(name="t")],
            [("t", None, ErrorCode.INVALID_REQUEST)],
            [],
        ),
        (
            [DeletedTopic(topic_id=ID), DeletedTopic(topic_id=ID)],
            [(None, ID, ErrorCode.INVALID_REQUEST)],
            [],
        ),
        (
            [DeletedTopic(name="t"), DeletedTopic(topic_id=ID)],
            [("t", ID, ErrorCode.INVALID_REQUEST)],
            [],
        ),
        (
            [DeletedTopic(name="no"), DeletedTopic(name="t")],
            [("no", None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), ("t", ID, None)],
            [ID],
        ),
    ],
)
def test_a_topic_is_deleted_by_name_or_by_id(
    requests: list[DeletedTopic],
    outcomes: list[tuple[str | None, bytes | None, ErrorCode | None]],
    deleted: list[bytes],
) -> None:
    decision = decide_delete(image(broker(1), *topic("t", 1, state(1))), requests)

    assert outcomes == [
        (o.name, o.topic_id, None if o.refusal is None else o.refusal.error)
        for o in decision.outcomes
    ]
    assert decision.records == [RemoveTopicRecord(topic_id=each) for each in deleted]
