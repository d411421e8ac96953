"""A committed transaction is seen whole, by every reader and in every partition, and once."""

from __future__ import annotations

from tidelog.judge.anomalies import DUPLICATED, HIDDEN, UNEXPECTED, Anomaly
from tidelog.judge.transactions.transaction_facts import (
    Ending,
    ReadersOfTransactions,
    TransactionEndings,
    written,
)
from tidelog.judge.transactions.transaction_history import TransactionalRead, TransactionHistory


def committed_but_hidden(history: TransactionHistory) -> list[Anomaly]:
    """Records of committed transactions that a reader has passed without being given them."""
    endings = TransactionEndings(history)
    readers = ReadersOfTransactions(history)
    found = []
    for payload, (transaction, partition, offset) in written(history).items():
        if offset is None or endings.of(transaction) is not Ending.COMMITTED:
            continue
        found += [
            HIDDEN.found(
                at_us=readers.at_us,
                partition=partition,
                reader=key[0],
                transaction=transaction,
                payload=payload,
                offset=offset,
            )
            for key in readers.at(partition)
            if readers.passed[key] > offset and payload not in readers.seen[key]
        ]
    return found


def read_twice(history: TransactionHistory) -> list[Anomaly]:
    """Records that a reader was given at two offsets."""
    first: dict[tuple[str, str], int] = {}
    found = []
    for read in _reads(history):
        for record in read.records:
            before = first.setdefault((read.reader, record.payload), record.offset)
            if before != record.offset:
                found.append(
                    DUPLICATED.found(
                        at_us=read.at_us,
                        partition=read.partition,
                        payload=record.payload,
                        first_offset=before,
                        offset=record.offset,
                    )
                )
    return found


def read_from_nowhere(history: TransactionHistory) -> list[Anomaly]:
    """Records that nobody wrote there."""
    known = written(history)
    return [
        UNEXPECTED.found(
            at_us=read.at_us,
            partition=read.partition,
            payload=record.payload,
            offset=record.offset,
        )
        for read in _reads(history)
        for record in read.records
        if record.payload not in known or known[record.payload][1] != read.partition
    ]


def _reads(history: TransactionHistory) -> list[TransactionalRead]:
    return [operation for operation in history if isinstance(operation, TransactionalRead)]
