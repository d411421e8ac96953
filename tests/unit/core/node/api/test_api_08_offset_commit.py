"""OffsetCommit: what exists is committed, what does not is refused, partition by partition."""

from __future__ import annotations

import pytest

from tests.unit.core.node.coordinators.lone_broker import LoneBroker, names
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import api_08_offset_commit as api
from tidelog.core.wire.messages.api_08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)


@pytest.fixture(name="broker")
def a_broker() -> LoneBroker:
    broker = LoneBroker()
    broker.create_topic("orders")
    broker.find_coordinator()
    return broker


@pytest.mark.parametrize("version", api.VERSIONS)
def test_a_simple_consumer_commits(version: int, broker: LoneBroker) -> None:
    response = broker.commit({("orders", 0): 5}, version=version)

    assert broker.commit_codes(response) == [ErrorCode.NONE]
    assert broker.offset_records() == 1


def test_what_does_not_exist_is_refused_and_the_rest_is_committed(broker: LoneBroker) -> None:
    response = broker.commit({("orders", 0): 5, ("orders", 9): 5, ("nothing", 0): 5})

    codes = {
        (topic.name, each.partition_index): each.error_code
        for topic in response.topics
        for each in topic.partitions
    }
    assert codes == {
        ("orders", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("nothing", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("orders", 0): ErrorCode.NONE,
    }
    assert names(response.topics) == ["orders", "nothing"]
    assert broker.offset_records() == 1


def test_an_unknown_topic_id_is_said_so(broker: LoneBroker) -> None:
    response = broker.commit({("nothing", 0): 5, ("orders", 1): 6}, version=10)

    assert broker.commit_codes(response) == [ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.NONE]
    assert response.topics[1].topic_id == broker.topic_id("orders")


def test_metadata_that_is_too_long_refuses_its_partition_alone(broker: LoneBroker) -> None:
    response = broker.commit({("orders", 0): 5}, metadata="x" * 4097)
    assert broker.commit_codes(response) == [ErrorCode.OFFSET_METADATA_TOO_LARGE]
    assert broker.offset_records() == 0

    response = broker.commit({("orders", 0): 5}, metadata="x" * 4096)
    assert broker.commit_codes(response) == [ErrorCode.NONE]


@pytest.mark.parametrize(
    ("metadata", "code"),
    [
        ("\N{GRINNING FACE}" * 5, ErrorCode.NONE),
        ("\N{GRINNING FACE}" * 6, ErrorCode.OFFSET_METADATA_TOO_LARGE),
    ],
)
def test_metadata_is_counted_as_java_does(metadata: str, code: int) -> None:
    broker = LoneBroker({"offset.metadata.max.bytes": "10"})
    broker.create_topic("orders")
    broker.find_coordinator()
    response = broker.commit({("orders", 0): 5}, metadata=metadata)
    assert broker.commit_codes(response) == [code]


@pytest.mark.parametrize(
    ("version", "code"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)]
)
def test_a_member_of_a_group_that_is_not_there(version: int, code: int, broker: LoneBroker) -> None:
    call = OffsetCommitRequest(group_id="other", member_id="m", generation_id_or_member_epoch=3)
    call.topics = _one_offset(broker)
    assert broker.commit_codes(broker.ask(call, version)) == [code]
    assert broker.offset_records() == 0


def test_without_a_coordinator_every_partition_is_refused() -> None:
    """Nobody looked for one, so the topic does not exist: this broker leads none of it."""
    broker = LoneBroker()
    broker.create_topic("orders")
    response = broker.commit({("orders", 0): 5})
    assert broker.commit_codes(response) == [ErrorCode.NOT_COORDINATOR]


def test_a_commit_that_fits_into_no_batch_is_refused(broker: LoneBroker) -> None:
    big = LoneBroker({"offset.metadata.max.bytes": "30000", "message.max.bytes": "20000"})
    big.create_topic("orders")
    big.find_coordinator()
    response = big.commit({("orders", 0): 5}, metadata="x" * 25_000)
    assert big.commit_codes(response) == [ErrorCode.INVALID_COMMIT_OFFSET_SIZE]


def test_an_empty_commit_is_answered(broker: LoneBroker) -> None:
    assert broker.ask(OffsetCommitRequest(group_id="g"), 9).topics == []


def _one_offset(broker: LoneBroker) -> list[OffsetCommitRequestTopic]:
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=5, committed_metadata=""
    )
    return [OffsetCommitRequestTopic(name="orders", partitions=[partition])]
