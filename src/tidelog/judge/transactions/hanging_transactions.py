"""No transaction hangs once all is quiet: readers of committed records come to the end."""

from __future__ import annotations

from tidelog.judge.anomalies import HANGING_TRANSACTION, Anomaly
from tidelog.judge.transactions.transaction_history import FencesAtRest, TransactionHistory


def hanging_transaction(history: TransactionHistory) -> list[Anomaly]:
    """Replicas whose last stable offset is behind the high watermark at rest."""
    return [
        HANGING_TRANSACTION.found(
            at_us=rest.at_us,
            partition=rest.partition,
            node=rest.node,
            last_stable_offset=rest.last_stable_offset,
            high_watermark=rest.high_watermark,
        )
        for rest in history
        if isinstance(rest, FencesAtRest) and rest.last_stable_offset < rest.high_watermark
    ]
