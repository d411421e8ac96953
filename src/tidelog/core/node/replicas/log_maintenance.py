"""Maintenance of logs: retention, flushes, checkpoints, deleted files, producers, compaction."""

from __future__ import annotations

from collections.abc import Callable

from tidelog.core.model.trace import Trace
from tidelog.core.node.replicas.hosted_partitions import HostedPartitions
from tidelog.core.node.replicas.log_settings import cleaner_settings
from tidelog.core.node.replicas.replica_manager import ReplicaManager
from tidelog.core.node.settings import NodeSettings
from tidelog.core.storage.disk import DiskError
from tidelog.core.storage.log_cleaner import CleanerSettings, LogCleaner

Act = Callable[[int], None]


class LogMaintenance:
    """A few tasks, each with its interval; `next_deadline_ms` is the earliest of them."""

    def __init__(
        self,
        *,
        settings: NodeSettings,
        partitions: HostedPartitions,
        replica_manager: ReplicaManager,
        wall_ms: Callable[[int], int],
        trace: Trace,
    ) -> None:
        self._partitions = partitions
        self._replica_manager = replica_manager
        self._wall_ms = wall_ms
        value = settings.integer
        self._cleaner = LogCleaner(
            logs=lambda: (partition.log for partition in self._partitions),
            settings=self._cleaner_settings,
            trace=trace,
        )
        self._cleaning = MaintenanceTask(self._clean, value("log.cleaner.backoff.ms"))
        self._tasks = [
            self._cleaning,
            MaintenanceTask(self._retain, value("log.retention.check.interval.ms")),
            MaintenanceTask(self._checkpoint, value("log.flush.offset.checkpoint.interval.ms")),
            MaintenanceTask(self._remove_deleted, value("log.segment.delete.delay.ms")),
            MaintenanceTask(self._flush, value("log.flush.scheduler.interval.ms")),
            MaintenanceTask(
                self._forget_producers, value("producer.id.expiration.check.interval.ms")
            ),
        ]
        self.next_deadline_ms = 0

    def start(self, now_ms: int) -> None:
        for task in self._tasks:
            task.due_ms = now_ms + task.interval_ms
        self._plan()

    def run(self, now_ms: int) -> None:
        if now_ms < self.next_deadline_ms:
            return
        for task in self._tasks:
            if now_ms >= task.due_ms:
                self._do(task, now_ms)
                task.due_ms = now_ms + task.interval_ms
        self._plan()

    def _do(self, task: MaintenanceTask, now_ms: int) -> None:
        try:
            task.act(self._wall_ms(now_ms))
        except DiskError as error:
            self._replica_manager.fail_directory_of(error.path, error.reason)

    def _plan(self) -> None:
        self.next_deadline_ms = min(task.due_ms for task in self._tasks)

    def _retain(self, wall_ms: int) -> None:
        for partition in list(self._partitions):
            if partition.log.failed is None and partition.log.enforce_retention(wall_ms):
                partition.notify_watchers()

    def _clean(self, wall_ms: int) -> None:
        """A slice of compaction; `interval_ms` says when the next one is due."""
        self._cleaning.interval_ms = max(1, self._cleaner.run_slice(wall_ms))

    def _cleaner_settings(self) -> CleanerSettings:
        return cleaner_settings(self._replica_manager.broker_value)

    def _checkpoint(self, wall_ms: int) -> None:
        self._replica_manager.write_checkpoints()

    def _remove_deleted(self, wall_ms: int) -> None:
        self._replica_manager.remove_deleted(wall_ms)

    def _flush(self, wall_ms: int) -> None:
        for partition in list(self._partitions):
            partition.log.flush_if_due(wall_ms)

    def _forget_producers(self, wall_ms: int) -> None:
        for partition in list(self._partitions):
            partition.log.expire_producers(wall_ms)


class MaintenanceTask:
    """Something to do every `interval_ms`."""

    __slots__ = ("act", "due_ms", "interval_ms")

    def __init__(self, act: Act, interval_ms: int) -> None:
        self.act = act
        self.interval_ms = max(1, interval_ms)
        self.due_ms = 0
