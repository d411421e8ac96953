"""DescribeQuorum: the leader tells who votes, who observes, and how far each is."""

from __future__ import annotations

from tests.unit.core.node.quorums import QuorumCluster
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.topic_name import METADATA_TOPIC
from tidelog.core.wire.messages.api_55_describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartition,
    DescribeQuorumRequestTopic,
    DescribeQuorumResponse,
)


def described(quorum: QuorumCluster, node_id: int) -> DescribeQuorumResponse:
    partition = DescribeQuorumRequestPartition(partition_index=0)
    topic = DescribeQuorumRequestTopic(topic_name=METADATA_TOPIC, partitions=[partition])
    return quorum.ask(node_id, DescribeQuorumRequest(topics=[topic]), DescribeQuorumResponse)


def test_the_leader_describes_the_quorum(quorum: QuorumCluster) -> None:
    answer = described(quorum, 1)

    result = answer.topics[0].partitions[0]
    end_offset = quorum.node(1).metadata.log.log_end_offset
    assert (result.leader_id, result.leader_epoch, result.high_watermark) == (1, 1, end_offset)
    assert [voter.replica_id for voter in result.current_voters] == [1, 2, 3]
    assert {voter.log_end_offset for voter in result.current_voters} == {end_offset}
    assert all(voter.last_caught_up_timestamp > 0 for voter in result.current_voters)
    assert len({voter.replica_directory_id for voter in result.current_voters}) == 3
    assert [(each.node_id, each.listeners[0].host) for each in answer.nodes] == [
        (1, "node-1"), (2, "node-2"), (3, "node-3"),
    ]  # fmt: skip


def test_only_the_leader_can_describe_the_quorum(quorum: QuorumCluster) -> None:
    result = described(quorum, 2).topics[0].partitions[0]

    assert result.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_another_topic_than_the_metadata_has_no_quorum(quorum: QuorumCluster) -> None:
    partition = DescribeQuorumRequestPartition(partition_index=0)
    topic = DescribeQuorumRequestTopic(topic_name="orders", partitions=[partition])

    answer = quorum.ask(1, DescribeQuorumRequest(topics=[topic]), DescribeQuorumResponse)

    (refused,) = answer.topics[0].partitions
    assert refused.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
