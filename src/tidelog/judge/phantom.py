"""Phantom: a reader was given a record that nobody wrote, or whose write was refused."""

from __future__ import annotations

from tidelog.judge.excuses import NO_EXCUSES, Excuses
from tidelog.judge.history import Anomaly, FinalLog, History, Outcome, Read, Wrote


def phantom(history: History, excuses: Excuses = NO_EXCUSES) -> list[Anomaly]:
    """Whatever is read was once written to that partition, and not refused."""
    outcomes: dict[tuple[str, str], Outcome] = {}
    for operation in history:
        if isinstance(operation, Wrote):
            for payload in operation.payloads:
                outcomes[(operation.partition, payload)] = operation.outcome
    found = []
    for operation in history:
        if not isinstance(operation, Read | FinalLog):
            continue
        for record in operation.records:
            outcome = outcomes.get((operation.partition, record.payload))
            if outcome is None or outcome is Outcome.REFUSED:
                told = "never written here" if outcome is None else "refused"
                found.append(
                    Anomaly(
                        check="phantom",
                        at_us=operation.at_us,
                        partition=operation.partition,
                        evidence=f"{record.payload!r} at offset {record.offset} was {told}",
                    )
                )
    return found
