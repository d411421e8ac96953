"""Vote (api key 52), versions 0 to 2: a voter asks for this node's vote, or would it get it.

The vote is durable before it is answered. A node whose disk fails answers nothing at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.connections.request import Request
from tidelog.core.node.metadata.quorum_answers import endpoint_of_leader, refuse_whole
from tidelog.core.quorum.values import LogPosition, VoteAnswer, VoteCall
from tidelog.core.wire.messages.api_52_vote import (
    NodeEndpoint,
    VoteRequest,
    VoteRequestPartition,
    VoteResponse,
    VoteResponsePartition,
    VoteResponseTopic,
)
from tidelog.core.wire.sentinels import NO_NODE

if TYPE_CHECKING:
    from tidelog.core.node.node import Node

API_KEY = 52
VERSIONS = range(3)
BETWEEN_NODES = True


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(VoteRequest)
    code = refuse_whole(node.metadata, call.cluster_id, call.topics)
    if code != ErrorCode.NONE:
        request.answer(VoteResponse(error_code=code))
        return
    partition = call.topics[0].partitions[0]
    answer = _vote(node, call, partition, now_ms)
    if answer is None:
        return  # the node is about to halt: a promise that it cannot keep is not made
    result = VoteResponsePartition(
        partition_index=partition.partition_index,
        error_code=answer.error,
        leader_id=NO_NODE if answer.leader_id is None else answer.leader_id,
        leader_epoch=answer.quorum_epoch,
        vote_granted=answer.is_granted,
    )
    topic = VoteResponseTopic(topic_name=call.topics[0].topic_name, partitions=[result])
    response = VoteResponse(topics=[topic])
    if request.version >= 1:
        response.node_endpoints = endpoint_of_leader(node.metadata, NodeEndpoint)
    request.answer(response)


def _vote(
    node: Node, call: VoteRequest, partition: VoteRequestPartition, now_ms: int
) -> VoteAnswer | None:
    quorum = node.quorum
    is_invalid = (
        partition.last_offset < 0 or partition.last_offset_epoch < 0 or partition.replica_id < 0
    )
    is_for_another = call.voter_id not in (NO_NODE, node.settings.node_id)
    if is_invalid or is_for_another:
        code = ErrorCode.INVALID_REQUEST if is_invalid else ErrorCode.INVALID_VOTER_KEY
        return VoteAnswer(
            error=code,
            quorum_epoch=quorum.quorum_epoch,
            leader_id=quorum.machine.leader_id,
            is_granted=False,
        )
    vote_call = VoteCall(
        candidate_id=partition.replica_id,
        quorum_epoch=partition.replica_epoch,
        position=LogPosition(partition.last_offset_epoch, partition.last_offset),
        is_pre_vote=partition.pre_vote,
    )
    return quorum.on_vote_call(vote_call, now_ms)
