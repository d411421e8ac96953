"""What follows from a history: how each transaction ended, and what each reader has seen."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from tidelog.judge.history import CallOutcome
from tidelog.judge.transactions.transaction_history import (
    TransactionalRead,
    TransactionalWrite,
    TransactionEnd,
    TransactionHistory,
)

ReaderPosition = tuple[str, str]
"""A reader and a partition."""


class Ending(Enum):
    """What its producer knows of a transaction."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


class TransactionEndings:
    """By the name of a transaction."""

    def __init__(self, history: TransactionHistory) -> None:
        self._commits: dict[str, list[TransactionEnd]] = {}
        for operation in history:
            if isinstance(operation, TransactionEnd) and operation.is_commit:
                self._commits.setdefault(operation.transaction, []).append(operation)

    def of(self, transaction: str) -> Ending:
        """A commit that was refused each time it was asked did not happen."""
        outcomes = {commit.outcome for commit in self._commits.get(transaction, ())}
        if CallOutcome.OK in outcomes:
            return Ending.COMMITTED
        return Ending.UNKNOWN if CallOutcome.UNKNOWN in outcomes else Ending.ABORTED

    def first_commit_us(self, transaction: str) -> int | None:
        """When its commit was asked for the first time."""
        return min(
            (commit.invoked_us for commit in self._commits.get(transaction, ())), default=None
        )


class ReadersOfTransactions:
    """How far each reader has come in each partition, and which records it was given."""

    def __init__(self, history: TransactionHistory) -> None:
        self.passed: dict[ReaderPosition, int] = {}
        self.seen: dict[ReaderPosition, dict[str, int]] = {}
        """Payloads and their offsets."""
        self.committed: set[ReaderPosition] = set()
        """Those with isolation level read_committed."""
        self.at_us = 0
        for read in history:
            if isinstance(read, TransactionalRead):
                key = (read.reader, read.partition)
                self.passed[key] = max(self.passed.get(key, 0), read.next_offset)
                seen = self.seen.setdefault(key, {})
                for record in read.records:
                    seen.setdefault(record.payload, record.offset)
                if read.is_committed:
                    self.committed.add(key)
                self.at_us = max(self.at_us, read.at_us)

    def at(self, partition: str) -> Iterator[ReaderPosition]:
        return (key for key in self.passed if key[1] == partition)


def written(history: TransactionHistory) -> dict[str, tuple[str, str, int | None]]:
    """Of each payload: its transaction, its partition, and its offset if it was answered ok."""
    found: dict[str, tuple[str, str, int | None]] = {}
    for write in history:
        if isinstance(write, TransactionalWrite):
            for at, payload in enumerate(write.payloads):
                known = found.get(payload)
                offset = known[2] if known is not None else None
                if write.outcome is CallOutcome.OK and write.base_offset is not None:
                    offset = write.base_offset + at
                found[payload] = (write.transaction, write.partition, offset)
    return found
