"""The coordinators of one internal topic on one node: a shard for each partition that it leads.

Transactions and groups are two tenants of it: it knows their records only as keys and values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic

from tidelog.core.coordinator.events import CoordinatorDropped, CoordinatorLoaded
from tidelog.core.coordinator.hosted_shard import (
    CoordinatorPort,
    Duty,
    HostedShard,
    Operation,
    Shard,
)
from tidelog.core.coordinator.log_port import CoordinatorLog, CoordinatorLogUnreadable
from tidelog.core.coordinator.outcome import ReplyTo
from tidelog.core.model.alarms import Alarm
from tidelog.core.model.errors import ErrorCode

SLICE_RECORDS = 120
"""Applied in one turn, by all partitions together: at some ten microseconds each, below 2 ms."""
SLICE_INTERVAL_MS = 1
"""Between two such turns whatever else has come is served."""


class CoordinatorRuntime(Generic[Shard]):
    """Inputs: lead, resign, submit, perform_everywhere, settle. Invariants: check."""

    def __init__(
        self,
        *,
        topic: str,
        make_shard: Callable[[int], Shard],
        port: CoordinatorPort,
        on_committed: Callable[[int, int, object], None] | None = None,
    ) -> None:
        """`on_committed` gets the partition, its leader epoch and what is to be done then."""
        self._topic = topic
        self._make_shard = make_shard
        self._port = port
        self._on_committed = on_committed
        self.hosted: dict[int, HostedShard[Shard]] = {}
        self.unsettled: dict[HostedShard[Shard], None] = {}
        """Those with answers that wait for the high watermark."""
        self._loading: dict[int, None] = {}
        """In the order in which they began: one after the other, so the first is soon ready."""
        self._load_alarm: Alarm | None = None

    # Leadership

    def lead(self, index: int, log: CoordinatorLog, *, leader_epoch: int, now_ms: int) -> None:
        """This node leads the partition from now on: load what it holds."""
        hosted = self.hosted.get(index)
        if hosted is not None:
            if hosted.leader_epoch == leader_epoch:
                return
            self.resign(index, "a new leader epoch")
        self.hosted[index] = HostedShard(
            name=f"{self._topic}-{index}",
            shard=self._make_shard(index),
            log=log,
            leader_epoch=leader_epoch,
            port=self._port,
            unsettled=self.unsettled,
            on_failed=lambda reason: self.resign(index, reason),
            on_committed=self._committed_work(index, leader_epoch),
        )
        self._loading[index] = None
        if log.log_start_offset == log.log_end_offset:
            self._load(index, 1, now_ms)  # nothing to read: ready at once
        self._arm_load(now_ms)

    def _committed_work(self, index: int, leader_epoch: int) -> Callable[[object], None] | None:
        do = self._on_committed
        return None if do is None else lambda work: do(index, leader_epoch, work)

    def resign(self, index: int, reason: str) -> None:
        """Another node leads it, or nobody: forget what was loaded."""
        hosted = self.hosted.pop(index, None)
        self._loading.pop(index, None)
        if hosted is not None:
            hosted.drop()
            self._port.trace.emit(
                CoordinatorDropped(
                    partition=hosted.name, leader_epoch=hosted.leader_epoch, reason=reason
                )
            )

    # Requests and events

    def submit(
        self, index: int, operation: Operation[Shard], reply_to: ReplyTo, now_ms: int
    ) -> None:
        """Let the partition's coordinator decide, or refuse if it is not here."""
        hosted = self.hosted.get(index)
        if hosted is None:
            self._port.refuse(reply_to, ErrorCode.NOT_COORDINATOR)
        else:
            hosted.submit(operation, reply_to, now_ms)

    def perform(self, index: int, duty: Duty[Shard], now_ms: int) -> None:
        """One partition's coordinator decides about an event, if it is still here."""
        hosted = self.hosted.get(index)
        if hosted is not None:
            hosted.perform(duty, now_ms)

    def perform_everywhere(self, duty: Duty[Shard], now_ms: int) -> None:
        """Every partition's coordinator decides about an event."""
        for hosted in list(self.hosted.values()):
            hosted.perform(duty, now_ms)

    def settle(self) -> None:
        """At the end of a tick, after the high watermarks have moved."""
        for hosted in list(self.unsettled):
            hosted.settle()

    # Load

    def _arm_load(self, now_ms: int) -> None:
        if self._loading and (self._load_alarm is None or not self._load_alarm.is_pending):
            self._load_alarm = self._port.alarms.at(now_ms + SLICE_INTERVAL_MS, self._on_slice)

    def _on_slice(self, now_ms: int) -> None:
        """One turn's share of work, for as many partitions as it suffices."""
        left = SLICE_RECORDS
        for index in list(self._loading):
            if index in self._loading:
                left -= self._load(index, left, now_ms) + 1
            if left <= 0:
                break
        self._arm_load(now_ms)

    def _load(self, index: int, records_max: int, now_ms: int) -> int:
        hosted = self.hosted[index]
        loader = hosted.loader
        assert loader is not None, "only loading ones are in the list"
        try:
            count = hosted.load(records_max, now_ms)
        except CoordinatorLogUnreadable as error:
            self.resign(index, f"unreadable: {error}")
            return 0
        if hosted.loader is None:
            self._loading.pop(index, None)
            self._port.trace.emit(
                CoordinatorLoaded(
                    partition=hosted.name,
                    leader_epoch=hosted.leader_epoch,
                    end_offset=loader.end_offset,
                    records=loader.records_count,
                )
            )
        return count

    def check(self) -> None:
        for index, hosted in self.hosted.items():
            hosted.check()
            assert (hosted.loader is not None) == (index in self._loading), hosted.name
        if self._loading:
            assert self._load_alarm is not None and self._load_alarm.is_pending, "stands still"
