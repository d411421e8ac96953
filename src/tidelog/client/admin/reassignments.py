"""Questions about reassignments: move partitions to other brokers, cancel that, list what moves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tidelog.client.admin.question import AdminOutcome, Question, RetryLater, needs_another_try
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.messages.api_45_alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from tidelog.core.wire.messages.api_46_list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)
from tidelog.core.wire.schema import Message


class OngoingReassignment(NamedTuple):
    """The replicas of a partition on the move: the target first, then those that go."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


def alter_reassignments(
    targets: Mapping[TopicPartition, Sequence[int] | None],
) -> Question[dict[TopicPartition, AdminOutcome]]:
    """Let these partitions move to these brokers, the preferred leader first; None cancels.

    An outcome says that a partition has begun to move, not that it has arrived.
    """
    topics: dict[str, ReassignableTopic] = {}
    for name, replicas in targets.items():
        topic = topics.setdefault(name.topic, ReassignableTopic(name=name.topic))
        topic.partitions.append(
            ReassignablePartition(
                partition_index=name.index,
                replicas=None if replicas is None else list(replicas),
            )
        )

    def read(answer: Message) -> dict[TopicPartition, AdminOutcome] | RetryLater:
        assert isinstance(answer, AlterPartitionReassignmentsResponse)
        error = ErrorCode.from_wire(answer.error_code)
        if needs_another_try(error):
            return RetryLater(error)
        if error != ErrorCode.NONE:
            return dict.fromkeys(targets, AdminOutcome(error, answer.error_message))
        return {
            TopicPartition(topic.name, each.partition_index): AdminOutcome(
                ErrorCode.from_wire(each.error_code), each.error_message
            )
            for topic in answer.responses
            for each in topic.partitions
        }

    request = AlterPartitionReassignmentsRequest(topics=list(topics.values()))
    return Question(request=request, read=read)


def list_reassignments(
    partitions: Iterable[TopicPartition] | None = None,
) -> Question[dict[TopicPartition, OngoingReassignment]]:
    """Those of these partitions, or of all, that are on the move."""
    topics: dict[str, ListPartitionReassignmentsTopics] | None = None
    if partitions is not None:
        topics = {}
        for name in partitions:
            topic = topics.setdefault(name.topic, ListPartitionReassignmentsTopics(name=name.topic))
            topic.partition_indexes.append(name.index)

    def read(answer: Message) -> dict[TopicPartition, OngoingReassignment] | RetryLater:
        assert isinstance(answer, ListPartitionReassignmentsResponse)
        error = ErrorCode.from_wire(answer.error_code)
        if error != ErrorCode.NONE:
            return RetryLater(error)
        return {
            TopicPartition(topic.name, each.partition_index): OngoingReassignment(
                tuple(each.replicas), tuple(each.adding_replicas), tuple(each.removing_replicas)
            )
            for topic in answer.topics
            for each in topic.partitions
        }

    request = ListPartitionReassignmentsRequest(
        topics=None if topics is None else list(topics.values())
    )
    return Question(request=request, read=read)
