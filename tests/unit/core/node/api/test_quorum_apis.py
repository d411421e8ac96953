"""What a node answers other voters, followers of its metadata, and whoever asks for the quorum."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import pytest

from tests.unit.core.node.quorums import QuorumCluster
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import METADATA_TOPIC_ID
from tidelog.core.node.api import HANDLERS
from tidelog.core.node.passed_on import OwnRequest
from tidelog.core.quorum.roles import Role
from tidelog.core.wire.messages.api_01_fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from tidelog.core.wire.messages.api_52_vote import (
    VoteRequest,
    VoteRequestPartition,
    VoteRequestTopic,
    VoteResponse,
)
from tidelog.core.wire.messages.api_53_begin_quorum_epoch import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochRequestPartition,
    BeginQuorumEpochRequestTopic,
    BeginQuorumEpochResponse,
)
from tidelog.core.wire.messages.api_54_end_quorum_epoch import (
    EndQuorumEpochRequest,
    EndQuorumEpochRequestPartition,
    EndQuorumEpochRequestTopic,
    EndQuorumEpochResponse,
)
from tidelog.core.wire.messages.api_55_describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartition,
    DescribeQuorumRequestTopic,
    DescribeQuorumResponse,
)
from tidelog.core.wire.messages.api_59_fetch_snapshot import (
    FetchSnapshotRequest,
    FetchSnapshotRequestPartition,
    FetchSnapshotRequestTopic,
    FetchSnapshotResponse,
    FetchSnapshotResponsePartition,
    SnapshotId,
)
from tidelog.core.wire.schema import Message

TOPIC = "__cluster_metadata"
A = TypeVar("A", bound=Message)


@pytest.fixture(name="quorum")
def a_quorum() -> Iterator[QuorumCluster]:
    """Three nodes; node 1 leads quorum epoch 1."""
    quorum = QuorumCluster(settings={"metadata.log.max.record.bytes.between.snapshots": "1500"})
    quorum.come_to_rest()
    yield quorum
    for node in quorum.cluster.running.values():
        node.check()


def ask(quorum: QuorumCluster, node_id: int, question: Message, kind: type[A]) -> A:
    answers: list[Message] = []
    request = OwnRequest(question, max(HANDLERS[question.api_key].versions), answers.append)
    node = quorum.node(node_id)
    if isinstance(question, FetchRequest):
        node.quorum.fetches.handle(request, quorum.world.now_ms)
    else:
        HANDLERS[question.api_key].handle(node, request, quorum.world.now_ms)
    (answer,) = answers
    assert isinstance(answer, kind)
    return answer


def vote(
    *,
    quorum_epoch: int = 5,
    candidate: int = 3,
    position: tuple[int, int] = (1, 1_000),
    voter: int = 2,
    topic: str = TOPIC,
    index: int = 0,
    cluster_id: str | None = None,
) -> VoteRequest:
    partition = VoteRequestPartition(
        partition_index=index,
        replica_epoch=quorum_epoch,
        replica_id=candidate,
        last_offset_epoch=position[0],
        last_offset=position[1],
    )
    topics = [VoteRequestTopic(topic_name=topic, partitions=[partition])]
    return VoteRequest(cluster_id=cluster_id, voter_id=voter, topics=topics)


def test_a_vote_is_granted_and_the_epoch_taken_over(quorum: QuorumCluster) -> None:
    answer = ask(quorum, 2, vote(), VoteResponse)

    told = answer.topics[0].partitions[0]
    assert (told.vote_granted, told.leader_epoch, told.leader_id) == (True, 5, -1)
    assert quorum.node(2).quorum.machine.voted_for == 3


@pytest.mark.parametrize(
    ("question", "top", "inside"),
    [
        (vote(cluster_id="another"), ErrorCode.INCONSISTENT_CLUSTER_ID, None),
        (vote(topic="orders"), ErrorCode.INVALID_REQUEST, None),
        (vote(index=1), ErrorCode.INVALID_REQUEST, None),
        (VoteRequest(), ErrorCode.INVALID_REQUEST, None),
        (vote(quorum_epoch=0), ErrorCode.NONE, ErrorCode.INVALID_REQUEST),
        (vote(position=(-1, 0)), ErrorCode.NONE, ErrorCode.INVALID_REQUEST),
        (vote(candidate=-1), ErrorCode.NONE, ErrorCode.INVALID_REQUEST),
        (vote(voter=1), ErrorCode.NONE, ErrorCode.INVALID_VOTER_KEY),
        (vote(position=(1, 0)), ErrorCode.NONE, ErrorCode.NONE),
    ],
)
def test_votes_that_are_not_given(
    quorum: QuorumCluster, question: VoteRequest, top: ErrorCode, inside: ErrorCode | None
) -> None:
    answer = ask(quorum, 2, question, VoteResponse)

    assert answer.error_code == top
    if inside is None:
        assert answer.topics == []
    else:
        told = answer.topics[0].partitions[0]
        assert (told.error_code, told.vote_granted) == (inside, False)
    assert quorum.node(2).quorum.machine.voted_for in (None, 1)


def begin(leader_id: int, quorum_epoch: int) -> BeginQuorumEpochRequest:
    partition = BeginQuorumEpochRequestPartition(
        partition_index=0, leader_id=leader_id, leader_epoch=quorum_epoch
    )
    topic = BeginQuorumEpochRequestTopic(topic_name=TOPIC, partitions=[partition])
    return BeginQuorumEpochRequest(voter_id=2, topics=[topic])


def test_a_new_leader_is_followed_and_an_old_one_told_so(quorum: QuorumCluster) -> None:
    old = ask(quorum, 2, begin(3, 0), BeginQuorumEpochResponse).topics[0].partitions[0]
    assert (old.error_code, old.leader_id) == (ErrorCode.FENCED_LEADER_EPOCH, 1)

    answer = ask(quorum, 2, begin(3, 4), BeginQuorumEpochResponse)

    new = answer.topics[0].partitions[0]
    assert (new.error_code, new.leader_id, new.leader_epoch) == (ErrorCode.NONE, 3, 4)
    assert [(each.node_id, each.host) for each in answer.node_endpoints] == [(3, "node-3")]
    assert quorum.node(2).quorum.machine.role is Role.FOLLOWER


def test_a_leader_that_leaves_makes_its_successor_stand_at_once(quorum: QuorumCluster) -> None:
    partition = EndQuorumEpochRequestPartition(
        partition_index=0, leader_id=1, leader_epoch=1, preferred_successors=[2, 3]
    )
    topic = EndQuorumEpochRequestTopic(topic_name=TOPIC, partitions=[partition])

    answer = ask(quorum, 2, EndQuorumEpochRequest(topics=[topic]), EndQuorumEpochResponse)

    assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE
    assert quorum.node(2).quorum.machine.deadline_ms == quorum.world.now_ms


def described(quorum: QuorumCluster, node_id: int) -> DescribeQuorumResponse:
    partition = DescribeQuorumRequestPartition(partition_index=0)
    topic = DescribeQuorumRequestTopic(topic_name=TOPIC, partitions=[partition])
    return ask(quorum, node_id, DescribeQuorumRequest(topics=[topic]), DescribeQuorumResponse)


def test_the_leader_describes_the_quorum(quorum: QuorumCluster) -> None:
    answer = described(quorum, 1)

    told = answer.topics[0].partitions[0]
    end_offset = quorum.node(1).metadata.log.log_end_offset
    assert (told.leader_id, told.leader_epoch, told.high_watermark) == (1, 1, end_offset)
    assert [voter.replica_id for voter in told.current_voters] == [1, 2, 3]
    assert {voter.log_end_offset for voter in told.current_voters} == {end_offset}
    assert all(voter.last_caught_up_timestamp > 0 for voter in told.current_voters)
    assert len({voter.replica_directory_id for voter in told.current_voters}) == 3
    assert [(each.node_id, each.listeners[0].host) for each in answer.nodes] == [
        (1, "node-1"), (2, "node-2"), (3, "node-3"),
    ]  # fmt: skip


def test_only_the_leader_can_describe_the_quorum(quorum: QuorumCluster) -> None:
    told = described(quorum, 2).topics[0].partitions[0]

    assert told.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def fetched(
    quorum: QuorumCluster, node_id: int, *, offset: int, newest: int, quorum_epoch: int = 1
) -> PartitionData:
    partition = FetchPartition(
        partition=0,
        current_leader_epoch=quorum_epoch,
        fetch_offset=offset,
        last_fetched_epoch=newest,
        partition_max_bytes=2**20,
        high_watermark=-1,
    )
    question = FetchRequest(
        replica_state=ReplicaState(replica_id=9),
        topics=[FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[partition])],
    )
    return ask(quorum, node_id, question, FetchResponse).responses[0].partitions[0]


def test_a_fetch_is_answered_by_the_leader_of_that_epoch_alone(quorum: QuorumCluster) -> None:
    assert fetched(quorum, 1, offset=0, newest=0).records
    follower = fetched(quorum, 2, offset=0, newest=0)
    assert follower.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (follower.current_leader.leader_id, follower.current_leader.leader_epoch) == (1, 1)
    past = fetched(quorum, 1, offset=0, newest=0, quorum_epoch=0)
    assert past.error_code == ErrorCode.FENCED_LEADER_EPOCH
    future = fetched(quorum, 1, offset=0, newest=0, quorum_epoch=2)
    assert future.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert fetched(quorum, 1, offset=0, newest=2).error_code == ErrorCode.INVALID_REQUEST
    assert fetched(quorum, 1, offset=-1, newest=0).error_code == ErrorCode.INVALID_REQUEST


def test_a_log_that_went_its_own_way_is_told_where_to_cut(quorum: QuorumCluster) -> None:
    end_offset = quorum.node(1).metadata.log.log_end_offset

    told = fetched(quorum, 1, offset=end_offset + 7, newest=1)

    assert (told.diverging_epoch.epoch, told.diverging_epoch.end_offset) == (1, end_offset)
    assert not told.records
    leadership = quorum.node(1).quorum.machine.leadership
    assert leadership is not None and 9 not in leadership.observers, "it acknowledged nothing"


def piece(
    quorum: QuorumCluster, *, end_offset: int, position: int = 0, quorum_epoch: int = 1
) -> FetchSnapshotResponsePartition:
    partition = FetchSnapshotRequestPartition(
        partition=0,
        current_leader_epoch=quorum_epoch,
        snapshot_id=SnapshotId(end_offset=end_offset, epoch=1),
        position=position,
    )
    topic = FetchSnapshotRequestTopic(name=TOPIC, partitions=[partition])
    question = FetchSnapshotRequest(replica_id=3, max_bytes=100, topics=[topic])
    return ask(quorum, 1, question, FetchSnapshotResponse).topics[0].partitions[0]


def test_pieces_of_a_snapshot(quorum: QuorumCluster) -> None:
    while quorum.node(1).metadata.snapshots.newest is None:
        quorum.agree_on("1")
        quorum.agree_on("2")
    newest = quorum.node(1).metadata.snapshots.newest
    assert newest is not None
    told = fetched(quorum, 1, offset=0, newest=0)
    assert told.snapshot_id.end_offset == newest.end_offset

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
