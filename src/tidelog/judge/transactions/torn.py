"""A transaction whose end is unknown has one outcome: every reader sees all of it, or none."""

from __future__ import annotations

from tidelog.judge.anomalies import TORN_TRANSACTION, Anomaly
from tidelog.judge.transactions.transaction_facts import (
    Ending,
    ReadersOfTransactions,
    TransactionEndings,
    written,
)
from tidelog.judge.transactions.transaction_history import TransactionHistory


def torn_transaction(history: TransactionHistory) -> list[Anomaly]:
    """Transactions of which some read_committed reader saw a record, and one missed a record."""
    endings = TransactionEndings(history)
    readers = ReadersOfTransactions(history)
    seen: dict[str, tuple[str, str]] = {}
    missed: dict[str, tuple[str, str]] = {}
    for payload, (transaction, partition, offset) in written(history).items():
        if endings.of(transaction) is not Ending.UNKNOWN:
            continue
        for key in readers.at(partition):
            if key not in readers.committed:
                continue
            if payload in readers.seen[key]:
                seen.setdefault(transaction, (key[0], payload))
            elif offset is not None and readers.passed[key] > offset:
                missed.setdefault(transaction, (key[0], payload))
    return [
        TORN_TRANSACTION.found(
            at_us=readers.at_us,
            partition="-",
            transaction=transaction,
            reader=seen[transaction][0],
            payload=seen[transaction][1],
            other_reader=missed[transaction][0],
            missed=missed[transaction][1],
        )
        for transaction in seen
        if transaction in missed
    ]
