"""EndQuorumEpoch (api key 54), versions 0 and 1: the leader of the metadata log resigns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.connections.request import Request
from tidelog.core.node.metadata.quorum_answers import (
    endpoint_of_leader,
    leader_or_unknown,
    refuse_past,
    refuse_whole,
)
from tidelog.core.wire.messages.api_54_end_quorum_epoch import (
    EndQuorumEpochRequest,
    EndQuorumEpochRequestPartition,
    EndQuorumEpochResponse,
    EndQuorumEpochResponsePartition,
    EndQuorumEpochResponseTopic,
    NodeEndpoint,
)

if TYPE_CHECKING:
    from tidelog.core.node.node import Node

API_KEY = 54
VERSIONS = range(2)
BETWEEN_NODES = True


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(EndQuorumEpochRequest)
    code = refuse_whole(node.metadata, call.cluster_id, call.topics)
    if code != ErrorCode.NONE:
        request.answer(EndQuorumEpochResponse(error_code=code))
        return
    partition = call.topics[0].partitions[0]
    code = refuse_past(node.metadata, partition.leader_epoch, partition.leader_id)
    if code == ErrorCode.NONE:
        quorum = node.quorum
        ready = quorum.machine.on_end_epoch(
            partition.leader_id, partition.leader_epoch, _preferred(partition), now_ms
        )
        quorum.step(ready, now_ms)
    result = EndQuorumEpochResponsePartition(
        partition_index=partition.partition_index,
        error_code=code,
        leader_id=leader_or_unknown(node.metadata),
        leader_epoch=node.quorum.quorum_epoch,
    )
    topic = EndQuorumEpochResponseTopic(topic_name=call.topics[0].topic_name, partitions=[result])
    response = EndQuorumEpochResponse(topics=[topic])
    if request.version >= 1:
        response.node_endpoints = endpoint_of_leader(node.metadata, NodeEndpoint)
    request.answer(response)


def _preferred(partition: EndQuorumEpochRequestPartition) -> tuple[int, ...]:
    candidates = [candidate.candidate_id for candidate in partition.preferred_candidates]
    return tuple(candidates or partition.preferred_successors)
