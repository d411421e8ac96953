"""OffsetFetch: one group or many, some partitions or all, by name and by id."""

from __future__ import annotations

import pytest

from tests.unit.core.node.coordinators.lone_broker import LoneBroker
from tidelog.core.coordinator.record import CoordinatorRecord
from tidelog.core.groups.offset_records import CommittedOffset, OffsetKey, offset_record
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import api_09_offset_fetch as api
from tidelog.core.wire.messages.api_09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)


@pytest.fixture(name="broker")
def a_broker() -> LoneBroker:
    broker = LoneBroker()
    broker.create_topic("orders")
    broker.find_coordinator()
    broker.commit({("orders", 0): 5}, metadata="mine", leader_epoch=3)
    return broker


def _fetch(
    broker: LoneBroker, version: int, topics: dict[str, list[int]] | None
) -> tuple[int, dict[tuple[str, int], tuple[int, int, str | None, int]]]:
    """The error of the group, and per partition offset, leader epoch, metadata and error."""
    call = OffsetFetchRequest()
    if version < 8:
        call.group_id = "g"
        call.topics = (
            None
            if topics is None
            else [
                OffsetFetchRequestTopic(name=name, partition_indexes=indexes)
                for name, indexes in topics.items()
            ]
        )
        response = broker.ask(call, version)
        error, answered = response.error_code, response.topics
    else:
        call.groups = [OffsetFetchRequestGroup(group_id="g", topics=None)]
        if topics is not None:
            call.groups[0].topics = [
                OffsetFetchRequestTopics(
                    name=name, topic_id=broker.topic_id(name), partition_indexes=indexes
                )
                for name, indexes in topics.items()
            ]
        (group,) = broker.ask(call, version).groups
        error, answered = group.error_code, group.topics
    by_id = {topic.topic_id: name for name, topic in broker.node.image.topics.items()}
    return error, {
        (topic.name or by_id.get(topic.topic_id, "?"), each.partition_index): (
            each.committed_offset,
            each.committed_leader_epoch,
            each.metadata,
            each.error_code,
        )
        for topic in answered
        for each in topic.partitions
    }


@pytest.mark.parametrize("version", api.VERSIONS)
def test_committed_offsets_come_back(version: int, broker: LoneBroker) -> None:
    leader_epoch = 3 if version >= 5 else -1
    assert _fetch(broker, version, {"orders": [0, 1]}) == (
        ErrorCode.NONE,
        {
            ("orders", 0): (5, leader_epoch, "mine", 0),
            ("orders", 1): (-1, -1, "", 0),
        },
    )


@pytest.mark.parametrize("version", api.VERSIONS[1:])
def test_all_that_a_group_has(version: int, broker: LoneBroker) -> None:
    _, found = _fetch(broker, version, None)
    assert list(found) == [("orders", 0)]
    assert found["orders", 0][0] == 5


def test_an_unknown_topic_has_no_offset_by_name_and_an_error_by_id(broker: LoneBroker) -> None:
    assert _fetch(broker, 9, {"nothing": [0]})[1] == {("nothing", 0): (-1, -1, "", 0)}
    _, found = _fetch(broker, 10, {"nothing": [0], "orders": [0]})
    assert found["?", 0][3] == ErrorCode.UNKNOWN_TOPIC_ID
    assert found["orders", 0][0] == 5


@pytest.mark.parametrize("version", [8, 10])
def test_many_groups_in_one_request(version: int, broker: LoneBroker) -> None:
    """Also one that does not exist, and one twice: each has its own answer, in order."""
    call = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=name, topics=None) for name in ("g", "no", "g")]
    )
    groups = broker.ask(call, version).groups
    assert [group.group_id for group in groups] == ["g", "no", "g"]
    assert [len(group.topics) for group in groups] == [1, 0, 1]
    assert [group.error_code for group in groups] == [0, 0, 0]


@pytest.mark.parametrize("version", [1, 2, 7, 8, 10])
def test_without_a_coordinator_the_client_looks_for_one(version: int) -> None:
    broker = LoneBroker()
    broker.create_topic("orders")
    error, found = _fetch(broker, version, {"orders": [0]})
    if version == 1:
        assert found == {("orders", 0): (-1, -1, "", ErrorCode.NOT_COORDINATOR)}
    else:
        assert (error, found) == (ErrorCode.NOT_COORDINATOR, {})


def test_a_topic_that_was_made_again_has_no_offset() -> None:
    """An offset names its topic by id: the new topic of that name is another one."""
    broker = LoneBroker()
    broker.create_topic("orders")
    broker.find_coordinator()
    shard = broker.node.group_coordinator.runtime.hosted[
        broker.node.group_coordinator.partition_of("g")
    ]
    of_earlier = offset_record(
        OffsetKey("g", "orders", 0),
        CommittedOffset(offset=9, commit_wall_ms=1, topic_id=b"\1" * 16),
    )
    shard.shard.apply(of_earlier, offset=0, timestamp_ms=0)

    assert _fetch(broker, 10, {"orders": [0]})[1]["orders", 0][0] == -1
    assert _fetch(broker, 9, {"orders": [0]})[1]["orders", 0][0] == 9


@pytest.mark.parametrize("version", [7, 8])
def test_an_open_transaction_makes_an_offset_unstable(version: int, broker: LoneBroker) -> None:
    """Only for those who ask for stable ones; the transaction's end decides."""
    coordinator = broker.node.group_coordinator
    shard = coordinator.runtime.hosted[coordinator.partition_of("g")].shard
    record: CoordinatorRecord = offset_record(
        OffsetKey("g", "orders", 0), CommittedOffset(offset=8, commit_wall_ms=1)
    )
    shard.apply_transactional(record, producer_id=4, offset=10, timestamp_ms=0)

    assert _stable(broker, version) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    assert _fetch(broker, version, {"orders": [0]})[1]["orders", 0][0] == 5
    shard.apply_marker(producer_id=4, is_commit=True)
    assert _stable(broker, version) == (8, ErrorCode.NONE)


def _stable(broker: LoneBroker, version: int) -> tuple[int, int]:
    call = OffsetFetchRequest(require_stable=True)
    if version < 8:
        call.group_id = "g"
        call.topics = [OffsetFetchRequestTopic(name="orders", partition_indexes=[0])]
        (topic,) = broker.ask(call, version).topics
    else:
        wanted = OffsetFetchRequestTopics(name="orders", partition_indexes=[0])
        call.groups = [OffsetFetchRequestGroup(group_id="g", topics=[wanted])]
        (topic,) = broker.ask(call, version).groups[0].topics
    (partition,) = topic.partitions
    return partition.committed_offset, partition.error_code
