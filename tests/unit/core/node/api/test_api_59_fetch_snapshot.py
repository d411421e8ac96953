"""FetchSnapshot: pieces of a snapshot of the metadata, for whoever is too far behind."""

from __future__ import annotations

from tests.unit.core.node.quorums import QuorumCluster
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.topic_name import METADATA_TOPIC
from tidelog.core.wire.messages.api_59_fetch_snapshot import (
    FetchSnapshotRequest,
    FetchSnapshotRequestPartition,
    FetchSnapshotRequestTopic,
    FetchSnapshotResponse,
    FetchSnapshotResponsePartition,
    SnapshotId,
)


def piece(
    quorum: QuorumCluster, *, end_offset: int, position: int = 0, quorum_epoch: int = 1
) -> FetchSnapshotResponsePartition:
    partition = FetchSnapshotRequestPartition(
        partition=0,
        current_leader_epoch=quorum_epoch,
        snapshot_id=SnapshotId(end_offset=end_offset, epoch=1),
        position=position,
    )
    topic = FetchSnapshotRequestTopic(name=METADATA_TOPIC, partitions=[partition])
    question = FetchSnapshotRequest(replica_id=3, max_bytes=100, topics=[topic])
    return quorum.ask(1, question, FetchSnapshotResponse).topics[0].partitions[0]


def test_pieces_of_a_snapshot(quorum: QuorumCluster) -> None:
    newest = quorum.take_snapshot()
    first = piece(quorum, end_offset=newest.end_offset)
    assert (len(first.unaligned_records), first.position) == (100, 0)
    assert first.size > 100
    rest = piece(quorum, end_offset=newest.end_offset, position=first.size - 10)
    assert len(rest.unaligned_records) == 10
    beyond = piece(quorum, end_offset=newest.end_offset, position=first.size)
    assert beyond.error_code == ErrorCode.POSITION_OUT_OF_RANGE
    assert piece(quorum, end_offset=1).error_code == ErrorCode.SNAPSHOT_NOT_FOUND
    past = piece(quorum, end_offset=newest.end_offset, quorum_epoch=0)
    assert past.error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_another_topic_or_cluster_has_no_snapshot(quorum: QuorumCluster) -> None:
    partition = FetchSnapshotRequestPartition(partition=0, current_leader_epoch=1)
    topic = FetchSnapshotRequestTopic(name="orders", partitions=[partition])
    call = FetchSnapshotRequest(replica_id=3, topics=[topic])

    answer = quorum.ask(1, call, FetchSnapshotResponse)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    call.cluster_id = "another"
    answer = quorum.ask(1, call, FetchSnapshotResponse)
    assert (answer.error_code, answer.topics) == (ErrorCode.INCONSISTENT_CLUSTER_ID, [])
