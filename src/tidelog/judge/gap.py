"""Gap: a reader was led past a record that stands in the log."""

from __future__ import annotations

from bisect import bisect_left

from tidelog.judge.excuses import Excuses
from tidelog.judge.history import Anomaly, FinalLog, History, Moved, Read


def gap(history: History, excuses: Excuses) -> list[Anomaly]:
    """Between two records that follow each other for one reader, the final log has none.

    Only a `Moved` lets a reader go on elsewhere. Offsets themselves may have holes; records not.
    """
    finals = {op.partition: op for op in history if isinstance(op, FinalLog)}
    offsets = {
        partition: [record.offset for record in final.records]
        for partition, final in finals.items()
    }
    positions: dict[tuple[str, str], int] = {}
    found = []
    for operation in history:
        if isinstance(operation, Moved):
            positions[(operation.reader, operation.partition)] = operation.offset
        elif isinstance(operation, Read) and operation.records:
            key = (operation.reader, operation.partition)
            position = positions.get(key, operation.start_offset)
            standing = offsets.get(operation.partition, [])
            for record in operation.records:
                skipped = _between(standing, position, record.offset)
                for offset in skipped:
                    if not excuses.committed_may_go(
                        operation.partition, offset, since_us=operation.invoked_us
                    ):
                        found.append(_anomaly(operation, offset, record.offset))
                        break
                position = record.offset + 1
            positions[key] = position
    return found


def _between(standing: list[int], start_offset: int, end_offset: int) -> list[int]:
    """The offsets of the log in [start, end)."""
    if start_offset >= end_offset:
        return []
    return standing[bisect_left(standing, start_offset) : bisect_left(standing, end_offset)]


def _anomaly(read: Read, skipped: int, given: int) -> Anomaly:
    return Anomaly(
        check="gap",
        at_us=read.at_us,
        partition=read.partition,
        evidence=f"{read.reader} was given offset {given}, but never {skipped} before it",
    )
