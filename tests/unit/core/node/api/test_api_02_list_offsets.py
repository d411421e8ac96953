"""ListOffsets: by word and by time, for every kind of reader, and what is refused."""

from __future__ import annotations

import pytest

from tests.unit.core.node.hosting import ELSEWHERE, TOPIC, HostingBroker
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import api_02_list_offsets as api
from tidelog.core.storage.disk import DiskError
from tidelog.core.wire.messages.api_02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from tidelog.core.wire.record_batch import CorruptBatch
from tidelog.core.wire.sentinels import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
)

CONSUMER, DEBUGGING, FOLLOWER = -1, -2, 2
LAST = api.VERSIONS[-1]


def ask(
    node: HostingBroker,
    timestamp: int,
    *,
    version: int = LAST,
    topic: str = TOPIC,
    index: int = 0,
    leader_epoch: int = -1,
    **fields: int,
) -> ListOffsetsPartitionResponse:
    question = ListOffsetsPartition(partition_index=index, timestamp=timestamp)
    if version >= 4:
        question.current_leader_epoch = leader_epoch
    request = ListOffsetsRequest(
        topics=[ListOffsetsTopic(name=topic, partitions=[question])],
        **{"replica_id": CONSUMER, **fields},
    )
    (answer,) = node.ask(api, request, ListOffsetsResponse, version).topics
    assert answer.name == topic
    (partition,) = answer.partitions
    assert partition.partition_index == index
    return partition


def fields(answer: ListOffsetsPartitionResponse) -> tuple[int, int, int, int]:
    return answer.error_code, answer.offset, answer.timestamp, answer.leader_epoch


@pytest.fixture
def node() -> HostingBroker:
    """Offsets 0 to 4 are committed, 5 is not; 3 has the largest committed timestamp."""
    node = HostingBroker()
    node.append(100, 300, 200)
    node.append(900, 400)
    node.append(950, committed=False)
    return node


@pytest.mark.parametrize("version", api.VERSIONS)
def test_both_ends_are_told_in_every_version(node: HostingBroker, version: int) -> None:
    leader_epoch = 3 if version >= 4 else -1
    assert fields(ask(node, LATEST_TIMESTAMP, version=version)) == (0, 5, -1, leader_epoch)
    assert fields(ask(node, EARLIEST_TIMESTAMP, version=version)) == (0, 0, -1, leader_epoch)


@pytest.mark.parametrize(
    ("timestamp", "offset", "timestamp_ms"),
    [(0, 0, 100), (100, 0, 100), (101, 1, 300), (300, 1, 300), (301, 3, 900), (900, 3, 900)],
)
def test_the_first_record_not_earlier_is_found(
    node: HostingBroker, timestamp: int, offset: int, timestamp_ms: int
) -> None:
    assert fields(ask(node, timestamp)) == (0, offset, timestamp_ms, 3)


def test_a_record_that_is_not_committed_is_not_found_by_a_consumer(node: HostingBroker) -> None:
    assert fields(ask(node, 901)) == (0, -1, -1, -1)
    assert fields(ask(node, 901, replica_id=FOLLOWER)) == (0, 5, 950, 3)
    assert fields(ask(node, 951, replica_id=FOLLOWER)) == (0, -1, -1, -1)


def test_the_largest_timestamp_is_found_where_it_is_committed(node: HostingBroker) -> None:
    assert fields(ask(node, MAX_TIMESTAMP)) == (0, -1, -1, -1)
    node.log.advance_high_watermark(6)
    assert fields(ask(node, MAX_TIMESTAMP)) == (0, 5, 950, 3)


def test_an_empty_log_has_both_ends_at_its_start_and_no_largest_timestamp() -> None:
    node = HostingBroker()
    assert fields(ask(node, LATEST_TIMESTAMP)) == (0, 0, -1, 3)
    assert fields(ask(node, EARLIEST_TIMESTAMP)) == (0, 0, -1, 3)
    assert fields(ask(node, MAX_TIMESTAMP)) == (0, -1, -1, -1)
    assert fields(ask(node, 0)) == (0, -1, -1, -1)


def test_without_any_timestamp_the_first_record_has_the_largest() -> None:
    node = HostingBroker()
    node.append(-1, -1)
    assert fields(ask(node, MAX_TIMESTAMP)) == (0, 0, -1, 3)
    assert fields(ask(node, 0)) == (0, -1, -1, -1)


def test_there_is_no_second_tier(node: HostingBroker) -> None:
    assert fields(ask(node, EARLIEST_LOCAL_TIMESTAMP)) == (0, 0, -1, 3)
    assert fields(ask(node, LATEST_TIERED_TIMESTAMP)) == (0, -1, -1, -1)
    assert fields(ask(node, EARLIEST_PENDING_UPLOAD_TIMESTAMP)) == (0, -1, -1, -1)


@pytest.mark.parametrize(
    ("timestamp", "first_version"),
    [
        (MAX_TIMESTAMP, 7),
        (EARLIEST_LOCAL_TIMESTAMP, 8),
        (LATEST_TIERED_TIMESTAMP, 9),
        (EARLIEST_PENDING_UPLOAD_TIMESTAMP, 11),
    ],
)
def test_a_word_needs_its_version(node: HostingBroker, timestamp: int, first_version: int) -> None:
    refused = ErrorCode.UNSUPPORTED_VERSION
    assert ask(node, timestamp, version=first_version - 1).error_code == refused
    assert ask(node, timestamp, version=first_version).error_code == ErrorCode.NONE
    assert ask(node, -7).error_code == refused


