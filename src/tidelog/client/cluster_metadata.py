"""The cluster as a client believes it to be: brokers, topics, and who leads which partition.

Invariant: for one topic id, what is believed about a partition never goes back to an older leader
epoch, whoever answers. A broker that was cut off may go on answering with old metadata.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from tidelog.client.config import Address
from tidelog.client.connections import NodeKey
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import ZERO_TOPIC_ID, TopicPartition
from tidelog.core.wire.messages.api_03_metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

STALE_METADATA = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)
"""Errors that mean: the wrong broker was asked, update the metadata."""


class BrokerNode(NamedTuple):
    """A broker that clients may be sent to."""

    id: int
    address: Address
    rack: str | None


class Leader(NamedTuple):
    """Who leads a partition, as far as is known."""

    broker_id: int | None
    leader_epoch: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionMetadata:
    """One partition as a broker described it."""

    leader_id: int | None
    leader_epoch: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...]
    error: ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicMetadata:
    """One topic; without partitions if it could not be described."""

    topic_id: bytes | None
    partitions: dict[int, PartitionMetadata]
    error: ErrorCode


class LeaderEndpoint(Protocol):
    """A broker's address, as Produce and Fetch answers carry it."""

    node_id: int
    host: str
    port: int
    rack: str | None


class ClusterMetadata:
    """Updated by Metadata answers and by hints in other answers; knows nothing of requests."""

    def __init__(self, bootstrap: tuple[Address, ...]) -> None:
        self._bootstrap = bootstrap
        self._seen_epochs: dict[TopicPartition, int] = {}
        self._seen_ids: dict[str, bytes] = {}
        """Of topics that were known once: a namesake begins with its own leader epochs."""
        self.brokers: dict[int, BrokerNode] = {}
        self.topics: dict[str, TopicMetadata] = {}
        self.cluster_id: str | None = None
        self.controller_id: int | None = None
        self.version = 0
        """Grows with everything that is learnt."""

    def nodes(self) -> list[tuple[NodeKey, Address]]:
        """The nodes that may be asked anything: the brokers, or at first the given addresses."""
        if self.brokers:
            return [(broker.id, broker.address) for broker in self.brokers.values()]
        return [(str(address), address) for address in self._bootstrap]

    def address(self, broker_id: int) -> Address | None:
        broker = self.brokers.get(broker_id)
        return broker.address if broker is not None else None

    def topic_id(self, topic: str) -> bytes | None:
        facts = self.topics.get(topic)
        return facts.topic_id if facts is not None else None

    def partition_count(self, topic: str) -> int | None:
        """None while the topic is not known, or has no partition yet."""
        facts = self.topics.get(topic)
        return len(facts.partitions) or None if facts is not None else None

    def leader(self, partition: TopicPartition) -> Leader:
        """The newest leader; none if that leader epoch has none, or is known only by number."""
        seen_epoch = self._seen_epochs.get(partition)
        facts = self._partition(partition)
        if facts is None or facts.leader_epoch != seen_epoch:
            return Leader(None, seen_epoch)
        known = facts.leader_id if facts.leader_id in self.brokers else None
        return Leader(known, facts.leader_epoch)

    def _partition(self, partition: TopicPartition) -> PartitionMetadata | None:
        topic = self.topics.get(partition.topic)
        return topic.partitions.get(partition.index) if topic is not None else None

    # What changes it

    def forget_brokers(self) -> None:
        """Begin again with the given addresses; what was seen of leader epochs stays seen."""
        self.brokers = {}
        self.topics = {}
        self.version += 1

    def apply(self, answer: MetadataResponse) -> bool:
        """Take a whole answer in. True if some leader epoch or topic is new."""
        self.cluster_id = answer.cluster_id
        self.controller_id = _id(answer.controller_id)
        self.brokers = {
            each.node_id: BrokerNode(each.node_id, Address(each.host, each.port), each.rack)
            for each in answer.brokers
        }
        topics: dict[str, TopicMetadata] = {}
        has_news = False
        for topic in answer.topics:
            if topic.name is not None:
                facts, is_news = self._topic(topic, topic.name)
                topics[topic.name] = facts
                has_news |= is_news
        self.topics = topics
        self.version += 1
        return has_news

    def _topic(self, topic: MetadataResponseTopic, name: str) -> tuple[TopicMetadata, bool]:
        topic_id = None if topic.topic_id == ZERO_TOPIC_ID else bytes(topic.topic_id)
        is_another = topic_id is not None and self._seen_ids.get(name, topic_id) != topic_id
        if topic_id is not None:
            self._seen_ids[name] = topic_id
        partitions: dict[int, PartitionMetadata] = {}
        has_news = False
        error = ErrorCode.from_wire(topic.error_code)
        for each in topic.partitions if error == ErrorCode.NONE else ():
            partition = TopicPartition(name, each.partition_index)
            seen_epoch = self._seen_epochs.get(partition)
            facts = _partition_metadata(each)
            if is_another or seen_epoch is None or (facts.leader_epoch or 0) >= seen_epoch:
                has_news |= is_another or facts.leader_epoch != seen_epoch
                self._see(partition, facts.leader_epoch)
                partitions[each.partition_index] = facts
                continue
            kept = self._partition(partition)
            if kept is not None:
                partitions[each.partition_index] = kept
        return TopicMetadata(topic_id=topic_id, partitions=partitions, error=error), has_news

    def _see(self, partition: TopicPartition, leader_epoch: int | None) -> None:
        if leader_epoch is None:
            self._seen_epochs.pop(partition, None)
        else:
            self._seen_epochs[partition] = leader_epoch

    def see_leader_epoch(self, partition: TopicPartition, leader_epoch: int) -> bool:
        """Note a leader epoch that was seen. Returns whether it is newer than all before."""
        seen_epoch = self._seen_epochs.get(partition)
        if seen_epoch is None or leader_epoch <= seen_epoch:
            return False
        self._seen_epochs[partition] = leader_epoch
        self.version += 1
        return True

    def learn_leader(
        self, partition: TopicPartition, leader: Leader, endpoints: Iterable[LeaderEndpoint]
    ) -> bool:
        """Take the hint of a broker that was asked by mistake (KIP-951). True if it is newer."""
        facts = self._partition(partition)
        known_epoch = self.leader(partition).leader_epoch
        if leader.broker_id is None or leader.leader_epoch is None or facts is None:
            return False
        if known_epoch is not None and leader.leader_epoch <= known_epoch:
            return False
        named = {
            each.node_id: BrokerNode(each.node_id, Address(each.host, each.port), each.rack)
            for each in endpoints
        }
        if leader.broker_id not in named and leader.broker_id not in self.brokers:
            return False
        self.brokers = {**self.brokers, **named}
        topic = self.topics[partition.topic]
        topic.partitions[partition.index] = PartitionMetadata(
            leader_id=leader.broker_id,
            leader_epoch=leader.leader_epoch,
            replicas=facts.replicas,
            isr=facts.isr,
            offline=facts.offline,
            error=facts.error,
        )
        self._seen_epochs[partition] = leader.leader_epoch
        self.version += 1
        return True


def leader_from_wire(*, leader_id: int, leader_epoch: int) -> Leader:
    """The leader in an answer, where -1 is none."""
    return Leader(_id(leader_id), _id(leader_epoch))


def _partition_metadata(partition: MetadataResponsePartition) -> PartitionMetadata:
    return PartitionMetadata(
        leader_id=_id(partition.leader_id),
        leader_epoch=_id(partition.leader_epoch),
        replicas=tuple(partition.replica_nodes),
        isr=tuple(partition.isr_nodes),
        offline=tuple(partition.offline_replicas),
        error=ErrorCode.from_wire(partition.error_code),
    )


def _id(number: int) -> int | None:
    return None if number < 0 else number
