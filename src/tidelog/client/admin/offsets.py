"""Questions about one partition: its two ends, its leader epochs, and its producers."""

from __future__ import annotations

from typing import NamedTuple

from tidelog.client.admin.question import (
    LeaderOf,
    Question,
    RetryLater,
    TheBroker,
    needs_another_try,
)
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.messages.api_02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from tidelog.core.wire.messages.api_21_delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from tidelog.core.wire.messages.api_23_offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tidelog.core.wire.messages.api_61_describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from tidelog.core.wire.schema import Message
from tidelog.core.wire.sentinels import (
    CONSUMER_REPLICA_ID,
    DEBUGGING_REPLICA_ID,
    LATEST_TIMESTAMP,
    UP_TO_HIGH_WATERMARK,
)


class ListedOffset(NamedTuple):
    """An offset, or why not; no offset and no error: there is no such record."""

    error: ErrorCode
    offset: int | None
    timestamp_ms: int | None
    leader_epoch: int | None


class LeaderEpochEnd(NamedTuple):
    """Where a leader epoch ends: the largest one not above the one asked for."""

    error: ErrorCode
    leader_epoch: int | None
    end_offset: int | None


class ActiveProducer(NamedTuple):
    """What a replica remembers of a producer."""

    producer_id: int
    producer_epoch: int
    next_sequence: int | None
    transaction_start_offset: int | None


class ProducersDescription(NamedTuple):
    """The producers of one replica, or why not."""

    error: ErrorCode
    producers: tuple[ActiveProducer, ...]


class RecordsDeleted(NamedTuple):
    """Where the partition starts now, or why it does not."""

    error: ErrorCode
    log_start_offset: int | None


def list_offset(
    partition: TopicPartition,
    timestamp_ms: int,
    *,
    is_read_committed: bool = False,
    broker_id: int | None = None,
    leader_epoch: int | None = None,
) -> Question[ListedOffset]:
    """As a consumer asks: by time, or EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, MAX_TIMESTAMP."""
    wanted = ListOffsetsPartition(partition_index=partition.index, timestamp=timestamp_ms)
    if leader_epoch is not None:
        wanted.current_leader_epoch = leader_epoch
    return _list_offset(
        partition,
        wanted,
        replica_id=CONSUMER_REPLICA_ID,
        isolation_level=int(is_read_committed),
        broker_id=broker_id,
    )


def high_watermark(partition: TopicPartition) -> Question[ListedOffset]:
    return list_offset(partition, LATEST_TIMESTAMP)


def last_stable_offset(partition: TopicPartition) -> Question[ListedOffset]:
    return list_offset(partition, LATEST_TIMESTAMP, is_read_committed=True)


def log_end_offset(partition: TopicPartition, *, broker_id: int) -> Question[ListedOffset]:
    """Of the replica on this broker, leader or not: `end(b)` of the scenarios."""
    wanted = ListOffsetsPartition(partition_index=partition.index, timestamp=LATEST_TIMESTAMP)
    return _list_offset(
        partition,
        wanted,
        replica_id=DEBUGGING_REPLICA_ID,
        isolation_level=0,
        broker_id=broker_id,
    )


def _list_offset(
    partition: TopicPartition,
    wanted: ListOffsetsPartition,
    *,
    replica_id: int,
    isolation_level: int,
    broker_id: int | None,
) -> Question[ListedOffset]:
    topic = ListOffsetsTopic(name=partition.topic, partitions=[wanted])
    request = ListOffsetsRequest(
        replica_id=replica_id, isolation_level=isolation_level, topics=[topic]
    )

    def read(answer: Message) -> ListedOffset | RetryLater:
        assert isinstance(answer, ListOffsetsResponse)
        entry = answer.topics[0].partitions[0]
        error = ErrorCode.from_wire(entry.error_code)
        if needs_another_try(error, of_leader=broker_id is None):
            return RetryLater(error)
        return ListedOffset(
            error,
            _known(entry.offset),
            _known(entry.timestamp),
            _known(entry.leader_epoch),
        )

    return Question(request=request, read=read, target=_target(partition, broker_id))


def end_of_leader_epoch(
    partition: TopicPartition,
    leader_epoch: int,
    *,
    broker_id: int | None = None,
    current_leader_epoch: int | None = None,
) -> Question[LeaderEpochEnd]:
    """Where this leader epoch ends in the log of the leader, or of this broker."""
    wanted = OffsetForLeaderPartition(partition=partition.index, leader_epoch=leader_epoch)
    if current_leader_epoch is not None:
        wanted.current_leader_epoch = current_leader_epoch
    topic = OffsetForLeaderTopic(topic=partition.topic, partitions=[wanted])
    replica_id = CONSUMER_REPLICA_ID if broker_id is None else DEBUGGING_REPLICA_ID
    request = OffsetForLeaderEpochRequest(replica_id=replica_id, topics=[topic])

    def read(answer: Message) -> LeaderEpochEnd | RetryLater:
        assert isinstance(answer, OffsetForLeaderEpochResponse)
        entry = answer.topics[0].partitions[0]
        error = ErrorCode.from_wire(entry.error_code)
        if needs_another_try(error, of_leader=broker_id is None):
            return RetryLater(error)
        return LeaderEpochEnd(error, _known(entry.leader_epoch), _known(entry.end_offset))

    return Question(request=request, read=read, target=_target(partition, broker_id))


def describe_producers(
    partition: TopicPartition, *, broker_id: int | None = None
) -> Question[ProducersDescription]:
    """Of the leader, or of the replica on this broker: `prod(b)` of the scenarios."""
    topic = TopicRequest(name=partition.topic, partition_indexes=[partition.index])

    def read(answer: Message) -> ProducersDescription | RetryLater:
        assert isinstance(answer, DescribeProducersResponse)
        entry = answer.topics[0].partitions[0]
        error = ErrorCode.from_wire(entry.error_code)
        if needs_another_try(error, of_leader=broker_id is None):
            return RetryLater(error)
        producers = tuple(
            ActiveProducer(
                each.producer_id,
                each.producer_epoch,
                each.last_sequence + 1 if each.last_sequence >= 0 else None,
                _known(each.current_txn_start_offset),
            )
            for each in entry.active_producers
        )
        return ProducersDescription(error, producers)

    request = DescribeProducersRequest(topics=[topic])
    return Question(request=request, read=read, target=_target(partition, broker_id))


def delete_records(
    partition: TopicPartition, *, before_offset: int | None = None, timeout_ms: int = 30_000
) -> Question[RecordsDeleted]:
    """Delete everything before this offset, or everything that is committed."""
    offset = UP_TO_HIGH_WATERMARK if before_offset is None else before_offset
    wanted = DeleteRecordsPartition(partition_index=partition.index, offset=offset)
    topic = DeleteRecordsTopic(name=partition.topic, partitions=[wanted])
    request = DeleteRecordsRequest(topics=[topic], timeout_ms=timeout_ms)

    def read(answer: Message) -> RecordsDeleted | RetryLater:
        assert isinstance(answer, DeleteRecordsResponse)
        entry = answer.topics[0].partitions[0]
        error = ErrorCode.from_wire(entry.error_code)
        if needs_another_try(error, of_leader=True):
            return RetryLater(error)
        return RecordsDeleted(error, _known(entry.low_watermark))

    return Question(request=request, read=read, target=LeaderOf(partition))


def _target(partition: TopicPartition, broker_id: int | None) -> LeaderOf | TheBroker:
    return LeaderOf(partition) if broker_id is None else TheBroker(broker_id)


def _known(number: int) -> int | None:
    return None if number < 0 else number
