"""DeleteRecords (api key 21), versions 0 to 2.

Moves the start of partitions forward: what lies before it is gone for every reader at once, and
from disk when its whole segment is. -1 means everything up to the high watermark. The answer waits
until every living replica has done the same, or the time is up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.topic_name import is_internal_topic
from tidelog.core.node.replicas.partition_lookup import find_leader
from tidelog.core.replication.partition import Partition
from tidelog.core.wire.messages.api_21_delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from tidelog.core.wire.sentinels import UNKNOWN_OFFSET, UP_TO_HIGH_WATERMARK

if TYPE_CHECKING:
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 21
VERSIONS = range(3)


Waits = dict[Partition, tuple[DeleteRecordsPartitionResult, int]]
"""The answer for a partition, and the log start that all its replicas must reach."""


class ParkedDeletion:
    """Some followers have not moved their log starts yet."""

    __slots__ = ("_node", "_request", "_response", "_timeout_ms", "_waits")

    def __init__(
        self, node: Node, request: Request, response: DeleteRecordsResponse, waits: Waits
    ) -> None:
        self._node = node
        self._request = request
        self._response = response
        self._waits = waits
        self._timeout_ms = 0

    def park(self, timeout_ms: int, now_ms: int) -> None:
        for partition in self._waits:
            partition.deletion_watchers[self] = None
        self._request.parked = self
        self._timeout_ms = max(timeout_ms, 0)
        self._node.timeouts.add(self, timeout_ms=self._timeout_ms, now_ms=now_ms)

    def on_partition_changed(self) -> None:
        for partition, (result, start_offset) in list(self._waits.items()):
            low_watermark, code = _state(partition)
            if code != ErrorCode.NONE or low_watermark >= start_offset:
                result.error_code, result.low_watermark = code, low_watermark
                partition.deletion_watchers.pop(self, None)
                del self._waits[partition]
        if not self._waits:
            self._finish()

    def on_expired(self, now_ms: int) -> None:
        """Done here, and not known to be done elsewhere."""
        for result, _ in self._waits.values():
            result.error_code = ErrorCode.REQUEST_TIMED_OUT
        self._finish()

    def drop(self) -> None:
        self._node.timeouts.discard(self, timeout_ms=self._timeout_ms)
        for partition in self._waits:
            partition.deletion_watchers.pop(self, None)

    def _finish(self) -> None:
        self.drop()
        self._request.answer(self._response)


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(DeleteRecordsRequest)
    wanted: dict[str, dict[int, int]] = {}
    for topic in call.topics:
        of_topic = wanted.setdefault(topic.name, {})
        of_topic.update((each.partition_index, each.offset) for each in topic.partitions)
    waits: Waits = {}
    results = [
        DeleteRecordsTopicResult(
            name=name,
            partitions=[
                _delete(node, name, index, offset, waits) for index, offset in of_topic.items()
            ],
        )
        for name, of_topic in wanted.items()
    ]
    response = DeleteRecordsResponse(topics=results)
    if waits:
        ParkedDeletion(node, request, response, waits).park(call.timeout_ms, now_ms)
    else:
        request.answer(response)


def _delete(
    node: Node, topic: str, index: int, offset: int, waits: Waits
) -> DeleteRecordsPartitionResult:
    partition = find_leader(node, topic, index, claimed_leader_epoch=None)
    if partition == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return _refused(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if is_internal_topic(topic):
        return _refused(index, ErrorCode.INVALID_TOPIC_EXCEPTION)
    if isinstance(partition, ErrorCode):
        return _refused(index, partition)
    start_offset = partition.high_watermark if offset == UP_TO_HIGH_WATERMARK else offset
    refusal = _refuse(partition, start_offset)
    if refusal != ErrorCode.NONE:
        return _refused(index, refusal)
    if start_offset > partition.log_start_offset:
        partition.log.delete_records_before(start_offset)
        partition.notify_watchers()
    if partition.log.failed is not None:
        node.on_log_failed(partition.log)
        return _refused(index, ErrorCode.KAFKA_STORAGE_ERROR)
    low_watermark, _ = _state(partition)
    result = DeleteRecordsPartitionResult(partition_index=index, low_watermark=low_watermark)
    if low_watermark < start_offset:
        waits[partition] = (result, start_offset)
    return result


def _state(partition: Partition) -> tuple[int, ErrorCode]:
    """Before which offset everything is deleted everywhere; or why we cannot know."""
    if partition.is_deleted:
        return UNKNOWN_OFFSET, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if partition.log.failed is not None:
        return UNKNOWN_OFFSET, ErrorCode.KAFKA_STORAGE_ERROR
    if partition.leadership is None:
        return UNKNOWN_OFFSET, ErrorCode.NOT_LEADER_OR_FOLLOWER
    low_watermark = partition.leadership.low_watermark(partition.log_start_offset)
    return (UNKNOWN_OFFSET if low_watermark is None else low_watermark), ErrorCode.NONE


def _refuse(partition: Partition, start_offset: int) -> ErrorCode:
    """What was not committed cannot be deleted, and a compacted topic keeps its keys."""
    config = partition.log.config
    if config.compact and not config.delete:
        return ErrorCode.POLICY_VIOLATION
    if not 0 <= start_offset <= partition.high_watermark:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    return ErrorCode.NONE


def _refused(index: int, code: ErrorCode) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=index, low_watermark=UNKNOWN_OFFSET, error_code=code
    )
