"""Corrupt: a reader was given a batch with a wrong checksum although the medium was fine."""

from __future__ import annotations

from tidelog.judge.history import Anomaly, History, Read
from tidelog.judge.lone_broker.ledger import walk


def corrupt(history: History) -> list[Anomaly]:
    """Only a batch that the medium damaged may reach a reader with a wrong checksum (X-33)."""
    return [
        Anomaly(
            check="corrupt",
            at_us=operation.at_us,
            partition=operation.partition,
            evidence=f"bad checksum at offset {operation.corrupt_offset}",
        )
        for operation, ledger in walk(history)
        if isinstance(operation, Read)
        and operation.corrupt_offset is not None
        and not ledger.is_damaged(operation.corrupt_offset)
    ]
