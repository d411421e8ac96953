"""The replicas that this broker keeps: log directories, and partitions that follow the metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.controller.topic_ids import new_uuid
from tidelog.core.metadata.changes import (
    BrokerChanged,
    BrokerRegistered,
    Change,
    ConfigChanged,
    EligibleLeadersCleared,
    PartitionChanged,
    PartitionCreated,
    TopicDeleted,
)
from tidelog.core.metadata.cluster import ResourceType
from tidelog.core.model.config import Value
from tidelog.core.model.config_resolution import (
    BrokerLayers,
    broker_value,
    inherited_topic_values,
    topic_values,
)
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.node.events import LogDirectoryFailed, NodeHalted
from tidelog.core.node.replicas.log_settings import log_config
from tidelog.core.replication.partition import Assignment, Partition
from tidelog.core.storage.directory import LogDirectory
from tidelog.core.storage.disk import DiskError
from tidelog.core.storage.log import Log

if TYPE_CHECKING:
    from tidelog.core.node.node import Node


class ReplicaManager:
    """Invariant: one partition per log, and one log directory that holds it."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.directories: list[LogDirectory] = []
        self._noticed: set[str] = set()
        """Directories whose end has been announced."""
        self._partition_of: dict[Log, Partition] = {}
        self._inherited: dict[str, Value] | None = None
        self._wall_ms = 0

    # Settings

    def layers(self) -> BrokerLayers:
        """Where this broker's settings come from, nearest first."""
        node = self._node
        return BrokerLayers(
            broker=node.image.broker_config(node.settings.node_id),
            cluster=node.image.cluster_config(),
            file=node.settings.texts,
        )

    def broker_value(self, name: str) -> Value:
        return broker_value(name, self.layers())

    def topic_values(self, topic: str) -> dict[str, Value]:
        """Every setting of a topic as it counts on this broker."""
        if self._inherited is None:
            self._inherited = inherited_topic_values(self.layers())
        return topic_values(self._node.image.topic_config(topic), self._inherited)

    # Standing: what leaders ask about other brokers

    def may_join(self, broker_id: int, broker_epoch: int | None) -> bool:
        """See `Cluster`."""
        broker = self._node.image.brokers.get(broker_id)
        return broker is not None and broker.is_active and broker.broker_epoch == broker_epoch

    def is_alive(self, broker_id: int) -> bool:
        broker = self._node.image.brokers.get(broker_id)
        return broker is not None and not broker.is_fenced

    def broker_epoch(self) -> int | None:
        """Of this process's registration; None before it has one."""
        return self._node.broker_lifecycle.broker_epoch

    # Partitions

    def partition_of(self, owner: object) -> Partition | None:
        return self._partition_of.get(owner) if isinstance(owner, Log) else None

    def on_change(self, change: Change) -> None:
        """One committed record: make partitions follow it, as far as the disk lets them."""
        try:
            self._on_change(change)
        except DiskError as error:
            self.fail_directory_of(error.path, error.reason)

    def _on_change(self, change: Change) -> None:
        if isinstance(change, PartitionCreated | PartitionChanged):
            self._follow(change)
        elif isinstance(change, EligibleLeadersCleared):
            for each in change.partitions:
                self.on_change(each)  # one whose directory is offline keeps no other from it
        elif isinstance(change, TopicDeleted):
            for partition in self._node.partitions.remove_topic(change.topic, change.topic_id):
                self._delete(partition)
        elif isinstance(change, BrokerChanged | BrokerRegistered):
            self._reconsider(change.broker_id)
        elif isinstance(change, ConfigChanged):
            self._reconfigure(change)

    def _reconsider(self, broker_id: int) -> None:
        """Whether a broker is fenced decides whether it may join, and whom leaders wait for."""
        for partition in self._node.partitions:
            if partition.leadership is not None and broker_id in partition.leadership.followers:
                self._node.isr_changes.consider(partition)
                self._node.touch(partition)

    def _follow(self, change: PartitionCreated | PartitionChanged) -> None:
        node = self._node
        partition = node.partitions.find(change.topic, change.index)
        if node.settings.node_id not in change.replicas:
            if partition is not None:
                node.partitions.remove(partition)
                self._delete(partition)
            return
        if partition is None:
            partition = self._make(change)
            node.partitions.add(partition)
        self._report_directory(partition)
        if partition.log.failed is None:
            self._assign(
                partition,
                Assignment(
                    leader_id=change.leader,
                    leader_epoch=change.leader_epoch,
                    partition_epoch=change.partition_epoch,
                    replicas=change.replicas,
                    isr=change.isr,
                ),
            )

    def _report_directory(self, partition: Partition) -> None:
        """The controller must know what would end with which directory."""
        node = self._node
        topic_partition = partition.topic_partition
        state = node.image.partition(topic_partition.topic, topic_partition.index)
        ids = node.metadata.identity.directory_ids
        for directory_id, directory in zip(ids, self.directories, strict=True):
            is_here = directory.logs.get(topic_partition) is partition.log
            if is_here and state is not None:
                known = state.directory(node.settings.node_id)
                node.directory_reports.consider(partition, known=known, actual=directory_id)

    def _assign(self, partition: Partition, assigned: Assignment) -> None:
        node = self._node
        before = partition.leader_epoch
        if assigned.leader_id == node.settings.node_id:
            node.fetcher_links.forget(partition)
            partition.lead(assigned, node.now_ms)
            node.isr_changes.consider(partition)
        elif partition.follow(assigned):
            node.fetcher_links.follow(partition)
        if partition.leader_epoch != before:
            partition.notify_watchers()
        node.touch(partition)

    def _make(self, change: PartitionCreated | PartitionChanged) -> Partition:
        values = self.topic_values(change.topic)
        config = log_config(values, self._node.settings.values)
        topic_partition = TopicPartition(change.topic, change.index)
        directory = self._directory_for(
            topic_partition, is_new=isinstance(change, PartitionCreated)
        )
        directory.refuse_if_offline()
        if directory.topic_id_of(topic_partition) not in (None, change.topic_id):
            # 1. Topic A is deleted, and the node dies before it renames the directory.
            # 2. A new topic A is made. Its partitions must not begin with the old one's records.
            directory.discard_found(topic_partition)
        log = directory.open_log(
            topic_partition, topic_id=change.topic_id, config=config, wall_ms=self._wall_ms
        )
        partition = Partition(
            topic_partition=topic_partition,
            topic_id=change.topic_id,
            log=log,
            node_id=self._node.settings.node_id,
            waits_for_sync=config.fsync != "none",
            isr_min=_isr_min(values),
            lag_ms_max=self._node.settings.integer("replica.lag.time.max.ms"),
            cluster=self,
            trace=self._node.trace,
        )
        self._partition_of[log] = partition
        return partition

    def _directory_for(self, topic_partition: TopicPartition, *, is_new: bool) -> LogDirectory:
        """Where it is already, or the working directory that has the fewest logs.

        A partition that is not new may lie in a directory that failed before its names were read.
        It stays there: made anew elsewhere, its log would be empty and its offsets be given again.
        Only what the metadata places in another directory is known not to.
        """
        for directory in self.directories:
            if topic_partition in directory.found:
                return directory
        unread = [each for each in self.directories if not each.is_read]
        if unread and not is_new and not self._is_placed_in_read(topic_partition):
            return unread[0]
        working = [each for each in self.directories if each.offline is None]
        return min(working or self.directories, key=lambda directory: len(directory.logs))

    def _is_placed_in_read(self, topic_partition: TopicPartition) -> bool:
        node = self._node
        state = node.image.partition(topic_partition.topic, topic_partition.index)
        if state is None:
            return False
        placed = state.directory(node.settings.node_id)
        ids = node.metadata.identity.directory_ids
        pairs = zip(ids, self.directories, strict=True)
        return any(id_ == placed and each.is_read for id_, each in pairs)

    def _delete(self, partition: Partition) -> None:
        """It is no longer among the partitions; end what hangs on it, and remove its files."""
        self._node.directory_reports.forget(partition)
        self._node.fetcher_links.forget(partition)
        del self._partition_of[partition.log]
        for directory in self.directories:
            if directory.logs.get(partition.topic_partition) is partition.log:
                unique = new_uuid(self._node.random).hex()
                directory.remove_log(
                    partition.topic_partition, unique=unique, wall_ms=self._wall_ms
                )
        partition.delete()

    def _reconfigure(self, change: ConfigChanged) -> None:
        if change.resource_type == ResourceType.TOPIC:
            topics = {change.resource_name}
        else:
            self._inherited = None
            topics = {partition.topic_partition.topic for partition in self._node.partitions}
        for topic in sorted(topics):
            values = self.topic_values(topic)
            config = log_config(values, self._node.settings.values)
            for partition in self._node.partitions.of_topic(topic):
                partition.log.update_config(config)
                partition.require(_isr_min(values))
                self._node.touch(partition)

    # Directories

    def open_directories(self, wall_ms: int) -> None:
        """Read marks and checkpoints of each; the logs themselves open as metadata names them."""
        node = self._node
        self._wall_ms = wall_ms
        for path in node.settings.log_dirs:
            directory = LogDirectory.open(disk=node.disk, path=path, trace=node.trace)
            self.directories.append(directory)

    def remove_orphans(self) -> None:
        """Directories of topics that the metadata no longer has: a deletion cut short.

        That a log is not open is no proof: its disk may have failed while it was opened.
        """
        for directory in self.directories:
            for topic_partition in list(directory.found):
                is_open = topic_partition in directory.logs or directory.offline is not None
                known = self._node.image.partition(topic_partition.topic, topic_partition.index)
                if not is_open and known is None:
                    directory.discard_found(topic_partition)

    def fail_directory_of(self, path: str, reason: str) -> None:
        """Give a directory up for good: none of its partitions is served any more."""
        for directory in self.directories:
            if path == directory.path or path.startswith(directory.path + "/"):
                directory.take_offline(DiskError(path, reason))
        self.notice_failures()

    def notice_failures(self) -> None:
        """Draw the conclusion where a directory went offline, whoever met the error first.

        The metadata log lives in the first one, and a broker without any directory is no broker:
        in both cases the whole node halts, because it can promise nothing.
        """
        for at, directory in enumerate(self.directories):
            reason = directory.offline
            if reason is None or directory.path in self._noticed:
                continue
            self._noticed.add(directory.path)
            lost = [p for p in self._node.partitions if p.log in directory.logs.values()]
            event = LogDirectoryFailed(
                directory=directory.path, reason=reason, partitions=len(lost)
            )
            self._node.trace.emit(event)
            for partition in lost:
                self._node.fetcher_links.forget(partition)
                partition.retire(ErrorCode.KAFKA_STORAGE_ERROR)
            if at == 0 or all(each.offline is not None for each in self.directories):
                self._halt(f"log directory {directory.path} failed: {reason}")
            else:
                self._node.broker_lifecycle.on_directory_lost()

    def _halt(self, reason: str) -> None:
        node_id = self._node.settings.node_id
        self._node.trace.emit(NodeHalted(node_id=node_id, reason=reason))
        self._node.outbox.halt(reason)

    def offline_directory_ids(self) -> list[bytes]:
        """For the controller: whatever lies there is led by others from now on."""
        ids = self._node.metadata.identity.directory_ids
        return [id_ for id_, each in zip(ids, self.directories, strict=True) if each.offline]

    def write_checkpoints(self) -> None:
        for directory in self.directories:
            if directory.offline is None:
                directory.write_checkpoints()

    def remove_deleted(self, wall_ms: int) -> None:
        self._wall_ms = wall_ms
        for directory in self.directories:
            if directory.offline is None:
                directory.delete_due_files(wall_ms)

    def close_cleanly(self, *, broker_epoch: int | None) -> None:
        for directory in self.directories:
            if directory.offline is None:
                directory.close_cleanly(broker_epoch=broker_epoch)


def _isr_min(values: dict[str, Value]) -> int:
    value = values["min.insync.replicas"]
    assert isinstance(value, int)
    return value
