"""ListOffsets (api key 2), versions 1 to 11.

Finds an offset by timestamp, or one end of a partition. A consumer sees up to the high watermark
(read_committed: the last stable offset), a replica up to the log end; a debugging replica (-2) asks
any replica, not only the leader. Right after an election the leader may not know yet how far its
predecessor had committed: then the latest offset is "not available" instead of going backwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.replicas.partition_lookup import find_hosted, leader_epoch_of
from tidelog.core.replication.partition import Partition
from tidelog.core.storage.disk import DiskError
from tidelog.core.storage.log import TimestampedOffset
from tidelog.core.wire.messages.api_02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tidelog.core.wire.record_batch import CorruptBatch
from tidelog.core.wire.sentinels import (
    CONSUMER_REPLICA_ID,
    DEBUGGING_REPLICA_ID,
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    NO_TIMESTAMP,
    UNKNOWN_OFFSET,
)

if TYPE_CHECKING:
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 2
VERSIONS = range(1, 12)
WAITS_FOR_METADATA = True

FIRST_VERSION_OF = {
    LATEST_TIMESTAMP: 1,
    EARLIEST_TIMESTAMP: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL_TIMESTAMP: 8,
    LATEST_TIERED_TIMESTAMP: 9,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP: 11,
}
"""The words among the timestamps; each needs a version that has it."""

READ_COMMITTED = 1
LEADER_EPOCHS_FROM = 4
NOT_AVAILABLE_FROM = 5


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(ListOffsetsRequest)
    if call.isolation_level not in (0, READ_COMMITTED):
        request.answer(_all_refused(call, ErrorCode.UNKNOWN_SERVER_ERROR))
        return
    questions: dict[str, dict[int, ListOffsetsPartition]] = {}
    twice = set()
    for topic in call.topics:
        of_topic = questions.setdefault(topic.name, {})
        for partition in topic.partitions:
            if partition.partition_index in of_topic:
                twice.add((topic.name, partition.partition_index))
            of_topic[partition.partition_index] = partition
    response = ListOffsetsResponse(topics=[])
    for name, of_topic in questions.items():
        answers = [
            _refused(index, ErrorCode.INVALID_REQUEST)
            if (name, index) in twice
            else _answer(node, request.version, call, name, question)
            for index, question in of_topic.items()
        ]
        response.topics.append(ListOffsetsTopicResponse(name=name, partitions=answers))
    request.answer(response)


def _answer(
    node: Node, version: int, call: ListOffsetsRequest, topic: str, question: ListOffsetsPartition
) -> ListOffsetsPartitionResponse:
    index, timestamp = question.partition_index, question.timestamp
    if timestamp < 0 and version < FIRST_VERSION_OF.get(timestamp, version + 1):
        return _refused(index, ErrorCode.UNSUPPORTED_VERSION)
    partition = find_hosted(node, topic, index)
    if isinstance(partition, ErrorCode):
        return _refused(index, partition)
    refusal = partition.refuse_leader_epoch(leader_epoch_of(question.current_leader_epoch))
    if refusal != ErrorCode.NONE:
        return _refused(index, refusal)
    if call.replica_id != DEBUGGING_REPLICA_ID and not partition.is_leader:
        return _refused(index, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    fence = _fence(partition, call)
    is_lagging = call.replica_id == CONSUMER_REPLICA_ID and _is_lagging(partition)
    if timestamp == LATEST_TIMESTAMP:
        if is_lagging:
            return _refused(index, _not_available(version))
        return _found(version, index, fence, partition.leader_epoch)
    if timestamp in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
        return _found(version, index, partition.log_start_offset, _first_leader_epoch(partition))
    if timestamp in (LATEST_TIERED_TIMESTAMP, EARLIEST_PENDING_UPLOAD_TIMESTAMP):
        return _found(version, index, UNKNOWN_OFFSET, None)
    return _by_time(node, partition, version, question, fence, is_lagging=is_lagging)


def _by_time(
    node: Node,
    partition: Partition,
    version: int,
    question: ListOffsetsPartition,
    fence: int,
    *,
    is_lagging: bool,
) -> ListOffsetsPartitionResponse:
    """A record at or behind the fence is not for this reader yet: for now there is none."""
    index, log = question.partition_index, partition.log
    try:
        if question.timestamp == MAX_TIMESTAMP:
            found = log.largest_timestamp() or _without_timestamps(partition)
        else:
            found = log.find_by_timestamp(question.timestamp)
    except CorruptBatch:  # a producer may pack nonsense under a checksum that is right
        return _refused(index, ErrorCode.CORRUPT_MESSAGE)
    except DiskError as error:
        log.fail(error)
        node.on_log_failed(log)
        return _refused(index, ErrorCode.KAFKA_STORAGE_ERROR)
    if found is None or found.offset >= fence:
        return _refused(index, _not_available(version) if is_lagging else ErrorCode.NONE)
    return _found(version, index, found.offset, found.leader_epoch, found.timestamp_ms)


def _without_timestamps(partition: Partition) -> TimestampedOffset | None:
    """Records without any timestamp count as having -1, so the first one has the largest."""
    start_offset = partition.log_start_offset
    if start_offset == partition.log.log_end_offset:
        return None
    return TimestampedOffset(NO_TIMESTAMP, start_offset, _first_leader_epoch(partition))


def _fence(partition: Partition, call: ListOffsetsRequest) -> int:
    if call.replica_id != CONSUMER_REPLICA_ID:
        return partition.log.log_end_offset
    if call.isolation_level == READ_COMMITTED:
        return partition.log.last_stable_offset
    return partition.high_watermark


def _is_lagging(partition: Partition) -> bool:
    """The high watermark has not reached the beginning of this leader's own records."""
    leadership = partition.leadership
    return leadership is not None and leadership.start_offset > partition.high_watermark


def _first_leader_epoch(partition: Partition) -> int | None:
    """Of the first record; in an empty log, of the leader that will write it."""
    log = partition.log
    known = log.epochs.of_offset(log.log_start_offset)
    if known is None and log.log_start_offset == log.log_end_offset:
        return partition.leader_epoch
    return known


def _found(
    version: int,
    index: int,
    offset: int,
    leader_epoch: int | None,
    timestamp_ms: int = NO_TIMESTAMP,
) -> ListOffsetsPartitionResponse:
    answer = ListOffsetsPartitionResponse(
        partition_index=index, timestamp=timestamp_ms, offset=offset
    )
    if leader_epoch is not None and version >= LEADER_EPOCHS_FROM:
        answer.leader_epoch = leader_epoch
    return answer


def _refused(index: int, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=index, error_code=code)


def _not_available(version: int) -> ErrorCode:
    if version >= NOT_AVAILABLE_FROM:
        return ErrorCode.OFFSET_NOT_AVAILABLE
    return ErrorCode.LEADER_NOT_AVAILABLE


def _all_refused(call: ListOffsetsRequest, code: ErrorCode) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[_refused(each.partition_index, code) for each in topic.partitions],
            )
            for topic in call.topics
        ]
    )
