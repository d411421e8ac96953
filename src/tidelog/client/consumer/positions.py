"""Positions: where a consumer is in each of its partitions, and whether it may read on from there.

A position remembers the leader epoch of the record before it, and the leader it was last used with.
When the leader changes, the position must be validated: a log that was cut below it would otherwise
give other records under offsets that were already read (KIP-320).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tidelog.client.cluster_metadata import Leader
from tidelog.client.consumer.config import Reset
from tidelog.client.consumer.errors import ConsumerError
from tidelog.core.model.ids import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchPosition:
    """The next offset to be read. `offset_epoch` is the leader epoch of the record before it."""

    offset: int
    offset_epoch: int | None
    leader: Leader


class FetchState(Enum):
    """What must happen before the next fetch."""

    LOST = "lost"
    RESETTING = "resetting"
    VALIDATING = "validating"
    READING = "reading"


_NEXT: dict[FetchState, frozenset[FetchState]] = {
    FetchState.LOST: frozenset({FetchState.RESETTING, FetchState.VALIDATING, FetchState.READING}),
    FetchState.RESETTING: frozenset(
        {FetchState.RESETTING, FetchState.VALIDATING, FetchState.READING}
    ),
    FetchState.VALIDATING: frozenset(FetchState) - {FetchState.LOST},
    FetchState.READING: frozenset(FetchState) - {FetchState.LOST},
}
assert set(_NEXT) == set(FetchState)


class AssignedPartition:
    """One assigned partition. Invariant: it has a position unless it is lost or resetting."""

    __slots__ = (
        "_read_replica",
        "_read_replica_until_ms",
        "error",
        "failures",
        "high_watermark",
        "is_in_flight",
        "is_paused",
        "last_stable_offset",
        "log_start_offset",
        "name",
        "position",
        "reset",
        "retry_at_ms",
        "state",
    )

    def __init__(self, name: TopicPartition) -> None:
        self.name = name
        self.state = FetchState.LOST
        self.position: FetchPosition | None = None
        self.reset: Reset | None = None
        self.is_paused = False
        self.is_in_flight = False
        """A question about its position is on its way."""
        self.retry_at_ms = 0
        self.failures = 0
        self.error: ConsumerError | None = None
        """`poll` raises it until somebody seeks."""
        self.high_watermark: int | None = None
        self.last_stable_offset: int | None = None
        self.log_start_offset: int | None = None
        self._read_replica: int | None = None
        self._read_replica_until_ms = 0

    def _become(self, state: FetchState) -> None:
        assert state in _NEXT[self.state], f"{self.state} may not become {state}"
        self.state = state
        self.is_in_flight = False
        self.retry_at_ms = 0
        self.failures = 0

    # Moving

    def seek(self, position: FetchPosition) -> None:
        """Read on from here; validate it first if we know what it was read under."""
        self.position = position
        self.error = None
        self.reset = None
        self._read_replica = None
        self._become(_state_of(position))

    def request_reset(self, reset: Reset) -> None:
        """Find a position; fetched records do not count any more."""
        self.position = None
        self.error = None
        self.reset = reset
        self._read_replica = None
        self._become(FetchState.RESETTING)

    def advance(self, *, offset: int, offset_epoch: int | None) -> None:
        """Records before `offset` have been given to the program."""
        assert self.state == FetchState.READING and self.position is not None
        assert offset >= self.position.offset, "reading only goes forward"
        self.position = FetchPosition(
            offset=offset, offset_epoch=offset_epoch, leader=self.position.leader
        )

    def on_leader(self, leader: Leader) -> None:
        """The metadata names this leader; a position that was used with another is validated."""
        if self.position is None or leader.broker_id is None or leader == self.position.leader:
            return
        self.position = FetchPosition(
            offset=self.position.offset, offset_epoch=self.position.offset_epoch, leader=leader
        )
        self._read_replica = None
        if self.error is None:
            self._become(_state_of(self.position))

    def validated(self) -> None:
        self._become(FetchState.READING)

    def stuck(self, error: ConsumerError) -> None:
        """Stop until the program seeks."""
        self.error = error

    # Failing for now

    def fails(self, *, pause_ms: int, now_ms: int) -> None:
        self.is_in_flight = False
        self.retry_at_ms = now_ms + pause_ms
        self.failures += 1

    def succeeds(self) -> None:
        self.failures = 0

    # Which replica to read from

    def choose_read_replica(self, replica_id: int, *, until_ms: int) -> None:
        self._read_replica = replica_id
        self._read_replica_until_ms = until_ms

    def read_replica(self, now_ms: int) -> int | None:
        if self._read_replica is not None and self._read_replica_until_ms <= now_ms:
            self._read_replica = None
        return self._read_replica

    def leave_read_replica(self) -> bool:
        """Back to the leader. True if it was read from another."""
        had_one = self._read_replica is not None
        self._read_replica = None
        return had_one

    @property
    def may_fetch(self) -> bool:
        return self.state == FetchState.READING and not self.is_paused and self.error is None


def _state_of(position: FetchPosition) -> FetchState:
    if position.offset_epoch is None or position.leader.leader_epoch is None:
        return FetchState.READING
    return FetchState.VALIDATING
