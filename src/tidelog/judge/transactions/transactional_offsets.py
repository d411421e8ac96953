"""Offsets in transactions count when their transaction is committed, and not before."""

from __future__ import annotations

from tidelog.judge.anomalies import ABORTED_OFFSETS, Anomaly
from tidelog.judge.transactions.transaction_facts import Ending, TransactionEndings
from tidelog.judge.transactions.transaction_history import GroupOffsetRead, TransactionHistory


def aborted_offsets(history: TransactionHistory) -> list[Anomaly]:
    """Offsets given to a group whose transaction is aborted, or was not asked to be committed."""
    endings = TransactionEndings(history)
    found = []
    for read in history:
        if not isinstance(read, GroupOffsetRead) or read.transaction is None:
            continue
        first_commit_us = endings.first_commit_us(read.transaction)
        is_early = first_commit_us is None or first_commit_us > read.at_us
        if is_early or endings.of(read.transaction) is Ending.ABORTED:
            found.append(
                ABORTED_OFFSETS.found(
                    at_us=read.at_us,
                    partition=read.partition,
                    group=read.group,
                    reader=read.reader,
                    offset=read.offset,
                    transaction=read.transaction,
                )
            )
    return found
