"""Taking a snapshot from the leader, piece by piece, for a node that is far behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.topic_name import METADATA_TOPIC
from tidelog.core.node.metadata.metadata_port import MetadataPort
from tidelog.core.quorum.values import LogPosition
from tidelog.core.wire.messages.api_59_fetch_snapshot import (
    FetchSnapshotRequest,
    FetchSnapshotRequestPartition,
    FetchSnapshotRequestTopic,
    FetchSnapshotResponse,
    FetchSnapshotResponsePartition,
    SnapshotId,
)

if TYPE_CHECKING:
    from tidelog.core.node.metadata.metadata_log import MetadataLog

VERSION = 1
SNAPSHOT_BYTES_MAX = 2**31 - 1


class SnapshotChunk(NamedTuple):
    """What an answer says besides its bytes: for the quorum's machine."""

    error: ErrorCode
    leader_id: int | None
    quorum_epoch: int
    partition: FetchSnapshotResponsePartition


class SnapshotDownload:
    """Invariant: `content` is the beginning of the snapshot at `position`, if there is one."""

    def __init__(self, port: MetadataPort, metadata: MetadataLog) -> None:
        self._node_id = port.settings.node_id
        self._bytes_max = port.settings.integer("controller.quorum.fetch.snapshot.max.bytes")
        self._metadata = metadata
        self.position: LogPosition | None = None
        self.content = bytearray()

    def begin(self, position: LogPosition) -> None:
        self.position = position
        self.content = bytearray()

    def give_up(self) -> None:
        self.position = None
        self.content = bytearray()

    def request(self, quorum_epoch: int) -> FetchSnapshotRequest:
        assert self.position is not None
        partition = FetchSnapshotRequestPartition(
            partition=0,
            current_leader_epoch=quorum_epoch,
            snapshot_id=SnapshotId(
                end_offset=self.position.end_offset, epoch=self.position.quorum_epoch
            ),
            position=len(self.content),
            replica_directory_id=self._metadata.identity.directory_ids[0],
        )
        topic = FetchSnapshotRequestTopic(name=METADATA_TOPIC, partitions=[partition])
        return FetchSnapshotRequest(
            cluster_id=self._metadata.cluster_id,
            replica_id=self._node_id,
            max_bytes=self._bytes_max,
            topics=[topic],
        )

    def on_chunk(self, partition: FetchSnapshotResponsePartition) -> bool:
        """True if the snapshot is whole now. What does not fit makes us begin again."""
        snapshot_id, records = partition.snapshot_id, partition.unaligned_records
        fits = (
            LogPosition(snapshot_id.epoch, snapshot_id.end_offset) == self.position
            and partition.position == len(self.content)
            and len(partition.unaligned_records) > 0
            and len(self.content) + len(partition.unaligned_records)
            <= partition.size
            <= SNAPSHOT_BYTES_MAX
        )
        if not fits:
            self.give_up()
            return False
        self.content += records
        return len(self.content) == partition.size


def chunk_of(answer: FetchSnapshotResponse) -> SnapshotChunk | None:
    """None: the answer is an error of the whole request, or about something else."""
    if answer.error_code or not answer.topics or not answer.topics[0].partitions:
        return None
    partition = answer.topics[0].partitions[0]
    current = partition.current_leader
    leader_id = None if current.leader_id < 0 else current.leader_id
    return SnapshotChunk(
        ErrorCode.from_wire(partition.error_code), leader_id, current.leader_epoch, partition
    )
