"""Consume, transform, produce: every committed record of the source has one result, no more.

Judged by what read_committed readers were given of the source and the target; those who came to the
end of every partition decide about what is missing.
"""

from __future__ import annotations

from collections import Counter

from tidelog.judge.anomalies import (
    NOT_TRANSFORMED,
    TRANSFORMED_FROM_NOTHING,
    TRANSFORMED_TWICE,
    Anomaly,
)
from tidelog.judge.transactions.transaction_history import (
    TransactionalRead,
    TransactionHistory,
    Transformed,
)

Located = tuple[str, int, str]
"""Partition, offset, payload."""


def transformed_once(history: TransactionHistory) -> list[Anomaly]:
    """Records with several results, with none, and results without a record."""
    found: list[Anomaly] = []
    for transform in history:
        if isinstance(transform, Transformed):
            found += _judge(transform, history)
    return found


def _judge(transform: Transformed, history: TransactionHistory) -> list[Anomaly]:
    sources = _read(history, transform.source)
    results = _read(history, transform.target)
    made_of = Counter(transform.made_of(payload) for _, _, payload in results)
    found = [
        TRANSFORMED_TWICE.found(
            at_us=transform.at_us,
            partition="-",
            group=transform.group,
            payload=payload,
            count=count,
        )
        for payload, count in made_of.items()
        if count > 1
    ]
    names = {payload for _, _, payload in sources}
    found += [
        TRANSFORMED_FROM_NOTHING.found(
            at_us=transform.at_us, partition="-", group=transform.group, payload=payload
        )
        for payload in made_of
        if payload not in names
    ]
    found += [
        NOT_TRANSFORMED.found(
            at_us=transform.at_us,
            partition=partition,
            group=transform.group,
            payload=payload,
            offset=offset,
        )
        for partition, offset, payload in sorted(sources)
        if payload not in made_of
    ]
    return found


def _read(history: TransactionHistory, partitions: tuple[str, ...]) -> set[Located]:
    return {
        (read.partition, record.offset, record.payload)
        for read in history
        if isinstance(read, TransactionalRead)
        and read.is_committed
        and read.partition in partitions
        for record in read.records
    }
