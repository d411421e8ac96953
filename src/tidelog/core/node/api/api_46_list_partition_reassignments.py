"""ListPartitionReassignments (api key 46), version 0.

The partitions that are on the move, with the replicas that come and go; by name, or all. What is
not on the move, or does not exist, is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.metadata.image import ClusterImage
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.controller.committed_answers import answer_when_committed
from tidelog.core.wire.messages.api_46_list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)

if TYPE_CHECKING:
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 46
VERSIONS = range(1)
FORWARDED = True


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(ListPartitionReassignmentsRequest)
    refused = ListPartitionReassignmentsResponse(
        error_code=ErrorCode.NOT_CONTROLLER, error_message=None
    )
    if not node.metadata.is_active:
        request.answer(refused)
        return
    answer = ListPartitionReassignmentsResponse(
        error_message=None, topics=_topics(node.metadata.decided_image, call.topics)
    )
    answer_when_committed(node.metadata, request, answer, otherwise=refused, now_ms=now_ms)


def _topics(
    image: ClusterImage, requested: list[ListPartitionReassignmentsTopics] | None
) -> list[OngoingTopicReassignment]:
    if requested is None:
        requested = [
            ListPartitionReassignmentsTopics(
                name=name, partition_indexes=list(range(len(image.topics[name].partitions)))
            )
            for name in sorted(image.topics)
        ]
    topics = [
        OngoingTopicReassignment(
            name=topic.name, partitions=_moving(image, topic.name, topic.partition_indexes)
        )
        for topic in requested
    ]
    return [topic for topic in topics if topic.partitions]


def _moving(
    image: ClusterImage, topic: str, indexes: list[int]
) -> list[OngoingPartitionReassignment]:
    found = ((index, image.partition(topic, index)) for index in indexes)
    return [
        OngoingPartitionReassignment(
            partition_index=index,
            replicas=list(state.replicas),
            adding_replicas=list(state.adding_replicas),
            removing_replicas=list(state.removing_replicas),
        )
        for index, state in found
        if state is not None and (state.adding_replicas or state.removing_replicas)
    ]
