"""Finding the partition that a request names on this broker, or where it is instead (KIP-951)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tidelog.core.metadata.cluster import TopicState as KnownTopic
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicId
from tidelog.core.node.metadata import cluster_view
from tidelog.core.replication.partition import Partition
from tidelog.core.wire.fast_fields import Endpoint, Topic

if TYPE_CHECKING:
    from tidelog.core.node.node import Node

NOBODY = -1


def find_hosted(node: Node, topic: str, index: int) -> Partition | ErrorCode:
    """The partition if its log can be used; NOT_LEADER_OR_FOLLOWER sends a client elsewhere."""
    partition = node.partition(topic, index)
    if partition is None:
        if node.image.partition(topic, index) is not None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if partition.log.failed is not None:
        return ErrorCode.KAFKA_STORAGE_ERROR
    return partition


def find_leader(
    node: Node, topic: str, index: int, *, claimed_leader_epoch: int | None
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
    return None if raw == -1 else raw


def refuse_unhosted(node: Node, topic: Topic, index: int) -> ErrorCode:
    """Why a partition is not here: another broker has it, or none."""
    found = _topic(node, topic)
    if found is not None and 0 <= index < len(found.partitions):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if found is None and not isinstance(topic, str):
        return ErrorCode.UNKNOWN_TOPIC_ID
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def leader_of(node: Node, topic: Topic, index: int) -> tuple[int, int]:
    """The leader and its epoch as answers show them: -1 is none."""
    partition = node.find_partition(topic, index)
    if partition is not None:
        leader = partition.leader_id
        return (NOBODY if leader is None else leader), partition.leader_epoch
    found = _topic(node, topic)
    if found is None or not 0 <= index < len(found.partitions):
        return NOBODY, NOBODY
    state = found.partitions[index]
    return (NOBODY if state.leader is None else state.leader), state.leader_epoch


def endpoints_of(node: Node, leader_ids: Iterable[int]) -> list[Endpoint]:
    """Where these leaders are reached, as far as they are alive."""
    endpoints = []
    for leader_id in sorted(set(leader_ids)):
        broker = node.image.brokers.get(leader_id)
        if broker is not None and not broker.is_fenced:
            address = cluster_view.address(broker)
            endpoints.append(Endpoint(leader_id, address.host, address.port, broker.rack))
    return endpoints


def _topic(node: Node, topic: Topic) -> KnownTopic | None:
    if isinstance(topic, str):
        return node.image.topics.get(topic)
    return node.image.topics_by_id.get(TopicId(topic))
