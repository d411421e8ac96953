"""Producer ids: the same id was given to two producers (D4-I3, N23)."""

from __future__ import annotations

from tidelog.judge.excuses import NO_EXCUSES, Excuses
from tidelog.judge.history import Anomaly, History, ProducerIdGiven


def producer_id_reused(history: History, excuses: Excuses = NO_EXCUSES) -> list[Anomaly]:
    """Unique for ever, over every restart."""
    given: set[tuple[int, int]] = set()
    found = []
    for operation in history:
        if isinstance(operation, ProducerIdGiven):
            identity = (operation.producer_id, operation.producer_epoch)
            if identity in given:
                found.append(
                    Anomaly(
                        check="producer id reused",
                        at_us=operation.at_us,
                        partition="-",
                        evidence=f"producer id {operation.producer_id} was given twice",
                    )
                )
            given.add(identity)
    return found
