"""The replicas that this broker keeps: log directories, and partitions that follow the metadata."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

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
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.model.config import Value
from tidelog.core.model.config_resolution import (
    BrokerLayers,
    broker_value,
    inherited_topic_values,
    topic_values,
)
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.model.trace import Trace
from tidelog.core.node.events import LogDirectoryFailed, NodeHalted
from tidelog.core.node.replicas.directory_reports import DirectoryReports
from tidelog.core.node.replicas.hosted_partitions import HostedPartitions
from tidelog.core.node.replicas.isr_changes import IsrChanges
from tidelog.core.node.replicas.log_settings import log_config
from tidelog.core.node.settings import NodeSettings
from tidelog.core.replication.fetcher_links import FetcherLinks
from tidelog.core.replication.partition import Assignment, Partition
from tidelog.core.storage.directory import LogDirectory
from tidelog.core.storage.disk import Disk, DiskError
from tidelog.core.storage.log import Log


class ReplicaManager:
    """Invariant: one partition per log, and one log directory that holds it."""

    def __init__(
        self,
        *,
        settings: NodeSettings,
        image: ClusterImage,
        partitions: HostedPartitions,
        fetcher_links: FetcherLinks,
        isr_changes: IsrChanges,
        directory_reports: DirectoryReports,
        directory_ids: Callable[[], Sequence[bytes]],
        on_directory_lost: Callable[[], None],
        halt: Callable[[str], None],
        disk: Disk,
        trace: Trace,
        random: Random,
    ) -> None:
        self._settings = settings
        self._image = image
        self._partitions = partitions
        self._fetcher_links = fetcher_links
        self._isr_changes = isr_changes
        self._directory_reports = directory_reports
        self._directory_ids = directory_ids
        self._on_directory_lost = on_directory_lost
        self._halt_process = halt
        self._disk = disk
        self._trace = trace
        self._random = random
        self.directories: list[LogDirectory] = []
        self._noticed: set[str] = set()
        """Directories whose end has been announced."""
        self._partition_of: dict[Log, Partition] = {}
        self._inherited: dict[str, Value] | None = None
        self._wall_ms = 0

    # Settings

    def layers(self) -> BrokerLayers:
        """Where this broker's settings come from, nearest first."""
        return BrokerLayers(
            broker=self._image.broker_config(self._settings.node_id),
            cluster=self._image.cluster_config(),
            file=self._settings.texts,
        )

    def broker_value(self, name: str) -> Value:
        return broker_value(name, self.layers())

    def topic_values(self, topic: str) -> dict[str, Value]:
        """Every setting of a topic as it counts on this broker."""
        if self._inherited is None:
            self._inherited = inherited_topic_values(self.layers())
        return topic_values(self._image.topic_config(topic), self._inherited)

    # Standing: what leaders ask about other brokers

    def may_join(self, broker_id: int, broker_epoch: int | None) -> bool:
        """See `BrokerStandings`."""
        broker = self._image.brokers.get(broker_id)
        return broker is not None and broker.is_active and broker.broker_epoch == broker_epoch

    def is_alive(self, broker_id: int) -> bool:
        broker = self._image.brokers.get(broker_id)
        return broker is not None and not broker.is_fenced

    # Partitions

    def partition_of(self, owner: object) -> Partition | None:
        return self._partition_of.get(owner) if isinstance(owner, Log) else None

    def on_change(self, change: Change, now_ms: int) -> None:
        """One committed record: make partitions follow it, as far as the disk lets them."""
        try:
            self._on_change(change, now_ms)
        except DiskError as error:
            self.fail_directory_of(error.path, error.reason)

    def _on_change(self, change: Change, now_ms: int) -> None:
        if isinstance(change, PartitionCreated | PartitionChanged):
            self._follow(change, now_ms)
        elif isinstance(change, EligibleLeadersCleared):
            for each in change.partitions:
                self.on_change(each, now_ms)  # an offline directory keeps no other from it
        elif isinstance(change, TopicDeleted):
            for partition in self._partitions.remove_topic(change.topic, change.topic_id):
                self._delete(partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        elif isinstance(change, BrokerChanged | BrokerRegistered):
            self._reconsider(change.broker_id, now_ms)
        elif isinstance(change, ConfigChanged):
            self._reconfigure(change)

    def _reconsider(self, broker_id: int, now_ms: int) -> None:
        """Whether a broker is fenced decides whether it may join, and whom leaders wait for."""
        for partition in self._partitions:
            if partition.leadership is not None and broker_id in partition.leadership.followers:
                self._isr_changes.consider(partition, now_ms)
                self._partitions.touch(partition)

    def _follow(self, change: PartitionCreated | PartitionChanged, now_ms: int) -> None:
        partition = self._partitions.find(change.topic, change.index)
        if self._settings.node_id not in change.replicas:
            if partition is not None:
                self._partitions.remove(partition)
                self._delete(partition, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        if partition is None:
            partition = self._make(change)
            self._partitions.add(partition)
        self._report_directory(partition, now_ms)
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
                now_ms,
            )

    def _report_directory(self, partition: Partition, now_ms: int) -> None:
        """The controller must know what would end with which directory."""
        topic_partition = partition.topic_partition
        state = self._image.partition(topic_partition.topic, topic_partition.index)
        for directory_id, directory in zip(self._directory_ids(), self.directories, strict=True):
            is_here = directory.logs.get(topic_partition) is partition.log
            if is_here and state is not None:
                known = state.directory(self._settings.node_id)
                self._directory_reports.consider(
                    partition, known=known, actual=directory_id, now_ms=now_ms
                )

    def _assign(self, partition: Partition, assigned: Assignment, now_ms: int) -> None:
        before = partition.leader_epoch
        if assigned.leader_id == self._settings.node_id:
            self._fetcher_links.forget(partition)
            partition.lead(assigned, now_ms)
            self._isr_changes.consider(partition, now_ms)
        elif partition.follow(assigned):
            self._fetcher_links.follow(partition)
        if partition.leader_epoch != before:
            partition.notify_watchers()
        self._partitions.touch(partition)

    def _make(self, change: PartitionCreated | PartitionChanged) -> Partition:
        values = self.topic_values(change.topic)
        config = log_config(values, self._settings.values)
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
            node_id=self._settings.node_id,
            waits_for_sync=config.fsync != "none",
            isr_min=_isr_min(values),
            lag_ms_max=self._settings.integer("replica.lag.time.max.ms"),
            cluster=self,
            trace=self._trace,
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
        state = self._image.partition(topic_partition.topic, topic_partition.index)
        if state is None:
            return False
        placed = state.directory(self._settings.node_id)
        pairs = zip(self._directory_ids(), self.directories, strict=True)
        return any(id_ == placed and each.is_read for id_, each in pairs)

    def _delete(self, partition: Partition, code: ErrorCode) -> None:
        """It is no longer among the partitions; end what hangs on it, and remove its files."""
        self._directory_reports.forget(partition)
        self._fetcher_links.forget(partition)
        del self._partition_of[partition.log]
        for directory in self.directories:
            if directory.logs.get(partition.topic_partition) is partition.log:
                unique = new_uuid(self._random).hex()
                directory.remove_log(
                    partition.topic_partition, unique=unique, wall_ms=self._wall_ms
                )
        partition.delete(code)

    def _reconfigure(self, change: ConfigChanged) -> None:
        if change.resource_type == ResourceType.TOPIC:
            topics = {change.resource_name}
        else:
            self._inherited = None
            topics = {partition.topic_partition.topic for partition in self._partitions}
        for topic in sorted(topics):
            values = self.topic_values(topic)
            config = log_config(values, self._settings.values)
            for partition in self._partitions.of_topic(topic):
                partition.log.update_config(config)
                partition.require(_isr_min(values))
                self._partitions.touch(partition)

    # Directories

    def open_directories(self, wall_ms: int) -> None:
        """Read marks and checkpoints of each; the logs themselves open as metadata names them."""
        self._wall_ms = wall_ms
        for path in self._settings.log_dirs:
            directory = LogDirectory.open(disk=self._disk, path=path, trace=self._trace)
            self.directories.append(directory)

    def remove_orphans(self) -> None:
        """Directories of partitions that the metadata no longer has, or no longer has here.

        A deletion was cut short, or other brokers took over while this one was down. That a log is
        not open is no proof: its disk may have failed while it was opened.
        """
        for directory in self.directories:
            for topic_partition in list(directory.found):
                is_open = topic_partition in directory.logs or directory.offline is not None
                known = self._image.partition(topic_partition.topic, topic_partition.index)
                is_here = known is not None and self._settings.node_id in known.replicas
                if not is_open and not is_here:
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
            lost = [p for p in self._partitions if p.log in directory.logs.values()]
            event = LogDirectoryFailed(
                directory=directory.path, reason=reason, partitions=len(lost)
            )
            self._trace.emit(event)
            for partition in lost:
                self._fetcher_links.forget(partition)
                partition.retire(ErrorCode.KAFKA_STORAGE_ERROR)
            if at == 0 or all(each.offline is not None for each in self.directories):
                self._halt(f"log directory {directory.path} failed: {reason}")
            else:
                self._on_directory_lost()

    def _halt(self, reason: str) -> None:
        node_id = self._settings.node_id
        self._trace.emit(NodeHalted(node_id=node_id, reason=reason))
        self._halt_process(reason)

    def clean_broker_epoch(self) -> int | None:
        """Proof that we stopped cleanly: without it our logs may lack what they once had."""
        epochs = {directory.clean_broker_epoch for directory in self.directories}
        return epochs.pop() if len(epochs) == 1 else None

    def offline_directory_ids(self) -> list[bytes]:
        """For the controller: whatever lies there is led by others from now on."""
        ids = self._directory_ids()
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

    def check(self) -> None:
        for directory in self.directories:
            directory.check()
        for partition in self._partitions:
            log = partition.log
            assert log.failed is not None or self.partition_of(log) is partition, log.directory


def _isr_min(values: dict[str, Value]) -> int:
    value = values["min.insync.replicas"]
    assert isinstance(value, int)
    return value
