"""What a node does by the clock: retention, flushes, checkpoints, deleted files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.storage.disk import DiskError

if TYPE_CHECKING:
    from tidelog.core.node.node import Node


class LogMaintenance:
    """A few chores, each with its interval; `next_deadline_ms` is the earliest of them."""

    def __init__(self, node: Node) -> None:
        self._node = node
        value = node.settings.integer
        self._chores = [
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
        for chore in self._chores:
            chore.due_ms = now_ms + chore.interval_ms
        self._plan()

    def run(self, now_ms: int) -> None:
        if now_ms < self.next_deadline_ms:
            return
        for chore in self._chores:
            if now_ms >= chore.due_ms:
                chore.due_ms = now_ms + chore.interval_ms
                self._do(chore, now_ms)
        self._plan()

    def _do(self, chore: MaintenanceTask, now_ms: int) -> None:
        try:
            chore.act(self._node.wall_ms(now_ms))
        except DiskError as error:
            self._node.replica_manager.fail_directory_of(error.path, error.reason)

    def _plan(self) -> None:
        self.next_deadline_ms = min(chore.due_ms for chore in self._chores)

    def _retain(self, wall_ms: int) -> None:
        for partition in list(self._node.partitions):
            if partition.log.failed is None and partition.log.enforce_retention(wall_ms):
                partition.notify_watchers()

    def _checkpoint(self, wall_ms: int) -> None:
        self._node.replica_manager.write_checkpoints()

    def _remove_deleted(self, wall_ms: int) -> None:
        self._node.replica_manager.remove_deleted(wall_ms)

    def _flush(self, wall_ms: int) -> None:
        for partition in list(self._node.partitions):
            partition.log.flush_if_due(wall_ms)

    def _forget_producers(self, wall_ms: int) -> None:
        for partition in list(self._node.partitions):
            partition.log.expire_producers(wall_ms)


class MaintenanceTask:
    """Something to do every `interval_ms`."""

    __slots__ = ("act", "due_ms", "interval_ms")

    def __init__(self, act: Act, interval_ms: int) -> None:
        self.act = act
        self.interval_ms = max(1, interval_ms)
        self.due_ms = 0


if TYPE_CHECKING:
    from collections.abc import Callable

    Act = Callable[[int], None]
