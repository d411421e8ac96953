"""Corrupt: a reader was given a batch with a wrong checksum."""

from __future__ import annotations

from tidelog.judge.excuses import Excuses
from tidelog.judge.history import Anomaly, History, Read


def corrupt(history: History, excuses: Excuses) -> list[Anomaly]:
    """Replicas refuse damaged batches of each other, so none ever reaches a reader (X-33)."""
    return [
        Anomaly(
            check="corrupt",
            at_us=operation.at_us,
            partition=operation.partition,
            evidence=f"{operation.reader}: bad checksum at offset {operation.corrupt_offset}",
        )
        for operation in history
        if isinstance(operation, Read) and operation.corrupt_offset is not None
    ]
