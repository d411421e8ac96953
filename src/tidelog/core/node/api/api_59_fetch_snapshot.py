"""FetchSnapshot (api key 59), versions 0 and 1: a piece of a snapshot of the metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.topic_name import METADATA_TOPIC
from tidelog.core.node.connections.request import Request
from tidelog.core.node.metadata.quorum_answers import endpoint_of_leader, leader_or_unknown
from tidelog.core.quorum.values import LogPosition
from tidelog.core.storage.disk import DiskError
from tidelog.core.wire.messages.api_59_fetch_snapshot import (
    FetchSnapshotRequest,
    FetchSnapshotRequestPartition,
    FetchSnapshotResponse,
    FetchSnapshotResponsePartition,
    FetchSnapshotResponseTopic,
    LeaderIdAndEpoch,
    NodeEndpoint,
)

if TYPE_CHECKING:
    from tidelog.core.node.node import Node

API_KEY = 59
VERSIONS = range(2)
BETWEEN_NODES = True


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(FetchSnapshotRequest)
    if call.cluster_id not in (None, node.metadata.cluster_id):
        request.answer(FetchSnapshotResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID))
        return
    if len(call.topics) != 1 or len(call.topics[0].partitions) != 1:
        request.answer(FetchSnapshotResponse(error_code=ErrorCode.INVALID_REQUEST))
        return
    topic = call.topics[0]
    partition = topic.partitions[0]
    result = FetchSnapshotResponsePartition(
        index=partition.partition,
        snapshot_id=partition.snapshot_id,
        current_leader=LeaderIdAndEpoch(
            leader_id=leader_or_unknown(node.metadata), leader_epoch=node.quorum.quorum_epoch
        ),
        unaligned_records=b"",
    )
    if (topic.name, partition.partition) == (METADATA_TOPIC, 0):
        result.error_code = _read(node, partition, call.max_bytes, result)
    else:
        result.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if result.error_code == ErrorCode.NONE:
        _note_follower(node, call.replica_id, now_ms)
    topic_result = FetchSnapshotResponseTopic(name=topic.name, partitions=[result])
    response = FetchSnapshotResponse(topics=[topic_result])
    if request.version >= 1:
        response.node_endpoints = endpoint_of_leader(node.metadata, NodeEndpoint)
    request.answer(response)


def _read(
    node: Node,
    partition: FetchSnapshotRequestPartition,
    bytes_max: int,
    result: FetchSnapshotResponsePartition,
) -> ErrorCode:
    code = node.quorum.refuse_as_leader(partition.current_leader_epoch)
    if code != ErrorCode.NONE:
        return code
    snapshot_id = LogPosition(partition.snapshot_id.epoch, partition.snapshot_id.end_offset)
    file = node.metadata.snapshots.file_of(snapshot_id)
    if file is None:
        return ErrorCode.SNAPSHOT_NOT_FOUND
    if not 0 <= partition.position < file.size_bytes:
        return ErrorCode.POSITION_OUT_OF_RANGE
    try:
        result.unaligned_records = file.read(partition.position, max(1, bytes_max))
    except DiskError as error:
        node.replica_manager.fail_directory_of(error.path, error.reason)
        return ErrorCode.KAFKA_STORAGE_ERROR
    result.size = file.size_bytes
    result.position = partition.position
    return ErrorCode.NONE


def _note_follower(node: Node, replica_id: int, now_ms: int) -> None:
    """A replica that fetches a snapshot from this node follows it."""
    quorum = node.quorum
    if replica_id >= 0 and replica_id != node.settings.node_id:
        quorum.step(quorum.machine.on_heard(replica_id, now_ms), now_ms)
