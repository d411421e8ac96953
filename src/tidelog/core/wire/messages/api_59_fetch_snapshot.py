"""FetchSnapshot (api key 59): a piece of a snapshot of the metadata log.

Version 1 brings the follower's directory id and says where a new leader is.
"""

from __future__ import annotations

from tidelog.core.wire.schema import (
    Message,
    Struct,
    array,
    int16,
    int32,
    int64,
    nested,
    record_bytes,
    string,
    uint16,
    uuid,
)


class SnapshotId(Struct):
    """A snapshot's name: where the log that it stands for ends, and in which epoch."""

    end_offset: int = int64()
    epoch: int = int32()


class FetchSnapshotRequestPartition(Struct):
    """The snapshot, and the byte to go on with."""

    partition: int = int32()
    current_leader_epoch: int = int32()
    snapshot_id: SnapshotId = nested(SnapshotId)
    position: int = int64()
    replica_directory_id: bytes = uuid("1+", tag=0, ignorable=True)


class FetchSnapshotRequestTopic(Struct):
    """The metadata topic."""

    name: str = string()
    partitions: list[FetchSnapshotRequestPartition] = array(FetchSnapshotRequestPartition)


class FetchSnapshotRequest(Message, api_key=59, versions="0-1", flexible_from=0):
    """Which snapshot a follower reads, and how much of it at once."""

    cluster_id: str | None = string(nullable="0+", default=None, tag=0)
    replica_id: int = int32(default=-1)
    max_bytes: int = int32(default=2**31 - 1)
    topics: list[FetchSnapshotRequestTopic] = array(FetchSnapshotRequestTopic)


class LeaderIdAndEpoch(Struct):
    """Who leads now; -1 for no leader."""

    leader_id: int = int32()
    leader_epoch: int = int32()


class FetchSnapshotResponsePartition(Struct):
    """A piece, its place, and the size of the whole; a piece may begin or end inside a batch."""

    index: int = int32()
    error_code: int = int16()
    snapshot_id: SnapshotId = nested(SnapshotId)
    current_leader: LeaderIdAndEpoch = nested(LeaderIdAndEpoch, tag=0)
    size: int = int64()
    position: int = int64()
    unaligned_records: bytes | memoryview = record_bytes()


class FetchSnapshotResponseTopic(Struct):
    """The metadata topic."""

    name: str = string()
    partitions: list[FetchSnapshotResponsePartition] = array(FetchSnapshotResponsePartition)


class NodeEndpoint(Struct):
    """Where to reach a leader named above."""

    node_id: int = int32()
    host: str = string()
    port: int = uint16()


class FetchSnapshotResponse(Message, api_key=59, versions="0-1", flexible_from=0):
    """The piece that was asked for."""

    throttle_time_ms: int = int32(ignorable=True)
    error_code: int = int16()
    topics: list[FetchSnapshotResponseTopic] = array(FetchSnapshotResponseTopic)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "1+", tag=0)
