"""Excuses: what was done to the cluster that lets records go, each a value given to the judge.

Nothing is forgiven by default. A committed record (answered ok with acks=all, or given to a reader)
may go only by

- an unclean election: a leader was taken from outside the in-sync and the eligible replicas, where
  the topic allows it or an administrator asks for it; its predecessor, alone in sync, may go on
  committing until it hears of it;
- the return of the last known leader when nobody eligible is left, *and* only if that very replica
  lost its own tail: a power loss with a page cache, a wiped disk.

A record that only a leader vouched for (acks=1, not yet given to any reader) may go by any election
whose winner does not hold it, also when the old leader answered after it, unaware. But a leader
that was paused for longer than its session must ask before it answers; and one that is elected
again without another one in between holds it, unless it lost its tail.

Whoever retries without idempotence may repeat and reorder. An idempotent producer may repeat a
batch under a new producer epoch of its own if a replica began again from a snapshot while the
batch, or another one that was under way with it, had no outcome: as in Kafka, that remembers only
the newest batch of each producer, and refuses an older one that is sent again. A batch that decayed
under one replica may reach readers, who see it by its checksum. A write of unknown fate needs no
excuse: it may be there once or not at all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from math import inf

from tidelog.judge.history import CallOutcome, Wrote


class ElectionSource(Enum):
    """Where a leader was taken from."""

    CLEAN = "clean"
    UNCLEAN = "unclean"
    LAST_KNOWN = "last known leader"


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionHeld:
    """A partition got a leader."""

    at_us: int
    partition: str
    leader: int
    leader_epoch: int
    election: ElectionSource
    kept_end_offset: int
    """Up to here the new leader's log is what its predecessor's was."""
    predecessor: int | None = None
    """Who led before; None: nobody did."""
    believed_until_us: int = 0
    """When the last of its predecessors heard that it leads no more: until then it may have
    answered writers that asked for no more than its own copy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TailLost:
    """One replica may have lost its records at and above the floor; below it all was synced."""

    at_us: int
    partition: str
    broker_id: int
    floor_offset: int
    because: str
    until_us: int | None = None
    """When it had everything again; None: not yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """This writer sends again without numbering its records."""

    writer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchesForgotten:
    """A replica began again from a snapshot, after a restart or because its log was cut: of each
    producer it remembers the newest batch only."""

    at_us: int
    partition: str
    broker_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchDamaged:
    """The medium under one replica changed a batch; whoever was given it there could see that."""

    at_us: int
    partition: str
    start_offset: int
    end_offset: int
    until_us: int | None = None
    """When it was repaired; None: not yet."""


Excuse = ElectionHeld | TailLost | Retries | BatchesForgotten | BatchDamaged


def _end_us(write: Wrote) -> float:
    """Until when the write was under way; one of unknown fate may still be."""
    return inf if write.outcome is CallOutcome.UNKNOWN else write.at_us


class Excuses:
    """Answers whether something that went wrong was to be expected."""

    def __init__(self, given: Iterable[Excuse] = ()) -> None:
        self._elections: dict[str, list[ElectionHeld]] = defaultdict(list)
        self._tails: dict[str, list[TailLost]] = defaultdict(list)
        self._retrying: set[str] = set()
        self._forgotten: dict[str, list[BatchesForgotten]] = defaultdict(list)
        self._damages: dict[str, list[BatchDamaged]] = defaultdict(list)
        for excuse in given:
            if isinstance(excuse, ElectionHeld):
                self._elections[excuse.partition].append(excuse)
            elif isinstance(excuse, TailLost):
                self._tails[excuse.partition].append(excuse)
            elif isinstance(excuse, BatchesForgotten):
                self._forgotten[excuse.partition].append(excuse)
            elif isinstance(excuse, BatchDamaged):
                self._damages[excuse.partition].append(excuse)
            else:
                self._retrying.add(excuse.writer)

    def committed_may_go(
        self, partition: str, offset: int, *, since_us: int, until_us: int | None = None
    ) -> bool:
        """Whether a record that was committed since that time may be absent by now."""
        for elected in self._between(partition, since_us, until_us):
            if elected.kept_end_offset > offset or elected.election is ElectionSource.CLEAN:
                continue
            if elected.election is ElectionSource.UNCLEAN or self._lost_its_tail(elected, offset):
                return True
        return False

    def uncommitted_may_go(self, partition: str, offset: int, *, since_us: int) -> bool:
        """Whether a record that only a leader held since that time may be absent by now."""
        return any(
            elected.kept_end_offset <= offset
            and since_us <= max(elected.at_us, elected.believed_until_us)
            and (elected.leader != elected.predecessor or self._lost(elected, offset, since_us))
            for elected in self._elections.get(partition, ())
        )

    def had_successor(self, partition: str, leader_epoch: int, *, by_us: int) -> bool:
        """Whether somebody was elected after that leader epoch, by that time."""
        return any(
            elected.leader_epoch > leader_epoch and elected.at_us <= by_us
            for elected in self._elections.get(partition, ())
        )

    def was_damaged(self, partition: str, offset: int, *, since_us: int, until_us: int) -> bool:
        """Whether a replica had bad bytes at this offset at any time between these."""
        return any(
            damage.start_offset <= offset < damage.end_offset
            and damage.at_us <= until_us
            and (damage.until_us is None or damage.until_us >= since_us)
            for damage in self._damages.get(partition, ())
        )

    def retries(self, writer: str) -> bool:
        return writer in self._retrying

    def may_repeat_under_new_epoch(self, write: Wrote, writes: Iterable[Wrote]) -> bool:
        """Whether a replica forgot a batch of its writer that was under way together with this one.

        1. Batches 18 and 20 are stored, their answers are lost. A follower restarts from a
           snapshot, which knows 20 and no longer 18; then 21 is stored.
        2. That follower is elected. The writer sends 18 again, and is refused.
        3. It raises its producer epoch, and repeats all that had no outcome: also 21, which nobody
           has forgotten.
        """
        return any(
            self._is_forgotten(other)
            for other in writes
            if (other.writer, other.partition) == (write.writer, write.partition)
            and other.invoked_us <= _end_us(write)
            and write.invoked_us <= _end_us(other)
        )

    def _is_forgotten(self, write: Wrote) -> bool:
        """Whether a replica forgot the batch while its writer still tried to have it written."""
        return any(
            write.invoked_us <= forgotten.at_us <= _end_us(write)
            for forgotten in self._forgotten.get(write.partition, ())
        )

    def _between(self, partition: str, since_us: int, until_us: int | None) -> list[ElectionHeld]:
        return [
            elected
            for elected in self._elections.get(partition, ())
            if max(elected.at_us, elected.believed_until_us) >= since_us
            and (until_us is None or elected.at_us <= until_us)
        ]

    def _lost(self, elected: ElectionHeld, offset: int, since_us: int) -> bool:
        """Whether the winner lost its own copy of a record that it had at that time or later."""
        return any(
            lost.broker_id == elected.leader
            and lost.floor_offset <= offset
            and since_us <= lost.at_us <= elected.at_us
            for lost in self._tails.get(elected.partition, ())
        )

    def _lost_its_tail(self, elected: ElectionHeld, offset: int) -> bool:
        return any(
            lost.broker_id == elected.leader
            and lost.floor_offset <= offset
            and lost.at_us <= elected.at_us
            and (lost.until_us is None or lost.until_us >= elected.at_us)
            for lost in self._tails.get(elected.partition, ())
        )
