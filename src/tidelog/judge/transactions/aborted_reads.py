"""A transaction that nobody committed is seen by no read_committed reader."""

from __future__ import annotations

from tidelog.judge.anomalies import ABORTED_BUT_READ, Anomaly
from tidelog.judge.transactions.transaction_facts import Ending, TransactionEndings, written
from tidelog.judge.transactions.transaction_history import TransactionalRead, TransactionHistory


def aborted_but_read(history: TransactionHistory) -> list[Anomaly]:
    """Records of transactions that were aborted, or never asked to be committed."""
    endings = TransactionEndings(history)
    known = written(history)
    found = []
    for read in history:
        if not isinstance(read, TransactionalRead) or not read.is_committed:
            continue
        for record in read.records:
            transaction = known[record.payload][0] if record.payload in known else None
            if transaction is not None and endings.of(transaction) is Ending.ABORTED:
                found.append(
                    ABORTED_BUT_READ.found(
                        at_us=read.at_us,
                        partition=read.partition,
                        reader=read.reader,
                        transaction=transaction,
                        payload=record.payload,
                        offset=record.offset,
                    )
                )
    return found
