"""Questions about topics: create, grow, delete, list and describe them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tidelog.client.admin.question import (
    AdminOutcome,
    AnyNode,
    Question,
    RetryLater,
    TheBroker,
    needs_another_try,
    outcome,
)
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_03_metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from tidelog.core.wire.messages.api_19_create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tidelog.core.wire.messages.api_20_delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from tidelog.core.wire.messages.api_37_create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from tidelog.core.wire.messages.api_75_describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    TopicRequest,
)
from tidelog.core.wire.schema import Message
from tidelog.core.wire.sentinels import BROKER_DEFAULT

REQUEST_TIMEOUT_MS = 30_000


class TopicCreation(NamedTuple):
    """The result of a topic's creation."""

    error: ErrorCode
    message: str | None
    topic_id: bytes | None
    partitions: int | None
    replication_factor: int | None


class PartitionDescription(NamedTuple):
    """One partition as a broker sees it; eligible leaders only where they were asked for."""

    partition: int
    leader_id: int | None
    leader_epoch: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...]
    error: ErrorCode
    eligible_leaders: tuple[int, ...] | None = None
    last_known_leaders: tuple[int, ...] | None = None


class TopicDescription(NamedTuple):
    """A topic as a broker sees it; partitions by index."""

    error: ErrorCode
    name: str
    topic_id: bytes
    partitions: dict[int, PartitionDescription]
    is_internal: bool = False


def create_topic(
    name: str,
    *,
    partitions: int | None = None,
    replication_factor: int | None = None,
    assignment: Mapping[int, Sequence[int]] | None = None,
    configs: Mapping[str, str] | None = None,
    validate_only: bool = False,
) -> Question[TopicCreation]:
    """By counts, by default counts, or by an explicit placement: index to brokers."""
    topic = CreatableTopic(
        name=name,
        num_partitions=BROKER_DEFAULT if partitions is None else partitions,
        replication_factor=BROKER_DEFAULT if replication_factor is None else replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in (assignment or {}).items()
        ],
        configs=[
            CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()
        ],
    )
    request = CreateTopicsRequest(
        topics=[topic], timeout_ms=REQUEST_TIMEOUT_MS, validate_only=validate_only
    )

    def read(answer: Message) -> TopicCreation | RetryLater:
        assert isinstance(answer, CreateTopicsResponse)
        created = answer.topics[0]
        error = ErrorCode.from_wire(created.error_code)
        if needs_another_try(error):
            return RetryLater(error)
        return TopicCreation(
            error,
            created.error_message,
            bytes(created.topic_id) if error == ErrorCode.NONE else None,
            created.num_partitions if created.num_partitions >= 0 else None,
            created.replication_factor if created.replication_factor >= 0 else None,
        )

    return Question(request=request, read=read)


def delete_topic(
    name: str | None = None, *, topic_id: bytes | None = None
) -> Question[AdminOutcome]:
    """By name or by id."""
    state = DeleteTopicState(name=name)
    if topic_id is not None:
        state = DeleteTopicState(name=None, topic_id=topic_id)
    request = DeleteTopicsRequest(topics=[state], timeout_ms=REQUEST_TIMEOUT_MS)

    def read(answer: Message) -> AdminOutcome | RetryLater:
        assert isinstance(answer, DeleteTopicsResponse)
        return outcome(answer.responses[0].error_code, answer.responses[0].error_message)

    return Question(request=request, read=read)


def create_partitions(
    topic: str, *, total: int, assignments: Sequence[Sequence[int]] | None = None
) -> Question[AdminOutcome]:
    """Grow the topic to `total` partitions; `assignments` are the brokers of each new one."""
    new = None
    if assignments is not None:
        new = [CreatePartitionsAssignment(broker_ids=list(each)) for each in assignments]
    request = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=topic, count=total, assignments=new)],
        timeout_ms=REQUEST_TIMEOUT_MS,
    )

    def read(answer: Message) -> AdminOutcome | RetryLater:
        assert isinstance(answer, CreatePartitionsResponse)
        return outcome(answer.results[0].error_code, answer.results[0].error_message)

    return Question(request=request, read=read)


def list_topics(*, broker_id: int | None = None) -> Question[dict[str, bytes]]:
    """All topics with their ids, as any broker or as this broker knows them."""

    def read(answer: Message) -> dict[str, bytes]:
        assert isinstance(answer, MetadataResponse)
        named = [each for each in answer.topics if each.name is not None]
        return {str(each.name): bytes(each.topic_id) for each in named}

    request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
    return Question(request=request, read=read, target=_target(broker_id))


def describe_topic(name: str, *, broker_id: int | None = None) -> Question[TopicDescription]:
    """By Metadata: leaders, replicas, who is in sync and who is offline."""
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
    )

    def read(answer: Message) -> TopicDescription:
        assert isinstance(answer, MetadataResponse)
        return described_by_metadata(answer.topics[0])

    return Question(request=request, read=read, target=_target(broker_id))


def describe_topic_partitions(
    name: str, *, broker_id: int | None = None
) -> Question[TopicDescription]:
    """The same with eligible leader replicas (KIP-966); the first 2,000 partitions."""

    def read(answer: Message) -> TopicDescription:
        assert isinstance(answer, DescribeTopicPartitionsResponse)
        topic = answer.topics[0]
        partitions = {each.partition_index: described_by_page(each) for each in topic.partitions}
        error = ErrorCode.from_wire(topic.error_code)
        return TopicDescription(error, name, bytes(topic.topic_id), partitions)

    request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name=name)])
    return Question(request=request, read=read, target=_target(broker_id))


def described_by_metadata(topic: MetadataResponseTopic) -> TopicDescription:
    partitions = {
        each.partition_index: PartitionDescription(
            each.partition_index,
            _id(each.leader_id),
            _id(each.leader_epoch),
            tuple(each.replica_nodes),
            tuple(each.isr_nodes),
            tuple(each.offline_replicas),
            ErrorCode.from_wire(each.error_code),
        )
        for each in sorted(topic.partitions, key=lambda each: each.partition_index)
    }
    return TopicDescription(
        ErrorCode.from_wire(topic.error_code),
        str(topic.name),
        bytes(topic.topic_id),
        partitions,
        is_internal=topic.is_internal,
    )


def described_by_page(partition: DescribeTopicPartitionsResponsePartition) -> PartitionDescription:
    return PartitionDescription(
        partition.partition_index,
        _id(partition.leader_id),
        _id(partition.leader_epoch),
        tuple(partition.replica_nodes),
        tuple(partition.isr_nodes),
        tuple(partition.offline_replicas),
        ErrorCode.from_wire(partition.error_code),
        tuple(partition.eligible_leader_replicas or ()),
        tuple(partition.last_known_elr or ()),
    )


def _target(broker_id: int | None) -> AnyNode | TheBroker:
    return AnyNode() if broker_id is None else TheBroker(broker_id)


def _id(number: int) -> int | None:
    return None if number < 0 else number
