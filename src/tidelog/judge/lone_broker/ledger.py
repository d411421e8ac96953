"""The ledger: what is known about one partition's log, offset by offset, while a history goes by.

A fact is firm (it must hold from now on) or in doubt (it held before an excuse, and may be gone).
Loss takes a suffix, so facts in doubt settle each other: whoever meets the old record at an offset
makes everything in doubt before it firm again; whoever meets a new record there knows that every
old one from there on is gone (and nothing about those before: a write of unknown fate may have
taken their place).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tidelog.judge.history import (
    CallOutcome,
    FinalLog,
    HeadDeleted,
    History,
    MediumDamaged,
    OffsetRefused,
    PowerLost,
    RecordsRead,
    Seen,
    Survives,
    Wrote,
)

PartitionOperation = (
    Wrote | RecordsRead | OffsetRefused | FinalLog | PowerLost | MediumDamaged | HeadDeleted
)


@dataclass(slots=True)
class Fact:
    """A record at an offset."""

    payload: str
    survives: Survives
    since_us: int
    """When somebody first knew it."""
    doubted_by: int | None = None
    """The number of the excuse that put it in doubt; None: it is firm."""

    @property
    def is_firm(self) -> bool:
        return self.doubted_by is None


@dataclass(frozen=True, slots=True)
class LossExcuse:
    """From this moment, what was at or above the floor may be gone."""

    at_us: int
    floor_offset: int
    breaks_promises: bool


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A firm fact met something else at its offset."""

    at_us: int
    offset: int
    before: str
    after: str


