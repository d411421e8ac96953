"""Questions about many things at once: a whole cluster's topics in one request of each kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tidelog.client.admin.configs import ConfigDescription, ConfigEntry, ResourceKind, source_of
from tidelog.client.admin.offsets import ListedOffset
from tidelog.client.admin.question import AnyNode, Question, TheBroker
from tidelog.client.admin.topics import (
    PartitionDescription,
    TopicDescription,
    described_by_metadata,
    described_by_page,
)
from tidelog.client.cluster_metadata import BrokerNode
from tidelog.client.config import Address
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.messages.api_02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from tidelog.core.wire.messages.api_03_metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tidelog.core.wire.messages.api_32_describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from tidelog.core.wire.messages.api_75_describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from tidelog.core.wire.schema import Message
from tidelog.core.wire.sentinels import CONSUMER_REPLICA_ID, DEBUGGING_REPLICA_ID, LATEST_TIMESTAMP


class MetadataDescription(NamedTuple):
    """The cluster as one broker sees it now."""

    cluster_id: str | None
    brokers: dict[int, BrokerNode]
    topics: dict[str, TopicDescription]


class PartitionPage(NamedTuple):
    """Some partitions by name, and where the next page begins; None: this was the last."""

    partitions: dict[TopicPartition, PartitionDescription]
    next_at: TopicPartition | None


def describe_metadata(
    names: Iterable[str] | None = None, *, broker_id: int | None = None
) -> Question[MetadataDescription]:
    """By Metadata: the live brokers, and these topics or all; nothing is created by asking."""
    topics = None if names is None else [MetadataRequestTopic(name=name) for name in names]

    def read(answer: Message) -> MetadataDescription:
        assert isinstance(answer, MetadataResponse)
        brokers = {
            each.node_id: BrokerNode(each.node_id, Address(each.host, each.port), each.rack)
            for each in answer.brokers
        }
        found = [described_by_metadata(each) for each in answer.topics]
        return MetadataDescription(
            answer.cluster_id, brokers, {topic.name: topic for topic in found}
        )

    request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    target = AnyNode() if broker_id is None else TheBroker(broker_id)
    return Question(request=request, read=read, target=target)


def describe_partition_page(
    names: Sequence[str], *, start_at: TopicPartition | None = None
) -> Question[PartitionPage]:
    """One page of DescribeTopicPartitions (KIP-966), with eligible leader replicas."""
    cursor = None
    if start_at is not None:
        cursor = Cursor(topic_name=start_at.topic, partition_index=start_at.index)

    def read(answer: Message) -> PartitionPage:
        assert isinstance(answer, DescribeTopicPartitionsResponse)
        found = {
            TopicPartition(str(topic.name), each.partition_index): described_by_page(each)
            for topic in answer.topics
            for each in topic.partitions
        }
        after = answer.next_cursor
        next_at = None if after is None else TopicPartition(after.topic_name, after.partition_index)
        return PartitionPage(found, next_at)

    topics = [TopicRequest(name=name) for name in sorted(names)]
    return Question(request=DescribeTopicPartitionsRequest(topics=topics, cursor=cursor), read=read)


def describe_topic_configs(names: Iterable[str]) -> Question[dict[str, ConfigDescription]]:
    """The settings of these topics by topic."""
    resources = [
        DescribeConfigsResource(
            resource_type=ResourceKind.TOPIC, resource_name=name, configuration_keys=None
        )
        for name in names
    ]

    def read(answer: Message) -> dict[str, ConfigDescription]:
        assert isinstance(answer, DescribeConfigsResponse)
        return {
            resource.resource_name: ConfigDescription(
                ErrorCode.from_wire(resource.error_code),
                resource.error_message,
                {
                    each.name: ConfigEntry(
                        each.value, source_of(each.config_source), each.read_only
                    )
                    for each in resource.configs
                },
            )
            for resource in answer.results
        }

    return Question(request=DescribeConfigsRequest(resources=resources), read=read)


def high_watermarks(
    partitions: Iterable[TopicPartition], *, broker_id: int
) -> Question[dict[TopicPartition, ListedOffset]]:
    """Of partitions that this broker leads; a refusal for those that it does not."""
    return _list_offsets(
        dict.fromkeys(partitions, LATEST_TIMESTAMP),
        broker_id=broker_id,
        replica_id=CONSUMER_REPLICA_ID,
    )


def last_stable_offsets(
    partitions: Iterable[TopicPartition], *, broker_id: int
) -> Question[dict[TopicPartition, ListedOffset]]:
    """As far as readers of committed records see, of partitions that this broker leads."""
    return _list_offsets(
        dict.fromkeys(partitions, LATEST_TIMESTAMP),
        broker_id=broker_id,
        replica_id=CONSUMER_REPLICA_ID,
        is_read_committed=True,
    )


def log_end_offsets(
    partitions: Iterable[TopicPartition], *, broker_id: int
) -> Question[dict[TopicPartition, ListedOffset]]:
    """Of the replicas on this broker, leading or not: `end(b)` of the scenarios."""
    return _list_offsets(
        dict.fromkeys(partitions, LATEST_TIMESTAMP),
        broker_id=broker_id,
        replica_id=DEBUGGING_REPLICA_ID,
    )


def _list_offsets(
    timestamps: Mapping[TopicPartition, int],
    *,
    broker_id: int,
    replica_id: int,
    is_read_committed: bool = False,
) -> Question[dict[TopicPartition, ListedOffset]]:
    topics: dict[str, ListOffsetsTopic] = {}
    for partition, timestamp_ms in timestamps.items():
        topic = topics.setdefault(partition.topic, ListOffsetsTopic(name=partition.topic))
        topic.partitions.append(
            ListOffsetsPartition(partition_index=partition.index, timestamp=timestamp_ms)
        )

    def read(answer: Message) -> dict[TopicPartition, ListedOffset]:
        assert isinstance(answer, ListOffsetsResponse)
        return {
            TopicPartition(topic.name, each.partition_index): ListedOffset(
                ErrorCode.from_wire(each.error_code),
                _known(each.offset) if each.error_code == ErrorCode.NONE else None,
                _known(each.timestamp),
                _known(each.leader_epoch),
            )
            for topic in answer.topics
            for each in topic.partitions
        }

    request = ListOffsetsRequest(
        replica_id=replica_id,
        isolation_level=int(is_read_committed),
        topics=list(topics.values()),
    )
    return Question(request=request, read=read, target=TheBroker(broker_id))


def _known(number: int) -> int | None:
    return None if number < 0 else number
