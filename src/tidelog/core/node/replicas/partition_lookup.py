"""Finding the partition that a request names on this broker, or where it is instead (KIP-951)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from tidelog.core.metadata.cluster import TopicState as KnownTopic
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicId
from tidelog.core.node.metadata import cluster_view
from tidelog.core.replication.partition import Partition
from tidelog.core.wire.fast_fields import Endpoint, Topic
from tidelog.core.wire.sentinels import NO_LEADER_EPOCH, NO_NODE


class PartitionHost(Protocol):
    """A broker: the partitions that it has, and what it knows of the cluster."""

    @property
    def image(self) -> ClusterImage: ...

    def find_partition(self, topic: Topic, index: int, /) -> Partition | None:
        """By name or by id."""


def find_hosted(node: PartitionHost, topic: str, index: int) -> Partition | ErrorCode:
    """The partition if its log can be used; NOT_LEADER_OR_FOLLOWER sends a client elsewhere."""
    partition = node.find_partition(topic, index)
    if partition is None:
        if node.image.partition(topic, index) is not None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if partition.log.failed is not None:
        return ErrorCode.KAFKA_STORAGE_ERROR
    return partition


def find_leader(
    node: PartitionHost, topic: str, index: int, *, claimed_leader_epoch: int | None
) -> Partition | ErrorCode:
    """The partition if this broker leads it, in the leader epoch that the client believes in."""
    partition = find_hosted(node, topic, index)
    if isinstance(partition, ErrorCode):
        return partition
    refusal = partition.refuse_leader_epoch(claimed_leader_epoch)
    if refusal != ErrorCode.NONE:
        return refusal
    return partition if partition.is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER


def leader_epoch_of(raw: int) -> int | None:
    """The leader epoch that a request claims; -1 on the wire is no claim."""
    return None if raw == NO_LEADER_EPOCH else raw


def refuse_unhosted(node: PartitionHost, topic: Topic, index: int) -> ErrorCode:
    """Why a partition is not here: another broker has it, or none."""
    found = _topic(node, topic)
    if found is not None and 0 <= index < len(found.partitions):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if found is None and not isinstance(topic, str):
        return ErrorCode.UNKNOWN_TOPIC_ID
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def leader_of(node: PartitionHost, topic: Topic, index: int) -> tuple[int, int]:
    """The leader and its epoch as answers show them: -1 is none."""
    partition = node.find_partition(topic, index)
    if partition is not None:
        leader = partition.leader_id
        return (NO_NODE if leader is None else leader), partition.leader_epoch
    found = _topic(node, topic)
    if found is None or not 0 <= index < len(found.partitions):
        return NO_NODE, NO_NODE
    state = found.partitions[index]
    return (NO_NODE if state.leader is None else state.leader), state.leader_epoch


def endpoints_of(node: PartitionHost, leader_ids: Iterable[int]) -> list[Endpoint]:
    """Where these leaders are reached, as far as they are alive."""
    endpoints = []
    for leader_id in sorted(set(leader_ids)):
        broker = node.image.brokers.get(leader_id)
        if broker is not None and not broker.is_fenced:
            address = cluster_view.address(broker)
            endpoints.append(Endpoint(leader_id, address.host, address.port, broker.rack))
    return endpoints


def _topic(node: PartitionHost, topic: Topic) -> KnownTopic | None:
    if isinstance(topic, str):
        return node.image.topics.get(topic)
    return node.image.topics_by_id.get(TopicId(topic))
