"""EndQuorumEpoch: a leader of the metadata quorum resigns and names its successors."""

from __future__ import annotations

from tests.unit.core.node.quorums import QuorumCluster
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.topic_name import METADATA_TOPIC
from tidelog.core.wire.messages.api_54_end_quorum_epoch import (
    EndQuorumEpochRequest,
    EndQuorumEpochRequestPartition,
    EndQuorumEpochRequestTopic,
    EndQuorumEpochResponse,
)


def end(leader_id: int, quorum_epoch: int) -> EndQuorumEpochRequest:
    partition = EndQuorumEpochRequestPartition(
        partition_index=0,
        leader_id=leader_id,
        leader_epoch=quorum_epoch,
        preferred_successors=[2, 3],
    )
    topic = EndQuorumEpochRequestTopic(topic_name=METADATA_TOPIC, partitions=[partition])
    return EndQuorumEpochRequest(topics=[topic])


def test_a_leader_that_leaves_makes_its_successor_stand_at_once(quorum: QuorumCluster) -> None:
    answer = quorum.ask(2, end(1, 1), EndQuorumEpochResponse)

    assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE
    assert quorum.node(2).quorum.machine.deadline_ms == quorum.world.now_ms


def test_the_end_of_a_past_epoch_changes_nothing(quorum: QuorumCluster) -> None:
    deadline_ms = quorum.node(2).quorum.machine.deadline_ms

    answer = quorum.ask(2, end(3, 0), EndQuorumEpochResponse).topics[0].partitions[0]

    assert (answer.error_code, answer.leader_id) == (ErrorCode.FENCED_LEADER_EPOCH, 1)
    assert quorum.node(2).quorum.machine.deadline_ms == deadline_ms


def test_another_topic_than_the_metadata_has_no_quorum(quorum: QuorumCluster) -> None:
    call = end(1, 1)
    call.topics[0].topic_name = "orders"

    answer = quorum.ask(2, call, EndQuorumEpochResponse)

    assert (answer.error_code, answer.topics) == (ErrorCode.INVALID_REQUEST, [])