def test_read_committed_ends_before_an_open_transaction(node: HostingBroker) -> None:
    node.log.advance_high_watermark(6)
    node.append(980, producer_id=7, sequence=0, transactional=True)

    assert ask(node, LATEST_TIMESTAMP).offset == 7
    assert ask(node, LATEST_TIMESTAMP, isolation_level=1).offset == 6
    assert fields(ask(node, 960, isolation_level=1)) == (0, -1, -1, -1)
    assert ask(node, 960).offset == 6
    assert ask(node, LATEST_TIMESTAMP, isolation_level=1, replica_id=FOLLOWER).offset == 7


def test_a_debugging_replica_may_ask_a_follower(node: HostingBroker) -> None:
    node.stop_leading()
    assert ask(node, LATEST_TIMESTAMP).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (
        ask(node, LATEST_TIMESTAMP, replica_id=FOLLOWER).error_code
        == ErrorCode.NOT_LEADER_OR_FOLLOWER
    )
    assert fields(ask(node, LATEST_TIMESTAMP, replica_id=DEBUGGING)) == (0, 6, -1, 3)


@pytest.mark.parametrize(
    ("leader_epoch", "code"),
    [
        (-1, ErrorCode.NONE),
        (2, ErrorCode.FENCED_LEADER_EPOCH),
        (3, ErrorCode.NONE),
        (4, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_another_leader_epoch_is_refused(
    node: HostingBroker, leader_epoch: int, code: ErrorCode
) -> None:
    assert ask(node, EARLIEST_TIMESTAMP, leader_epoch=leader_epoch).error_code == code
    node.stop_leading()
    refused = ErrorCode.NOT_LEADER_OR_FOLLOWER if code == ErrorCode.NONE else code
    assert ask(node, EARLIEST_TIMESTAMP, leader_epoch=leader_epoch).error_code == refused


def test_a_new_leader_that_knows_too_little_says_so() -> None:
    """Its high watermark lags behind the start of its own leader epoch."""
    node = HostingBroker()
    node.append(100)
    node.append(200, 300, committed=False)
    node.lead(leader_epoch=4)

    assert ask(node, LATEST_TIMESTAMP).error_code == ErrorCode.OFFSET_NOT_AVAILABLE
    assert ask(node, LATEST_TIMESTAMP, version=4).error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert ask(node, 150).error_code == ErrorCode.OFFSET_NOT_AVAILABLE
    assert fields(ask(node, 50)) == (0, 0, 100, 3)
    assert fields(ask(node, EARLIEST_TIMESTAMP)) == (0, 0, -1, 3)
    assert fields(ask(node, LATEST_TIMESTAMP, replica_id=FOLLOWER)) == (0, 3, -1, 4)

    node.log.advance_high_watermark(3)
    assert fields(ask(node, LATEST_TIMESTAMP)) == (0, 3, -1, 4)


@pytest.mark.parametrize(
    ("topic", "index", "code"),
    [
        ("unheard-of", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (ELSEWHERE, 0, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_what_is_not_here_is_refused(
    node: HostingBroker, topic: str, index: int, code: ErrorCode
) -> None:
    assert fields(ask(node, LATEST_TIMESTAMP, topic=topic, index=index)) == (code, -1, -1, -1)


def test_a_partition_asked_for_twice_is_refused_once(node: HostingBroker) -> None:
    question = ListOffsetsPartition(partition_index=0, timestamp=LATEST_TIMESTAMP)
    other = ListOffsetsPartition(partition_index=1, timestamp=LATEST_TIMESTAMP)
    request = ListOffsetsRequest(
        replica_id=CONSUMER,
        topics=[
            ListOffsetsTopic(name=TOPIC, partitions=[question, other]),
            ListOffsetsTopic(name=TOPIC, partitions=[question]),
        ],
    )
    (topic,) = node.ask(api, request, ListOffsetsResponse, LAST).topics
    assert [(each.partition_index, each.error_code) for each in topic.partitions] == [
        (0, ErrorCode.INVALID_REQUEST),
        (1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


def test_an_unknown_isolation_level_fails_everything(node: HostingBroker) -> None:
    answer = ask(node, LATEST_TIMESTAMP, isolation_level=7)
    assert fields(answer) == (ErrorCode.UNKNOWN_SERVER_ERROR, -1, -1, -1)


def test_a_broken_log_is_a_storage_error(
    node: HostingBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(timestamp_ms: int) -> None:
        raise DiskError("data", "unreadable")

    monkeypatch.setattr(type(node.log), "find_by_timestamp", lambda self, at: refuse(at))
    assert ask(node, 5).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert node.failed == [node.log]
    assert ask(node, LATEST_TIMESTAMP).error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_nonsense_inside_a_batch_is_corrupt_and_breaks_nothing(
    node: HostingBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(timestamp_ms: int) -> None:
        raise CorruptBatch("nonsense")

    monkeypatch.setattr(type(node.log), "find_by_timestamp", lambda self, at: refuse(at))
    assert ask(node, 5).error_code == ErrorCode.CORRUPT_MESSAGE
    assert node.failed == []
    assert ask(node, LATEST_TIMESTAMP).error_code == ErrorCode.NONE
