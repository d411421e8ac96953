"""Changed: an offset that held one record was later seen to hold another (D4-O9)."""

from __future__ import annotations

from tidelog.judge.history import Anomaly, History
from tidelog.judge.lone_broker.ledger import ledgers_after


def changed(history: History) -> list[Anomaly]:
    """Offsets are immutable, unless an excuse took the suffix that held them."""
    return [
        Anomaly(
            check="changed",
            at_us=each.at_us,
            partition=partition,
            evidence=f"offset {each.offset} held {each.before!r}, then {each.after!r}",
        )
        for partition, ledger in ledgers_after(history).items()
        for each in ledger.contradictions
    ]
