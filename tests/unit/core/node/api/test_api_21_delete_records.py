"""DeleteRecords: the log start moves forward, never beyond what is committed."""

from __future__ import annotations

import pytest

from tests.unit.core.node.hosting import ELSEWHERE, TOPIC, HostingBroker
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import api_21_delete_records as api
from tidelog.core.wire.messages.api_21_delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)

LAST = api.VERSIONS[-1]


def ask(
    node: HostingBroker, offset: int, *, version: int = LAST, topic: str = TOPIC, index: int = 0
) -> tuple[int, int]:
    """(error code, low watermark)"""
    wanted = DeleteRecordsPartition(partition_index=index, offset=offset)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic, partitions=[wanted])], timeout_ms=1_000
    )
    (answer,) = node.ask(api, request, DeleteRecordsResponse, version).topics
    (partition,) = answer.partitions
    assert (answer.name, partition.partition_index) == (topic, index)
    return partition.error_code, partition.low_watermark


@pytest.fixture
def node() -> HostingBroker:
    """Five records are committed, one is not."""
    node = HostingBroker()
    node.append(1, 2, 3)
    node.append(4, 5)
    node.append(6, committed=False)
    return node


@pytest.mark.parametrize("version", api.VERSIONS)
def test_the_log_start_moves(node: HostingBroker, version: int) -> None:
    assert ask(node, 2, version=version) == (ErrorCode.NONE, 2)
    assert node.log.log_start_offset == 2


def test_it_never_moves_back(node: HostingBroker) -> None:
    assert ask(node, 4) == (ErrorCode.NONE, 4)
    assert ask(node, 1) == (ErrorCode.NONE, 4)


def test_minus_one_means_everything_committed(node: HostingBroker) -> None:
    assert ask(node, -1) == (ErrorCode.NONE, 5)


@pytest.mark.parametrize("offset", [6, 7, -2, 2**62])
def test_an_offset_that_is_not_committed_is_out_of_range(node: HostingBroker, offset: int) -> None:
    assert ask(node, offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert node.log.log_start_offset == 0


@pytest.mark.parametrize(
    ("compact", "delete", "code"),
    [
        (True, False, ErrorCode.POLICY_VIOLATION),
        (True, True, ErrorCode.NONE),
        (False, False, ErrorCode.NONE),
    ],
)
def test_a_topic_that_is_only_compacted_keeps_its_records(
    node: HostingBroker, compact: bool, delete: bool, code: ErrorCode
) -> None:
    node.reconfigure(compact=compact, delete=delete)
    assert ask(node, 2)[0] == code


def test_an_internal_topic_keeps_its_records() -> None:
    node = HostingBroker("__consumer_offsets")
    refused = (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)
    assert ask(node, 0, topic="__consumer_offsets") == refused
    assert ask(node, 0, topic="__transaction_state") == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


@pytest.mark.parametrize(
    ("topic", "index", "code"),
    [
        ("unheard-of", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (ELSEWHERE, 0, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_what_is_not_here_is_refused(
    node: HostingBroker, topic: str, index: int, code: ErrorCode
) -> None:
    assert ask(node, 0, topic=topic, index=index) == (code, -1)


def test_a_follower_refuses(node: HostingBroker) -> None:
    node.stop_leading()
    assert ask(node, 2) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


def test_of_a_partition_that_comes_twice_the_last_wish_counts(node: HostingBroker) -> None:
    partitions = [DeleteRecordsPartition(partition_index=0, offset=offset) for offset in (3, 2)]
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=TOPIC, partitions=partitions)])
    (answer,) = node.ask(api, request, DeleteRecordsResponse, LAST).topics
    assert answer.partitions == [DeleteRecordsPartitionResult(partition_index=0, low_watermark=2)]
