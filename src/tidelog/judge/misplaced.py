"""Misplaced: an ok answer names an offset, but the record stands elsewhere (D4-I7)."""

from __future__ import annotations

from tidelog.judge.excuses import NO_EXCUSES, Excuses
from tidelog.judge.history import Acks, Anomaly, FinalLog, History, Outcome, Wrote


def misplaced(history: History, excuses: Excuses = NO_EXCUSES) -> list[Anomaly]:
    """A write that was answered ok stands where the answer said, or nowhere.

    This is what a duplicate that is answered with another offset than its first looks like. An
    election that may lose the record may also bring another copy back: an unclean leader can hold
    an earlier attempt elsewhere.
    """
    places: dict[tuple[str, str], list[int]] = {}
    for operation in history:
        if isinstance(operation, FinalLog):
            for record in operation.records:
                places.setdefault((operation.partition, record.payload), []).append(record.offset)
    found = []
    for operation in history:
        if not isinstance(operation, Wrote) or operation.outcome is not Outcome.OK:
            continue
        if operation.base_offset is None:
            continue
        for offset, payload in enumerate(operation.payloads, operation.base_offset):
            standing = places.get((operation.partition, payload), [offset])
            if offset not in standing and not _may_have_moved(operation, offset, excuses):
                found.append(
                    Anomaly(
                        check="misplaced",
                        at_us=operation.at_us,
                        partition=operation.partition,
                        evidence=f"{payload!r} was answered with {offset}, but is at {standing[0]}",
                    )
                )
    return found


def _may_have_moved(write: Wrote, offset: int, excuses: Excuses) -> bool:
    if write.acks is Acks.ALL:
        return excuses.committed_may_go(write.partition, offset, since_us=write.invoked_us)
    return excuses.uncommitted_may_go(write.partition, offset, since_us=write.invoked_us)
