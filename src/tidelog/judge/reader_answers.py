"""What one reader is given: every record once, in order, and with the right checksum."""

from __future__ import annotations

from bisect import bisect_left

from tidelog.judge.anomalies import CORRUPT, GAP, NON_MONOTONIC, Anomaly
from tidelog.judge.excuses import Excuses
from tidelog.judge.history import EndOffsetListed, FinalLog, History, Moved, RecordsRead


def gap(history: History, excuses: Excuses) -> list[Anomaly]:
    """Between two records that follow each other for one reader, the final log has none.

    Only a `Moved` lets a reader go on elsewhere. Offsets themselves may have holes; records not.
    """
    offsets = {
        op.partition: [record.offset for record in op.records]
        for op in history
        if isinstance(op, FinalLog)
    }
    positions: dict[tuple[str, str], int] = {}
    found = []
    for operation in history:
        if isinstance(operation, Moved):
            positions[(operation.reader, operation.partition)] = operation.offset
        elif isinstance(operation, RecordsRead) and operation.records:
            key = (operation.reader, operation.partition)
            position = positions.get(key, operation.start_offset)
            in_log = offsets.get(operation.partition, [])
            for record in operation.records:
                skipped = _first_skipped(operation, in_log, position, record.offset, excuses)
                if skipped is not None:
                    found.append(_gap(operation, skipped, record.offset))
                position = record.offset + 1
            positions[key] = position
    return found


def _first_skipped(
    read: RecordsRead, in_log: list[int], start_offset: int, end_offset: int, excuses: Excuses
) -> int | None:
    """The first offset of the log in [start, end) that no excuse covers."""
    if start_offset >= end_offset:
        return None
    for offset in in_log[bisect_left(in_log, start_offset) : bisect_left(in_log, end_offset)]:
        if not excuses.committed_may_go(read.partition, offset, since_us=read.invoked_us):
            return offset
    return None


def _gap(read: RecordsRead, skipped_offset: int, offset: int) -> Anomaly:
    return GAP.found(
        at_us=read.at_us,
        partition=read.partition,
        reader=read.reader,
        offset=offset,
        skipped_offset=skipped_offset,
    )


def non_monotonic(history: History, excuses: Excuses) -> list[Anomaly]:
    """A reader's offsets grow until it moves, and the end that a client is given never shrinks.

    The high watermark of a Fetch may lag behind after an election (N10), so it is not held against
    anybody; the end in ListOffsets may not: a new leader refuses to give it until it knows.
    """
    positions: dict[tuple[str, str], int] = {}
    ends: dict[tuple[str, str], EndOffsetListed] = {}
    found: list[Anomaly] = []
    for operation in history:
        if isinstance(operation, Moved):
            positions[(operation.reader, operation.partition)] = operation.offset
        elif isinstance(operation, RecordsRead):
            found.extend(_positions_that_went_back(operation, positions))
        elif isinstance(operation, EndOffsetListed):
            key = (operation.reader, operation.partition)
            before = ends.get(key)
            if before is not None and _end_went_back(before, operation, excuses):
                found.append(
                    NON_MONOTONIC.found(
                        at_us=operation.at_us,
                        partition=operation.partition,
                        reader=operation.reader,
                        end_before=before.end_offset,
                        end_offset=operation.end_offset,
                    )
                )
            ends[key] = operation
    return found


def _positions_that_went_back(
    read: RecordsRead, positions: dict[tuple[str, str], int]
) -> list[Anomaly]:
    key = (read.reader, read.partition)
    found = []
    for record in read.records:
        position = positions.get(key, 0)
        if record.offset < position:
            found.append(
                NON_MONOTONIC.found(
                    at_us=read.at_us,
                    partition=read.partition,
                    reader=read.reader,
                    position=position,
                    offset=record.offset,
                )
            )
        positions[key] = record.offset + 1
    return found


def _end_went_back(before: EndOffsetListed, after: EndOffsetListed, excuses: Excuses) -> bool:
    if after.end_offset >= before.end_offset or after.invoked_us < before.at_us:
        return False
    if after.known_leader_epoch is None and _is_earlier(after, before):
        return False  # it did not say what it knew, and asked a deposed leader
    return not excuses.committed_may_go(
        after.partition,
        before.end_offset - 1,
        since_us=before.invoked_us,
        until_us=after.at_us,
    )


def _is_earlier(after: EndOffsetListed, before: EndOffsetListed) -> bool:
    return (
        after.leader_epoch is not None
        and before.leader_epoch is not None
        and after.leader_epoch < before.leader_epoch
    )


def corrupt(history: History, excuses: Excuses) -> list[Anomaly]:
    """A wrong checksum reaches readers only from the replica whose medium decayed, while it did:
    the others refuse it (X-33)."""
    return [
        CORRUPT.found(
            at_us=operation.at_us,
            partition=operation.partition,
            reader=operation.reader,
            offset=operation.corrupt_offset,
        )
        for operation in history
        if isinstance(operation, RecordsRead)
        and operation.corrupt_offset is not None
        and not excuses.was_damaged(
            operation.partition,
            operation.corrupt_offset,
            since_us=operation.invoked_us,
            until_us=operation.at_us,
        )
    ]
