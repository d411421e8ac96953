"""Lost: answered ok, yet absent from the final log, and no excuse covers it."""

from __future__ import annotations

from tidelog.judge.history import Anomaly, FinalLog, History
from tidelog.judge.lone_broker.ledger import walk


def lost(history: History) -> list[Anomaly]:
    """Every firm fact at or above the start of the final log must be in it."""
    found: list[Anomaly] = []
    for operation, ledger in walk(history):
        if not isinstance(operation, FinalLog):
            continue
        present = {record.offset for record in operation.records}
        end_offset = max([operation.end_offset, *(offset + 1 for offset in ledger.facts)])
        found.extend(
            Anomaly(
                check="lost",
                at_us=operation.at_us,
                partition=operation.partition,
                evidence=f"offset {offset} held {ledger.facts[offset].payload!r}; "
                f"the final log is [{operation.log_start_offset}, {operation.end_offset})",
            )
            for offset in ledger.firm_offsets(operation.log_start_offset, end_offset)
            if offset not in present
        )
    return found
