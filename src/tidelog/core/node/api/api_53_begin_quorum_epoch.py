"""BeginQuorumEpoch (api key 53), versions 0 and 1: a node says that it leads the metadata log."""

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
from tidelog.core.wire.messages.api_53_begin_quorum_epoch import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    BeginQuorumEpochResponsePartition,
    BeginQuorumEpochResponseTopic,
    NodeEndpoint,
)
from tidelog.core.wire.sentinels import NO_NODE

if TYPE_CHECKING:
    from tidelog.core.node.node import Node

API_KEY = 53
VERSIONS = range(2)
BETWEEN_NODES = True


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(BeginQuorumEpochRequest)
    code = refuse_whole(node.metadata, call.cluster_id, call.topics)
    if code != ErrorCode.NONE:
        request.answer(BeginQuorumEpochResponse(error_code=code))
        return
    partition = call.topics[0].partitions[0]
    code = refuse_past(node.metadata, partition.leader_epoch, partition.leader_id)
    if code == ErrorCode.NONE:
        quorum = node.quorum
        ready = quorum.machine.on_begin_epoch(partition.leader_id, partition.leader_epoch, now_ms)
        quorum.step(ready, now_ms)
        if call.voter_id not in (NO_NODE, node.settings.node_id):
            code = ErrorCode.INVALID_VOTER_KEY
    result = BeginQuorumEpochResponsePartition(
        partition_index=partition.partition_index,
        error_code=code,
        leader_id=leader_or_unknown(node.metadata),
        leader_epoch=node.quorum.quorum_epoch,
    )
    topic = BeginQuorumEpochResponseTopic(topic_name=call.topics[0].topic_name, partitions=[result])
    response = BeginQuorumEpochResponse(topics=[topic])
    if request.version >= 1:
        response.node_endpoints = endpoint_of_leader(node.metadata, NodeEndpoint)
    request.answer(response)
