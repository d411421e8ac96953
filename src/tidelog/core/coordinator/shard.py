"""What the runtime asks of the state that it keeps for one partition of an internal topic."""

from __future__ import annotations

from typing import Protocol

from tidelog.core.coordinator.outcome import Outcome
from tidelog.core.coordinator.record import CoordinatorRecord


class CoordinatorShard(Protocol):
    """One partition's state: built from its records, dropped as a whole.

    Operations decide and return an `Outcome`. They change nothing that is kept in the log:
    `apply` does, on the leader at append and on its successor at replay.
    """

    def apply(self, record: CoordinatorRecord, *, offset: int, timestamp_ms: int) -> None:
        """Take one record over. The only way to change what is kept in the log."""

    def apply_transactional(
        self, record: CoordinatorRecord, *, producer_id: int, offset: int, timestamp_ms: int
    ) -> None:
        """Take over a record that counts only when its producer's transaction commits."""

    def apply_marker(self, *, producer_id: int, is_commit: bool) -> None:
        """A producer's transaction has ended: its records count now, or never."""

    def on_loaded(self, now_ms: int) -> Outcome:
        """All records are applied, and this node leads the partition: deadlines begin now."""

    def on_timer(self, now_ms: int) -> Outcome:
        """Do what was due by now."""

    def next_deadline_ms(self) -> int | None:
        """When `on_timer` is wanted next."""

    def check(self) -> None:
        """Assert the invariants."""
