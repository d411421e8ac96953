"""OffsetDelete: offsets of topics that a group does not read."""

from __future__ import annotations

import pytest

from tests.unit.core.node.coordinators.lone_broker import LoneBroker
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)


@pytest.fixture(name="broker")
def a_broker() -> LoneBroker:
    broker = LoneBroker()
    broker.create_topic("orders")
    broker.find_coordinator()
    broker.commit({("orders", 0): 5, ("orders", 1): 6})
    return broker


def _delete(broker: LoneBroker, group_id: str, topic: str, *indexes: int) -> OffsetDeleteResponse:
    partitions = [OffsetDeleteRequestPartition(partition_index=index) for index in indexes]
    topics = [OffsetDeleteRequestTopic(name=topic, partitions=partitions)] if topic else []
    response: OffsetDeleteResponse = broker.ask(
        OffsetDeleteRequest(group_id=group_id, topics=topics), 0
    )
    return response


def _codes(response: OffsetDeleteResponse) -> dict[tuple[str, int], int]:
    return {
        (topic.name, each.partition_index): each.error_code
        for topic in response.topics
        for each in topic.partitions
    }


def test_an_offset_is_forgotten(broker: LoneBroker) -> None:
    response = _delete(broker, "g", "orders", 0)

    assert response.error_code == ErrorCode.NONE
    assert _codes(response) == {("orders", 0): ErrorCode.NONE}
    coordinator = broker.node.group_coordinator
    shard = coordinator.runtime.hosted[coordinator.partition_of("g")].shard
    assert list(shard.offsets.of_group("g")["orders"]) == [1]
    assert broker.offset_records() == 3


def test_what_was_never_committed_needs_no_record(broker: LoneBroker) -> None:
    broker.create_topic("other")
    assert _codes(_delete(broker, "g", "other", 0)) == {("other", 0): ErrorCode.NONE}
    assert broker.offset_records() == 2


def test_what_does_not_exist_is_refused_alone(broker: LoneBroker) -> None:
    response = _delete(broker, "g", "orders", 7, 0)
    assert _codes(response) == {
        ("orders", 7): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("orders", 0): ErrorCode.NONE,
    }
    response = _delete(broker, "g", "nothing", 0)
    assert _codes(response) == {("nothing", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


@pytest.mark.parametrize(
    ("group_id", "code"), [("", ErrorCode.INVALID_GROUP_ID), ("no", ErrorCode.GROUP_ID_NOT_FOUND)]
)
def test_a_group_that_is_not_there(group_id: str, code: int, broker: LoneBroker) -> None:
    response = _delete(broker, group_id, "orders", 0)
    assert (response.error_code, response.topics) == (code, [])
