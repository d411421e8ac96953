"""DescribeQuorum (api key 55), versions 0 to 2: the quorum as its leader sees it.

The leader alone knows how far the others are, so every other node passes the question on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.topic_name import METADATA_TOPIC
from tidelog.core.node.connections.request import Request
from tidelog.core.quorum.leader_term import FetchProgress
from tidelog.core.wire.messages.api_55_describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartition,
    DescribeQuorumResponseTopic,
    Listener,
    ReplicaState,
)
from tidelog.core.wire.messages.api_55_describe_quorum import Node as NodeInfo
from tidelog.core.wire.sentinels import NO_TIMESTAMP, UNKNOWN_OFFSET

if TYPE_CHECKING:
    from tidelog.core.node.node import Node

API_KEY = 55
VERSIONS = range(3)
FORWARDED = True
NO_DIRECTORY = bytes(16)
_DIRECTORIES_FROM = 2
"""Earlier versions have neither directories nor addresses."""


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(DescribeQuorumRequest)
    if not _is_metadata_alone(call):
        request.answer(_refused(call, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    elif not node.quorum.is_leader:
        request.answer(_refused(call, ErrorCode.NOT_LEADER_OR_FOLLOWER))
    else:
        request.answer(_described(node, request.version, now_ms))


def _is_metadata_alone(call: DescribeQuorumRequest) -> bool:
    named = [
        (topic.topic_name, partition.partition_index)
        for topic in call.topics
        for partition in topic.partitions
    ]
    return named == [(METADATA_TOPIC, 0)]


def _refused(call: DescribeQuorumRequest, code: ErrorCode) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(
        topics=[
            DescribeQuorumResponseTopic(
                topic_name=topic.topic_name,
                partitions=[
                    DescribeQuorumResponsePartition(
                        partition_index=partition.partition_index,
                        error_code=code,
                        error_message=code.name,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in call.topics
        ]
    )


def _described(node: Node, version: int, now_ms: int) -> DescribeQuorumResponse:
    machine = node.quorum.machine
    leadership = machine.leadership
    assert leadership is not None
    leadership.forget_idle_observers(now_ms)
    high_watermark = leadership.high_watermark
    partition = DescribeQuorumResponsePartition(
        partition_index=0,
        leader_id=machine.node_id,
        leader_epoch=machine.quorum_epoch,
        high_watermark=UNKNOWN_OFFSET if high_watermark is None else high_watermark,
        current_voters=[
            _replica(node, replica_id, progress, now_ms)
            for replica_id, progress in sorted(leadership.voters.items())
        ],
        observers=[
            _replica(node, replica_id, progress, now_ms)
            for replica_id, progress in sorted(leadership.observers.items())
        ],
    )
    topic = DescribeQuorumResponseTopic(topic_name=METADATA_TOPIC, partitions=[partition])
    response = DescribeQuorumResponse(topics=[topic])
    if version >= _DIRECTORIES_FROM:
        response.nodes = _nodes(node)
    else:
        for replica in (*partition.current_voters, *partition.observers):
            replica.replica_directory_id = NO_DIRECTORY
    return response


def _replica(node: Node, replica_id: int, progress: FetchProgress, now_ms: int) -> ReplicaState:
    """The leader itself is always there and always caught up."""
    end_offset, fetched_ms, caught_up_ms = (
        progress.end_offset,
        progress.fetched_ms,
        progress.caught_up_ms,
    )
    directory_id = node.quorum.fetch_server.directory_ids.get(replica_id, NO_DIRECTORY)
    if replica_id == node.settings.node_id:
        end_offset = node.metadata.log.log_end_offset
        fetched_ms = caught_up_ms = now_ms
        directory_id = node.metadata.identity.directory_ids[0]
    return ReplicaState(
        replica_id=replica_id,
        replica_directory_id=directory_id,
        log_end_offset=UNKNOWN_OFFSET if end_offset is None else end_offset,
        last_fetch_timestamp=_timestamp_ms(node, fetched_ms),
        last_caught_up_timestamp=_timestamp_ms(node, caught_up_ms),
    )


def _timestamp_ms(node: Node, at_ms: int | None) -> int:
    return NO_TIMESTAMP if at_ms is None else node.wall_ms(at_ms)


def _nodes(node: Node) -> list[NodeInfo]:
    name = node.settings.advertised[0].name
    found = [
        NodeInfo(
            node_id=voter.node_id,
            listeners=[Listener(name=name, host=voter.host, port=voter.port)],
        )
        for voter in node.settings.voters
    ]
    if found:
        return found
    listeners = [
        Listener(name=each.name, host=each.host, port=each.port)
        for each in node.settings.advertised
    ]
    return [NodeInfo(node_id=node.settings.node_id, listeners=listeners)]
