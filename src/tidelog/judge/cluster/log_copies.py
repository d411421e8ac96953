"""Copies of logs: the batches of every replica's log, and of the one log that is committed.

A copy is fed by what was cut and what was appended, so keeping it costs only what is new. How far
a replica agrees with the committed log is remembered, and looked at again from there.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidelog.judge.cluster.facts import ObservedBatch


class LogCopy:
    """One replica's log: its batches by base offset, in order."""

    __slots__ = ("agreed_end_offset", "batches", "deleted", "end_offset", "start_offset")

    def __init__(self) -> None:
        self.batches: dict[int, ObservedBatch] = {}
        self.deleted: dict[int, ObservedBatch] = {}
        """Its head as it was: who held something else there has another history."""
        self.start_offset = 0
        self.end_offset = 0
        self.agreed_end_offset = 0
        """Up to here it is known to hold what is committed."""

    def copy(self) -> LogCopy:
        """As it is now."""
        twin = LogCopy()
        twin.batches, twin.deleted = dict(self.batches), dict(self.deleted)
        twin.start_offset, twin.end_offset = self.start_offset, self.end_offset
        return twin

    def cut(self, end_offset: int) -> None:
        """Whatever does not end before this offset is gone."""
        batches = self.batches
        while self.deleted and next(reversed(self.deleted.values())).end_offset > end_offset:
            self.deleted.popitem()
        while batches:
            base_offset, newest = batches.popitem()
            if newest.end_offset <= end_offset:
                batches[base_offset] = newest
                break
        self.end_offset = min(self.end_offset, end_offset)
        self.agreed_end_offset = min(self.agreed_end_offset, self.end_offset)
        if batches and self.end_offset > newest.end_offset:
            self.end_offset = newest.end_offset

    def append(self, batches: Iterable[ObservedBatch]) -> None:
        for batch in batches:
            if not self.batches and batch.base_offset != self.end_offset:
                self.deleted.clear()
                self.start_offset = self.agreed_end_offset = batch.base_offset
            self.batches[batch.base_offset] = batch
            self.end_offset = batch.end_offset

    def start_at(self, start_offset: int) -> None:
        """The head was deleted: batches that end before this offset are gone."""
        self.start_offset = start_offset
        for base_offset in list(self.batches):
            if self.batches[base_offset].end_offset > start_offset:
                break
            self.deleted[base_offset] = self.batches.pop(base_offset)
        self.end_offset = max(self.end_offset, start_offset)
        self.agreed_end_offset = max(self.agreed_end_offset, self.first_base_offset)

    @property
    def first_base_offset(self) -> int:
        return next(iter(self.batches), self.start_offset)

    @property
    def first_known_offset(self) -> int:
        return next(iter(self.deleted), self.first_base_offset)

    def known(self, base_offset: int) -> ObservedBatch | None:
        """The batch that is there, or was there until its deletion."""
        return self.batches.get(base_offset) or self.deleted.get(base_offset)

    def inherit(self, predecessor: LogCopy) -> None:
        """Where it began later than its predecessor, its past is its predecessor's."""
        first_offset = self.first_known_offset
        past = {**predecessor.deleted, **predecessor.batches}
        earlier = {base: batch for base, batch in past.items() if batch.end_offset <= first_offset}
        self.deleted = {**earlier, **self.deleted}

    @property
    def newest(self) -> ObservedBatch | None:
        if not self.batches:
            return None
        return self.batches[next(reversed(self.batches))]

    def disagree(self) -> None:
        """What is committed has changed: compare again from the start."""
        self.agreed_end_offset = self.first_base_offset


class CommittedLog:
    """The records that must stay: everything that was ever below a leader's high watermark."""

    __slots__ = ("batches", "end_offset", "least_minimum", "since_leader_epoch")

    def __init__(self) -> None:
        self.batches: dict[int, ObservedBatch] = {}
        self.end_offset = 0
        self.since_leader_epoch = -1
        """Leaders before this one were overruled uncleanly; what they commit counts no more."""
        self.least_minimum: int | None = None
        """With how few replicas in sync any of it may have been committed."""

    def extend(self, log_copy: LogCopy, end_offset: int) -> None:
        """A leader committed its log up to this offset."""
        if not self.batches and log_copy.first_base_offset > self.end_offset:
            self.end_offset = log_copy.first_base_offset
        while self.end_offset < end_offset:
            batch = log_copy.batches.get(self.end_offset)
            if batch is None or batch.end_offset > end_offset:
                self.end_offset = max(self.end_offset, min(end_offset, log_copy.end_offset))
                return
            self.batches[batch.base_offset] = batch
            self.end_offset = batch.end_offset

    def cut(self, end_offset: int, *, leader_epoch: int) -> None:
        """An excuse: everything from here on may go."""
        for base_offset in [base for base in self.batches if base >= end_offset]:
            del self.batches[base_offset]
        self.end_offset = min(self.end_offset, end_offset)
        self.since_leader_epoch = leader_epoch


def agreement(log_copy: LogCopy, committed: CommittedLog) -> int:
    """Up to where the replica holds the committed log; its deleted head counts as held."""
    offset = log_copy.agreed_end_offset
    while offset < committed.end_offset:
        mine = log_copy.batches.get(offset)
        if mine is None or mine != committed.batches.get(offset, mine):
            break
        offset = mine.end_offset
    log_copy.agreed_end_offset = offset
    return offset


def common_end(one: LogCopy, other: LogCopy) -> int:
    """The end of the longest common prefix; a deleted head is compared as it was."""
    offset = max(one.first_known_offset, other.first_known_offset)
    while True:
        mine, theirs = one.known(offset), other.known(offset)
        if mine is None or theirs is None or mine != theirs:
            return min(offset, one.end_offset, other.end_offset)
        offset = mine.end_offset
