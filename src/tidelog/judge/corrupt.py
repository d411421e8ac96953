"""Corrupt: a reader was given a batch with a wrong checksum."""

from __future__ import annotations

from tidelog.judge.excuses import Excuses
from tidelog.judge.history import Anomaly, History, Read


def corrupt(history: History, excuses: Excuses) -> list[Anomaly]:
    """Only from the replica whose medium decayed, while it did: the others refuse it (X-33)."""
    return [
        Anomaly(
            check="corrupt",
            at_us=operation.at_us,
            partition=operation.partition,
            evidence=f"{operation.reader}: bad checksum at offset {operation.corrupt_offset}",
        )
        for operation in history
        if isinstance(operation, Read)
        and operation.corrupt_offset is not None
        and not excuses.was_damaged(
            operation.partition,
            operation.corrupt_offset,
            since_us=operation.invoked_us,
            until_us=operation.at_us,
        )
    ]
