"""A history of transactions: what producers, readers and groups were answered, as data.

Operations stand in the order of their completion, and outcomes are those of judge/history.py. Every
transaction has a name of its own, whatever its transactional id, and so has every record. A write
or an end that was asked several times stands here once for each time.

Only a request can commit. A transaction for which no producer asked so is aborted, by its producer,
by a later one or by the clock: it must never count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tidelog.judge.history import CallOutcome


class ProducerIdentity(NamedTuple):
    """A producer id and epoch."""

    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerBegan:
    """An InitProducerId was answered: whoever had the transactional id before is fenced."""

    at_us: int
    invoked_us: int
    producer: str
    """The instance; several may have the same transactional id, one after the other."""
    transactional_id: str
    identity: ProducerIdentity


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionBegan:
    """A producer's next records are in this transaction."""

    at_us: int
    producer: str
    transactional_id: str
    transaction: str
    identity: ProducerIdentity


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionalWrite:
    """One try to write one batch in a transaction."""

    at_us: int
    invoked_us: int
    transaction: str
    partition: str
    payloads: tuple[str, ...]
    outcome: CallOutcome
    base_offset: int | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsInTransaction:
    """One try to commit a group's offset as part of a transaction; its name is the metadata."""

    at_us: int
    invoked_us: int
    transaction: str
    group: str
    partition: str
    offset: int
    outcome: CallOutcome
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionEnd:
    """One try to commit or to abort."""

    at_us: int
    invoked_us: int
    transaction: str
    is_commit: bool
    outcome: CallOutcome
    error: str | None = None


class ReadRecord(NamedTuple):
    """A record as a reader's program gets it: those of aborted transactions are left out."""

    offset: int
    payload: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionalRead:
    """One answer to a reader, and where it goes on. Readers begin at 0 and never seek."""

    at_us: int
    invoked_us: int
    reader: str
    partition: str
    is_committed: bool
    """Whether it reads with isolation level read_committed."""
    start_offset: int
    next_offset: int
    records: tuple[ReadRecord, ...]
    last_stable_offset: int
    high_watermark: int
    leader_epoch: int | None
    """In which the broker leads; None: a follower answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOffsetRead:
    """A group's stable offset, as somebody was given it, and the transaction that wrote it."""

    at_us: int
    invoked_us: int
    reader: str
    group: str
    partition: str
    offset: int | None
    transaction: str | None
    from_deposed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FencesAtRest:
    """A replica's last stable offset and high watermark, long after the last fault."""

    at_us: int
    node: int
    partition: str
    last_stable_offset: int
    high_watermark: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformed:
    """Every record of the source becomes one of the target, under a name made of its own."""

    at_us: int
    group: str
    source: tuple[str, ...]
    target: tuple[str, ...]
    prefix: str
    """The name of a result is this, the name of what it was made of, and behind an @ which try."""

    def made_of(self, payload: str) -> str:
        return payload.removeprefix(self.prefix).rpartition("@")[0]


TransactionOperation = (
    ProducerBegan
    | TransactionBegan
    | TransactionalWrite
    | OffsetsInTransaction
    | TransactionEnd
    | TransactionalRead
    | GroupOffsetRead
    | FencesAtRest
    | Transformed
)
TransactionHistory = Sequence[TransactionOperation]
