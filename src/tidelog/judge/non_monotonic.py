"""Non-monotonic: for one client, its position or the end of the log went back by itself."""

from __future__ import annotations

from tidelog.judge.excuses import Excuses
from tidelog.judge.history import Anomaly, EndAsked, History, Moved, Read


def non_monotonic(history: History, excuses: Excuses) -> list[Anomaly]:
    """A reader's offsets grow until it moves, and the end that a client is told never shrinks.

    The high watermark of a Fetch may lag behind after an election (N10), so it is not held against
    anybody; the end in ListOffsets may not: a new leader refuses to tell it until it knows.
    """
    positions: dict[tuple[str, str], int] = {}
    ends: dict[tuple[str, str], EndAsked] = {}
    found: list[Anomaly] = []
    for operation in history:
        if isinstance(operation, Moved):
            positions[(operation.reader, operation.partition)] = operation.offset
        elif isinstance(operation, Read):
            found.extend(_backwards(operation, positions))
        elif isinstance(operation, EndAsked):
            key = (operation.reader, operation.partition)
            before = ends.get(key)
            if before is not None and _went_back(before, operation, excuses):
                found.append(_end_went_back(operation, before.end_offset))
            ends[key] = operation
    return found


def _backwards(read: Read, positions: dict[tuple[str, str], int]) -> list[Anomaly]:
    key = (read.reader, read.partition)
    found = []
    for record in read.records:
        position = positions.get(key, 0)
        if record.offset < position:
            found.append(
                Anomaly(
                    check="non-monotonic",
                    at_us=read.at_us,
                    partition=read.partition,
                    evidence=f"{read.reader} was at {position} and was given {record.offset}",
                )
            )
        positions[key] = record.offset + 1
    return found


def _went_back(before: EndAsked, after: EndAsked, excuses: Excuses) -> bool:
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


def _is_earlier(after: EndAsked, before: EndAsked) -> bool:
    return (
        after.leader_epoch is not None
        and before.leader_epoch is not None
        and after.leader_epoch < before.leader_epoch
    )


def _end_went_back(asked: EndAsked, before: int) -> Anomaly:
    return Anomaly(
        check="non-monotonic",
        at_us=asked.at_us,
        partition=asked.partition,
        evidence=f"{asked.reader} was told the end {before}, then {asked.end_offset}",
    )
