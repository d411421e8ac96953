"""Duplicate: a payload that was written once stands twice in a log (D4-I2)."""

from __future__ import annotations

from tidelog.judge.excuses import NO_EXCUSES, Excuses
from tidelog.judge.history import Anomaly, FinalLog, History, Read, Seen, Wrote


def duplicate(history: History, excuses: Excuses = NO_EXCUSES) -> list[Anomaly]:
    """Within one answer, or within the final log, no payload may have two offsets.

    Unless its writer sends again without numbering its records; or under a new producer epoch,
    because a leader forgot the batch.
    """
    writes = {
        payload: operation
        for operation in history
        if isinstance(operation, Wrote)
        for payload in operation.payloads
    }
    found = []
    for operation in history:
        if not isinstance(operation, Read | FinalLog):
            continue
        first: dict[str, Seen] = {}
        for record in operation.records:
            before = first.setdefault(record.payload, record)
            if before.offset == record.offset or _is_excused(
                before, record, writes.get(record.payload), excuses
            ):
                continue
            found.append(
                Anomaly(
                    check="duplicate",
                    at_us=operation.at_us,
                    partition=operation.partition,
                    evidence=f"{record.payload!r} at offsets {before.offset} and {record.offset}",
                )
            )
    return found


def _is_excused(before: Seen, after: Seen, write: Wrote | None, excuses: Excuses) -> bool:
    if write is None:
        return False
    if excuses.retries(write.writer):
        return True
    if before.numbered is None or after.numbered is None:
        return False
    is_new_epoch = (
        before.numbered.producer_id == after.numbered.producer_id
        and before.numbered.producer_epoch < after.numbered.producer_epoch
    )
    return is_new_epoch and excuses.may_repeat_under_new_epoch(write)
