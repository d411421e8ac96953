"""WriteTxnMarkers (api key 27), versions 1 and 2: the end of transactions, in this broker's logs.

Coordinators send it when a transaction is decided, and administrators to end one that hangs. A
marker counts when the high watermark has passed it, like a write with `acks=all`. In
`__consumer_offsets` it also decides about offsets: that is up to the group coordinator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.coordinator.outcome import Outcome, ReplyTo
from tidelog.core.groups.group_shard import GroupShard
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import ProducerIdAndEpoch
from tidelog.core.model.topic_name import OFFSETS_TOPIC
from tidelog.core.node.coordinators.topic_coordinator import Caller
from tidelog.core.replication.partition import Partition
from tidelog.core.wire.control_records import EndTransactionMarker, end_txn_marker
from tidelog.core.wire.messages.api_27_write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tidelog.core.wire.records import build

if TYPE_CHECKING:
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 27
VERSIONS = range(1, 3)
WAITS_FOR_METADATA = True

TIMEOUT_MS = 30_000
"""How long a marker waits to be replicated."""
_NOT_READY = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""Of a group coordinator. A transaction coordinator looks for the partition's leader again."""


class _Markers:
    """One request, until every partition has its marker or has refused it."""

    def __init__(self, request: Request, response: WriteTxnMarkersResponse, count: int) -> None:
        self._request = request
        self._response = response
        self._left = count
        if not count:
            request.answer(response)

    def done(self, result: WritableTxnMarkerPartitionResult, error: ErrorCode) -> None:
        result.error_code = error
        self._left -= 1
        if not self._left:
            self._request.answer(self._response)


class MarkerWrite:
    """A marker that is in the leader's log and waits for the high watermark."""

    __slots__ = ("_markers", "_node", "_partition", "_result", "is_done", "timeout_ms")

    def __init__(
        self,
        node: Node,
        markers: _Markers,
        result: WritableTxnMarkerPartitionResult,
        partition: Partition,
    ) -> None:
        self._node = node
        self._markers = markers
        self._result = result
        self._partition = partition
        self.timeout_ms = TIMEOUT_MS
        self.is_done = False

    def on_covered(self) -> None:
        self._finish(ErrorCode.NONE)

    def on_partition_gone(self, partition: object, code: ErrorCode) -> None:
        self._finish(code)

    def on_expired(self, now_ms: int) -> None:
        self._finish(ErrorCode.REQUEST_TIMED_OUT)
        self._partition.purgatory.drop_done()

    def _finish(self, error: ErrorCode) -> None:
        if not self.is_done:
            self.is_done = True
            self._node.timeouts.discard(self, timeout_ms=self.timeout_ms)
            self._markers.done(self._result, error)


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(WriteTxnMarkersRequest)
    response = WriteTxnMarkersResponse(markers=[_unanswered(marker) for marker in call.markers])
    results = [
        (marker, topic.name, result)
        for marker, answer in zip(call.markers, response.markers, strict=True)
        for topic in answer.topics
        for result in topic.partitions
    ]
    response.markers = [answer for answer in response.markers if answer.topics]
    markers = _Markers(request, response, len(results))
    for marker, topic, result in results:
        index = result.partition_index
        partition = node.partition(topic, index)
        if partition is None:
            markers.done(result, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        elif marker.producer_epoch < 0 or marker.transaction_version < 0:
            markers.done(result, ErrorCode.UNKNOWN_SERVER_ERROR)
        elif topic == OFFSETS_TOPIC:
            _end_offsets(node, markers, marker, index, result, now_ms)
        else:
            _write(node, markers, marker, partition, result, now_ms)


def _unanswered(marker: WritableTxnMarker) -> WritableTxnMarkerResult:
    return WritableTxnMarkerResult(
        producer_id=marker.producer_id,
        topics=[
            WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=[
                    WritableTxnMarkerPartitionResult(partition_index=index)
                    for index in topic.partition_indexes
                ],
            )
            for topic in marker.topics
            if topic.partition_indexes
        ],
    )


def _write(
    node: Node,
    markers: _Markers,
    marker: WritableTxnMarker,
    partition: Partition,
    result: WritableTxnMarkerPartitionResult,
    now_ms: int,
) -> None:
    error = _refuse(node, partition)
    if error is not ErrorCode.NONE:
        markers.done(result, error)
        return
    wall_ms = node.wall_ms(now_ms)
    record = end_txn_marker(
        commit=marker.transaction_result,
        coordinator_epoch=marker.coordinator_epoch,
        timestamp_ms=wall_ms,
    )
    batch = build(
        [record],
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        transactional=True,
        control=True,
    )
    appended = partition.log.append_as_leader(
        memoryview(batch),
        leader_epoch=partition.leader_epoch,
        wall_ms=wall_ms,
        from_client=False,
        transaction_version=marker.transaction_version,
    )
    if appended.error is not ErrorCode.NONE:
        if appended.error is ErrorCode.KAFKA_STORAGE_ERROR:
            node.on_log_failed(partition.log)
        markers.done(result, appended.error)
        return
    node.touch(partition)
    assert appended.end_offset is not None
    write = MarkerWrite(node, markers, result, partition)
    partition.purgatory.park(write, required_end_offset=appended.end_offset)
    node.newly_parked.append(write)


def _refuse(node: Node, partition: Partition) -> ErrorCode:
    if partition.log.failed is not None:
        return ErrorCode.KAFKA_STORAGE_ERROR
    if partition.leadership is None or not node.session_watch.is_confirmed:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.NOT_ENOUGH_REPLICAS if partition.is_under_minimum else ErrorCode.NONE


def _end_offsets(
    node: Node,
    markers: _Markers,
    marker: WritableTxnMarker,
    index: int,
    result: WritableTxnMarkerPartitionResult,
    now_ms: int,
) -> None:
    producer = ProducerIdAndEpoch(marker.producer_id, marker.producer_epoch)
    end = EndTransactionMarker(marker.transaction_result, marker.coordinator_epoch)

    def write(shard: GroupShard, reply_to: ReplyTo, now_ms: int) -> Outcome:
        return Outcome(
            producer=producer,
            marker=end,
            transaction_version=marker.transaction_version,
            replies=[(reply_to, ErrorCode.NONE)],
        )

    def refuse(error: ErrorCode) -> None:
        markers.done(result, ErrorCode.NOT_LEADER_OR_FOLLOWER if error in _NOT_READY else error)

    caller = Caller(lambda error: markers.done(result, error), refuse)
    node.group_coordinator.runtime.submit(index, write, ReplyTo(caller), now_ms)
