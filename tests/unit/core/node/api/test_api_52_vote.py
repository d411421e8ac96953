"""Vote: who gets this node's vote in an election of the metadata quorum."""

from __future__ import annotations

import pytest

from tests.unit.core.node.quorums import QuorumCluster
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.topic_name import METADATA_TOPIC
from tidelog.core.wire.messages.api_52_vote import (
    VoteRequest,
    VoteRequestPartition,
    VoteRequestTopic,
    VoteResponse,
)


def vote(
    *,
    quorum_epoch: int = 5,
    candidate: int = 3,
    position: tuple[int, int] = (1, 1_000),
    voter: int = 2,
    topic: str = METADATA_TOPIC,
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
    answer = quorum.ask(2, vote(), VoteResponse)

    result = answer.topics[0].partitions[0]
    assert (result.vote_granted, result.leader_epoch, result.leader_id) == (True, 5, -1)
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
    answer = quorum.ask(2, question, VoteResponse)

    assert answer.error_code == top
    if inside is None:
        assert answer.topics == []
    else:
        result = answer.topics[0].partitions[0]
        assert (result.error_code, result.vote_granted) == (inside, False)
    assert quorum.node(2).quorum.machine.voted_for in (None, 1)
