"""DescribeTopicPartitions (api key 75), version 0.

Topics in the order of their names, page by page: at most so many partitions per answer, and a
cursor where the next page begins. Shows who may lead besides the in-sync replicas.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tidelog.core.metadata.cluster import TopicState
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.topic_name import is_internal_topic, refuse_topic_name
from tidelog.core.node.metadata import cluster_view
from tidelog.core.wire.messages.api_75_describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

if TYPE_CHECKING:
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 75
VERSIONS = range(1)
WAITS_FOR_METADATA = True


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(DescribeTopicPartitionsRequest)
    error = refuse(call)
    if error != ErrorCode.NONE:
        request.answer(
            DescribeTopicPartitionsResponse(
                topics=[
                    DescribeTopicPartitionsResponseTopic(error_code=error, name=topic.name)
                    for topic in call.topics
                ]
            )
        )
        return
    limit = node.settings.integer("max.request.partition.size.limit")
    request.answer(describe(node.image, call, partitions_max=limit))


def refuse(call: DescribeTopicPartitionsRequest) -> ErrorCode:
    """A cursor must point to a partition of a topic that was asked for."""
    cursor = call.cursor
    if cursor is None:
        return ErrorCode.NONE
    if call.topics and all(topic.name != cursor.topic_name for topic in call.topics):
        return ErrorCode.INVALID_REQUEST
    if cursor.partition_index < 0:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def describe(
    image: ClusterImage, call: DescribeTopicPartitionsRequest, *, partitions_max: int
) -> DescribeTopicPartitionsResponse:
    """One page. Asked for all topics, those that are gone by now are passed over."""
    wants_all = not call.topics
    names: Iterable[str] = image.topics if wants_all else {topic.name for topic in call.topics}
    cursor = call.cursor or Cursor(topic_name="", partition_index=0)
    room = max(1, min(partitions_max, call.response_partition_limit))
    response = DescribeTopicPartitionsResponse()
    for name in sorted(name for name in names if name >= cursor.topic_name):
        if room == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        topic = image.topics.get(name)
        if topic is None:
            response.topics.append(_unknown(name))
            continue
        start = cursor.partition_index if name == cursor.topic_name else 0
        end = min(len(topic.partitions), start + room)
        described = _topic(image, topic, start, end)
        response.topics.append(described)
        if end < len(topic.partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=end)
            break
        room -= len(described.partitions)
    return response


def _unknown(name: str) -> DescribeTopicPartitionsResponseTopic:
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if refuse_topic_name(name) is not None:
        error = ErrorCode.INVALID_TOPIC_EXCEPTION
    return DescribeTopicPartitionsResponseTopic(
        error_code=error,
        name=name,
        is_internal=is_internal_topic(name),
        topic_authorized_operations=cluster_view.ALL_TOPIC_OPERATIONS,
    )


def _topic(
    image: ClusterImage, topic: TopicState, start: int, end: int
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=is_internal_topic(topic.name),
        partitions=[_partition(image, topic, index) for index in range(start, end)],
        topic_authorized_operations=cluster_view.ALL_TOPIC_OPERATIONS,
    )


def _partition(
    image: ClusterImage, topic: TopicState, index: int
) -> DescribeTopicPartitionsResponsePartition:
    state = topic.partitions[index]
    return DescribeTopicPartitionsResponsePartition(
        partition_index=index,
        leader_id=cluster_view.leader_id(image, state),
        leader_epoch=state.leader_epoch,
        replica_nodes=list(state.replicas),
        isr_nodes=list(state.isr),
        eligible_leader_replicas=list(state.eligible_leader_replicas),
        last_known_elr=list(state.last_known_leaders),
        offline_replicas=cluster_view.offline_replicas(image, state),
    )