class Ledger:
    """Everything that is known about one partition."""

    def __init__(self) -> None:
        self.facts: dict[int, Fact] = {}
        self.contradictions: list[Contradiction] = []
        self.damaged: list[tuple[int, int]] = []
        self.head_offset_max: int | None = 0
        """The log may begin this late; None: as late as it likes."""
        self._excuses: list[LossExcuse] = []
        self._has_doubts = False
        self._at_us = 0
        self._is_write = False
        """Whether the operation at hand put its records at the end of the log."""

    def apply(self, operation: PartitionOperation) -> None:
        """Take in one operation that concerns this partition."""
        self._at_us = operation.at_us
        self._is_write = isinstance(operation, Wrote)
        if isinstance(operation, Wrote):
            self._learn_write(operation)
        elif isinstance(operation, RecordsRead):
            self._learn_all(operation.records, operation.invoked_us, Survives.KILL)
        elif isinstance(operation, FinalLog):
            self._learn_all(operation.records, operation.at_us, Survives.KILL)
        elif isinstance(operation, PowerLost):
            self._unplug(operation)
        elif isinstance(operation, MediumDamaged):
            self._damage(operation)
        elif isinstance(operation, HeadDeleted):
            self._move_head(operation.below_offset)

    def firm_offsets(self, start_offset: int, end_offset: int) -> Iterator[int]:
        """Offsets in [start, end) at which a record must be."""
        for offset in range(start_offset, end_offset):
            fact = self.facts.get(offset)
            if fact is not None and fact.is_firm and not self.is_damaged(offset):
                yield offset

    def is_firm(self, offset: int, *, since_us: int | None = None) -> bool:
        """Whether a record must be there, and was known to be since that time."""
        found = any(True for _ in self.firm_offsets(offset, offset + 1))
        return found and (since_us is None or self.facts[offset].since_us <= since_us)

    def is_damaged(self, offset: int) -> bool:
        return any(start <= offset < end for start, end in self.damaged)

    def may_begin_at(self, log_start_offset: int) -> bool:
        return self.head_offset_max is None or log_start_offset <= self.head_offset_max

    def _learn_write(self, write: Wrote) -> None:
        if write.outcome is CallOutcome.OK and write.base_offset is not None:
            records = tuple(
                Seen(write.base_offset + index, payload)
                for index, payload in enumerate(write.payloads)
            )
            self._learn_all(records, write.invoked_us, write.survives)

    def _learn_all(self, records: tuple[Seen, ...], invoked_us: int, survives: Survives) -> None:
        doubtful_from = self._doubtful_from(invoked_us, survives)
        for record in records:
            is_firm = doubtful_from is None or record.offset < doubtful_from
            self._learn(record.offset, record.payload, survives, is_firm=is_firm)

    def _learn(self, offset: int, payload: str, survives: Survives, *, is_firm: bool) -> None:
        known = self.facts.get(offset)
        if not is_firm:
            if known is None:
                doubted_by = len(self._excuses)
                self.facts[offset] = Fact(payload, survives, self._at_us, doubted_by)
                self._has_doubts = True
            return
        if known is not None and known.payload == payload:
            if survives is Survives.POWER_LOSS:
                known.survives = survives
            if known.doubted_by is not None:
                self._confirm_up_to(offset, known.doubted_by)
            return
        if known is not None and known.is_firm:
            self.contradictions.append(Contradiction(self._at_us, offset, known.payload, payload))
        if self._has_doubts and (known is not None or self._is_write):
            self._forget_doubts_from(offset)
        self.facts[offset] = Fact(payload, survives, self._at_us)

    def _doubtful_from(self, invoked_us: int, survives: Survives) -> int | None:
        """An answer that was under way when the plug was pulled may tell of what is gone."""
        floors = [
            excuse.floor_offset
            for excuse in self._excuses
            if excuse.at_us >= invoked_us and (excuse.breaks_promises or survives is Survives.KILL)
        ]
        return min(floors) if floors else None

    def _unplug(self, unplugged: PowerLost) -> None:
        promised = [
            offset + 1
            for offset, fact in self.facts.items()
            if fact.is_firm and fact.survives is Survives.POWER_LOSS
        ]
        floor = max([unplugged.floor_offset, *promised])
        self._excuses.append(LossExcuse(unplugged.at_us, floor, False))
        if floor == 0:
            # Nothing was durable, not even the first file's name: of such a log the head may be
            # lost and a later part survive, as if the head had been deleted.
            self.facts.clear()
            self.head_offset_max = None
        self._doubt_from(floor)

    def _damage(self, damaged: MediumDamaged) -> None:
        self.damaged.append((damaged.start_offset, damaged.end_offset))
        for offset in range(damaged.start_offset, damaged.end_offset):
            self.facts.pop(offset, None)
        if damaged.may_be_cut:
            self._excuses.append(LossExcuse(damaged.at_us, damaged.start_offset, True))
            self._doubt_from(damaged.start_offset)

    def _doubt_from(self, start_offset: int) -> None:
        for offset, fact in self.facts.items():
            if offset >= start_offset and fact.doubted_by is None:
                fact.doubted_by = len(self._excuses)
                self._has_doubts = True

    def _forget_doubts_from(self, start_offset: int) -> None:
        gone = [
            offset
            for offset, fact in self.facts.items()
            if offset >= start_offset and not fact.is_firm
        ]
        for offset in gone:
            del self.facts[offset]

    def _confirm_up_to(self, survivor: int, doubted_by: int) -> None:
        """Whatever was firm before the survivor when that came into doubt has survived as well.

        Not so what was in doubt already: another record may have been in its place by then.
        """
        doubts = False
        for offset, fact in self.facts.items():
            if fact.doubted_by is None:
                continue
            if offset <= survivor and fact.doubted_by >= doubted_by:
                fact.doubted_by = None
            else:
                doubts = True
        self._has_doubts = doubts

    def _move_head(self, below_offset: int | None) -> None:
        if below_offset is None or self.head_offset_max is None:
            self.head_offset_max = None
        else:
            self.head_offset_max = max(self.head_offset_max, below_offset)


def walk(history: History) -> Iterator[tuple[PartitionOperation, Ledger]]:
    """Each operation that concerns a partition, with that partition's ledger *before* it.

    The ledger takes the operation in when the walk goes on.
    """
    ledgers: dict[str, Ledger] = {}
    for operation in history:
        if isinstance(operation, PartitionOperation):
            ledger = ledgers.setdefault(operation.partition, Ledger())
            yield operation, ledger
            ledger.apply(operation)


def ledgers_after(history: History) -> dict[str, Ledger]:
    """What is known about each partition in the end."""
    return {operation.partition: ledger for operation, ledger in walk(history)}
