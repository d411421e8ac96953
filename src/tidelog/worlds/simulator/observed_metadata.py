"""The committed metadata of a simulated cluster, replayed by its observer from the nodes' logs.

An image of its own: what any node believes can be held against it, and no change of a partition is
missed, however the nodes that apply it come and go.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidelog.core.controller.election_settings import ElectionSettings
from tidelog.core.metadata.changes import (
    BrokerChanged,
    BrokerRegistered,
    BrokerUnregistered,
    Change,
    ConfigChanged,
    EligibleLeadersCleared,
    PartitionChanged,
    PartitionCreated,
    TopicDeleted,
)
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.node.metadata.metadata_records import decode_batches
from tidelog.core.node.node import Node
from tidelog.core.replication.partition import Partition
from tidelog.core.storage.log import Log
from tidelog.judge.cluster.checker import ClusterChecker
from tidelog.judge.cluster.facts import Incarnation, ObservedBroker, ObservedPartition
from tidelog.worlds.simulator.log_watch import LogWatch


class ObservedMetadata:
    """Applies every committed record once, in order, and reports the changes to the checker."""

    def __init__(self, checker: ClusterChecker, file: Mapping[str, str]) -> None:
        self.image = ClusterImage()
        self.end_offset = 0
        self._checker = checker
        self._file = file
        self._names: dict[str, bytes] = {}

    def read_on(self, log: Log, committed_end_offset: int) -> None:
        """Take in what is committed, from a log that has all of it."""
        if log.log_start_offset > self.end_offset:
            return  # its head is in a snapshot; another node still has it
        new = LogWatch(log, self.end_offset).new_bytes()
        for batch in decode_batches(memoryview(new)):
            if batch.end_offset > committed_end_offset:
                break
            for record in batch.records:
                change = self.image.apply(record)
                if change is not None:
                    self._tell(change)
            self.end_offset = batch.end_offset

    def compare(self, incarnation: Incarnation, node: Node) -> None:
        """A node that has applied as much believes the same."""
        if node.metadata.applied_end_offset == self.end_offset and node.image != self.image:
            self._checker.on_image_differs(incarnation, self._difference(node.image))

    def name(self, topic: str, topic_id: bytes, index: int) -> str:
        """One partition of one topic id: a topic that is created again is another one."""
        if self._names.setdefault(topic, topic_id) != topic_id:
            topic = f"{topic}.{topic_id.hex()[:6]}"
        return f"{topic}-{index}"

    # Telling.

    def _tell(self, change: Change) -> None:
        if isinstance(change, PartitionCreated | PartitionChanged):
            self._tell_partition(change)
        elif isinstance(change, EligibleLeadersCleared):
            for each in change.partitions:
                self._tell_partition(each)
        elif isinstance(change, BrokerRegistered | BrokerChanged):
            self._checker.on_broker(
                ObservedBroker(
                    broker_id=change.broker_id,
                    broker_epoch=change.broker_epoch,
                    is_fenced=change.is_fenced,
                )
            )
        elif isinstance(change, BrokerUnregistered):
            self._checker.on_broker_forgotten(change.broker_id)
        elif isinstance(change, TopicDeleted):
            for index in range(change.partitions_count):
                self._checker.on_partition_deleted(self.name(change.topic, change.topic_id, index))
        elif isinstance(change, ConfigChanged):
            self._tell_settings()

    def _tell_partition(self, change: PartitionCreated | PartitionChanged) -> None:
        settings = ElectionSettings(self.image, self._file)
        state = self.image.topics[change.topic].partitions[change.index]
        self._checker.on_partition(
            ObservedPartition(
                partition=self.name(change.topic, change.topic_id, change.index),
                replicas=state.replicas,
                isr=frozenset(state.isr),
                eligible=frozenset(state.eligible_leader_replicas),
                last_known_leaders=state.last_known_leaders,
                leader=state.leader,
                leader_epoch=state.leader_epoch,
                partition_epoch=state.partition_epoch,
                minimum=min(settings.min_insync_replicas(change.topic), len(state.replicas)),
                allows_unclean=settings.allows_unclean(change.topic),
                has_eligible=settings.keeps_eligible,
                adding=frozenset(state.adding_replicas),
                removing=frozenset(state.removing_replicas),
                leader_is_recovering=state.leader_is_recovering,
            )
        )

    def _tell_settings(self) -> None:
        settings = ElectionSettings(self.image, self._file)
        for topic in self.image.topics.values():
            if not topic.partitions:
                continue  # its partitions follow
            minimum = settings.min_insync_replicas(topic.name)
            allows_unclean = settings.allows_unclean(topic.name)
            for index in range(len(topic.partitions)):
                name = self.name(topic.name, topic.topic_id, index)
                self._checker.on_settings(name, minimum=minimum, allows_unclean=allows_unclean)

    def _difference(self, other: ClusterImage) -> str:
        pairs = (
            ("brokers", self.image.brokers, other.brokers),
            ("topics", self.image.topics, other.topics),
            ("configs", self.image.configs, other.configs),
        )
        for what, ours, theirs in pairs:
            if ours != theirs:
                return f"{what} at {self.end_offset}: committed {ours}, believed {theirs}"
        return f"something at {self.end_offset}"


def minimum_of(node: Node, partition: Partition) -> int:
    """As the node's own metadata has it, whatever the partition took from there.

    Where fewer replicas are assigned, all of them are enough (a reassignment may have left one).
    The controller goes by the replicas of the topic's first partition, as Kafka's does; a leader
    goes by its own.
    """
    name, index = partition.topic_partition.topic, partition.topic_partition.index
    topic = node.image.topics.get(name)
    if topic is None or index >= len(topic.partitions):
        return partition.minimum
    settings = ElectionSettings(node.image, node.settings.texts)
    minimum = settings.configured_min_insync_replicas(name)
    return min(minimum, len(topic.partitions[index].replicas))
