"""DescribeTopicPartitions: pages in the order of names, cursors, and what is not there."""

from __future__ import annotations

import pytest

from tests.unit.core.metadata.given import DIRECTORY, broker, state, topic, topic_id
from tests.unit.core.node.given import Broker
from tidelog.core.metadata.cluster import UNASSIGNED_DIRECTORY
from tidelog.core.metadata.records import PartitionChangeRecord
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import api_75_describe_topic_partitions as api
from tidelog.core.wire.messages.api_75_describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)

Page = tuple[list[tuple[str | None, list[int]]], tuple[str, int] | None]


def ask(
    *names: str, limit: int = 2_000, cursor: tuple[str, int] | None = None, **settings: str
) -> DescribeTopicPartitionsResponse:
    node = Broker(
        broker(1), *topic("b", 1, state(1), state(1), state(1)), *topic("a", 2, state(1)),
        *topic("c", 3, state(1), state(1)),
        settings={name.replace("_", "."): value for name, value in settings.items()},
    )  # fmt: skip
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    return node.ask(api, request, DescribeTopicPartitionsResponse, 0)


def page(response: DescribeTopicPartitionsResponse) -> Page:
    topics = [(t.name, [p.partition_index for p in t.partitions]) for t in response.topics]
    cursor = response.next_cursor
    return topics, None if cursor is None else (cursor.topic_name, cursor.partition_index)


@pytest.mark.parametrize(
    ("names", "limit", "cursor", "expected"),
    [
        ((), 2_000, None, ([("a", [0]), ("b", [0, 1, 2]), ("c", [0, 1])], None)),
        ((), 1, None, ([("a", [0])], ("b", 0))),
        ((), 3, None, ([("a", [0]), ("b", [0, 1])], ("b", 2))),
        ((), 4, None, ([("a", [0]), ("b", [0, 1, 2])], ("c", 0))),
        ((), 6, None, ([("a", [0]), ("b", [0, 1, 2]), ("c", [0, 1])], None)),
        ((), 3, ("b", 2), ([("b", [2]), ("c", [0, 1])], None)),
        ((), 0, None, ([("a", [0])], ("b", 0))),  # at least one
        ((), -5, ("c", 1), ([("c", [1])], None)),
        ((), 2_000, ("bb", 1), ([("c", [0, 1])], None)),  # the topic of the cursor is gone
        ((), 2_000, ("c", 9), ([("c", [])], None)),
        (("c", "a", "c"), 2_000, None, ([("a", [0]), ("c", [0, 1])], None)),
        (("c", "a"), 2_000, ("c", 1), ([("c", [1])], None)),
        (("zz", "a"), 1, None, ([("a", [0])], ("zz", 0))),
    ],
)
def test_a_page_ends_where_the_next_one_begins(
    names: tuple[str, ...], limit: int, cursor: tuple[str, int] | None, expected: Page
) -> None:
    assert page(ask(*names, limit=limit, cursor=cursor)) == expected


def test_the_brokers_limit_holds_too() -> None:
    response = ask(limit=2_000, max_request_partition_size_limit="2")

    assert page(response) == ([("a", [0]), ("b", [0])], ("b", 1))


def test_what_is_not_there_has_its_error_if_it_was_asked_for() -> None:
    response = ask("a", "no", "n o")

    assert [(each.name, each.error_code) for each in response.topics] == [
        ("a", ErrorCode.NONE),
        ("n o", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("no", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert all(each.topic_authorized_operations == 3576 for each in response.topics)


@pytest.mark.parametrize(
    ("names", "cursor"),
    [(("a",), ("b", 0)), (("a", "b"), ("b", -1)), ((), ("a", -1))],
)
def test_a_cursor_must_point_into_what_was_asked_for(
    names: tuple[str, ...], cursor: tuple[str, int]
) -> None:
    response = ask(*names, cursor=cursor)

    assert [(each.name, each.error_code) for each in response.topics] == [
        (name, ErrorCode.INVALID_REQUEST) for name in names
    ]
    assert response.next_cursor is None
    assert all(each.partitions == [] for each in response.topics)


def test_a_partition_shows_who_may_lead_it() -> None:
    node = Broker(
        broker(1), broker(2, fenced=True), broker(3), *topic("t", 1, state(1, 2, 3)),
        PartitionChangeRecord(
            partition_id=0,
            topic_id=topic_id(1),
            isr=[1],
            eligible_leader_replicas=[3],
            last_known_elr=[2],
        ),
    )  # fmt: skip

    response = node.ask(api, DescribeTopicPartitionsRequest(), DescribeTopicPartitionsResponse, 0)

    (shown,) = response.topics
    (partition,) = shown.partitions
    assert (shown.topic_id, shown.is_internal) == (topic_id(1), False)
    assert (partition.leader_id, partition.leader_epoch) == (1, 0)
    assert (partition.replica_nodes, partition.isr_nodes) == ([1, 2, 3], [1])
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ([3], [2])
    assert partition.offline_replicas == [2]


def test_a_replica_in_a_directory_that_failed_is_offline_though_its_broker_lives() -> None:
    node = Broker(
        broker(1), broker(2), broker(3), *topic("t", 1, state(1, 2, 3)),
        PartitionChangeRecord(
            partition_id=0,
            topic_id=topic_id(1),
            directories=[UNASSIGNED_DIRECTORY, b"another-in-chaos", DIRECTORY],
        ),
    )  # fmt: skip

    response = node.ask(api, DescribeTopicPartitionsRequest(), DescribeTopicPartitionsResponse, 0)

    assert response.topics[0].partitions[0].offline_replicas == [2]
