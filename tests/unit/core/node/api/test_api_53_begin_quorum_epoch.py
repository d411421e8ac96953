"""BeginQuorumEpoch: a new leader of the metadata quorum makes itself known."""

from __future__ import annotations

from tests.unit.core.node.quorums import QuorumCluster
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.topic_name import METADATA_TOPIC
from tidelog.core.quorum.roles import Role
from tidelog.core.wire.messages.api_53_begin_quorum_epoch import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochRequestPartition,
    BeginQuorumEpochRequestTopic,
    BeginQuorumEpochResponse,
)


def begin(leader_id: int, quorum_epoch: int) -> BeginQuorumEpochRequest:
    partition = BeginQuorumEpochRequestPartition(
        partition_index=0, leader_id=leader_id, leader_epoch=quorum_epoch
    )
    topic = BeginQuorumEpochRequestTopic(topic_name=METADATA_TOPIC, partitions=[partition])
    return BeginQuorumEpochRequest(voter_id=2, topics=[topic])


def test_a_new_leader_is_followed_and_an_old_one_told_so(quorum: QuorumCluster) -> None:
    old = quorum.ask(2, begin(3, 0), BeginQuorumEpochResponse).topics[0].partitions[0]
    assert (old.error_code, old.leader_id) == (ErrorCode.FENCED_LEADER_EPOCH, 1)

    answer = quorum.ask(2, begin(3, 4), BeginQuorumEpochResponse)

    new = answer.topics[0].partitions[0]
    assert (new.error_code, new.leader_id, new.leader_epoch) == (ErrorCode.NONE, 3, 4)
    assert [(each.node_id, each.host) for each in answer.node_endpoints] == [(3, "node-3")]
    assert quorum.node(2).quorum.machine.role is Role.FOLLOWER


def test_what_was_meant_for_another_voter_or_cluster_is_refused(quorum: QuorumCluster) -> None:
    call = begin(3, 4)
    call.voter_id = 1
    answer = quorum.ask(2, call, BeginQuorumEpochResponse)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.INVALID_VOTER_KEY

    call.cluster_id = "another"
    answer = quorum.ask(2, call, BeginQuorumEpochResponse)
    assert (answer.error_code, answer.topics) == (ErrorCode.INCONSISTENT_CLUSTER_ID, [])
