"""The last stable offset: no read_committed reader passes it, and it never goes back.

Never within one leader epoch, that is: a new leader may know less of the high watermark for a
while, and the last stable offset is not above it.
"""

from __future__ import annotations

from bisect import bisect_right

from tidelog.judge.anomalies import STABLE_OFFSET_BACK, UNDECIDED_READ, Anomaly
from tidelog.judge.transactions.transaction_facts import TransactionEndings, written
from tidelog.judge.transactions.transaction_history import TransactionalRead, TransactionHistory


def undecided_read(history: TransactionHistory) -> list[Anomaly]:
    """Records given before anybody asked to commit them, or at or above the last stable offset."""
    endings = TransactionEndings(history)
    known = written(history)
    found = []
    for read in history:
        if not isinstance(read, TransactionalRead) or not read.is_committed:
            continue
        if read.next_offset > read.last_stable_offset and read.next_offset > read.start_offset:
            found.append(
                UNDECIDED_READ.found(
                    at_us=read.at_us,
                    partition=read.partition,
                    reader=read.reader,
                    next_offset=read.next_offset,
                    last_stable_offset=read.last_stable_offset,
                )
            )
        for record in read.records:
            if record.payload not in known:
                continue
            transaction = known[record.payload][0]
            first_commit_us = endings.first_commit_us(transaction)
            if first_commit_us is not None and first_commit_us > read.at_us:
                found.append(
                    UNDECIDED_READ.found(
                        at_us=read.at_us,
                        partition=read.partition,
                        reader=read.reader,
                        payload=record.payload,
                        offset=record.offset,
                        transaction=transaction,
                    )
                )
    return found


def stable_offset_back(history: TransactionHistory) -> list[Anomaly]:
    """Answers with a lower last stable offset than one that was given before they were asked."""
    reads = [it for it in history if isinstance(it, TransactionalRead)]
    highest: dict[tuple[str, int], tuple[list[int], list[int]]] = {}
    for read in sorted(reads, key=lambda read: read.at_us):
        if read.leader_epoch is not None:
            times, offsets = highest.setdefault((read.partition, read.leader_epoch), ([], []))
            times.append(read.at_us)
            before = offsets[-1] if offsets else 0
            offsets.append(max(before, read.last_stable_offset))
    found = []
    for read in reads:
        if read.leader_epoch is None:
            continue
        times, offsets = highest[read.partition, read.leader_epoch]
        at = bisect_right(times, read.invoked_us) - 1
        if at >= 0 and offsets[at] > read.last_stable_offset:
            found.append(
                STABLE_OFFSET_BACK.found(
                    at_us=read.at_us,
                    partition=read.partition,
                    reader=read.reader,
                    last_stable_offset=read.last_stable_offset,
                    last_stable_offset_before=offsets[at],
                    leader_epoch=read.leader_epoch,
                )
            )
    return found
