"""Deliveries: what the members of a group were given, against the log and what they committed.

A group that commits after its work gets a record twice when a member dies in between (at least
once); one that commits before it may never get it (at most once). Neither is a mistake of the
cluster, so a story says which it expects, and `delivered_twice` and `skipped` are no invariants.
What was committed before a partition was assigned, and is given out nevertheless, is one.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidelog.judge.anomalies import DELIVERED_AFTER_COMMIT, DELIVERED_TWICE, SKIPPED, Anomaly
from tidelog.judge.groups.group_history import (
    GroupHistory,
    GroupSynced,
    OffsetCommitted,
    OffsetsRemoved,
    RecordDelivered,
)
from tidelog.judge.history import CallOutcome, FinalLog

Key = tuple[str, str]


def delivered_after_commit(history: GroupHistory) -> list[Anomaly]:
    """Records before the offset that was committed when the member was assigned the partition.

    A commit whose outcome nobody knows, or a deletion, may have set the group back: then there is
    no telling where a member has to begin.
    """
    found = []
    start: dict[tuple[str, str, str], int | None] = {}
    committed: dict[Key, int | None] = {}
    for operation in history:
        match operation:
            case OffsetCommitted(outcome=CallOutcome.OK):
                committed[operation.group, operation.partition] = operation.offset
            case OffsetCommitted(outcome=CallOutcome.UNKNOWN):
                committed[operation.group, operation.partition] = None
            case OffsetsRemoved():
                committed = {
                    key: None if key[0] == operation.group else offset
                    for key, offset in committed.items()
                }
            case GroupSynced():
                for name in operation.partitions:
                    key = operation.group, operation.member, name
                    start[key] = committed.get((operation.group, name))
            case RecordDelivered():
                start_offset = start.get((operation.group, operation.member, operation.partition))
                if start_offset is not None and operation.offset < start_offset:
                    found.append(
                        DELIVERED_AFTER_COMMIT.found(
                            at_us=operation.at_us,
                            partition=operation.partition,
                            group=operation.group,
                            member=operation.member,
                            offset=operation.offset,
                            committed_offset=start_offset,
                        )
                    )
    return found


def delivered_twice(history: GroupHistory) -> list[Anomaly]:
    """Records that a group was given more than once, whoever its members were."""
    found = []
    first: dict[tuple[str, str, int, str], RecordDelivered] = {}
    for operation in history:
        if isinstance(operation, RecordDelivered):
            key = operation.group, operation.partition, operation.offset, operation.payload
            before = first.setdefault(key, operation)
            if before is not operation:
                found.append(
                    DELIVERED_TWICE.found(
                        at_us=operation.at_us,
                        partition=operation.partition,
                        group=operation.group,
                        payload=operation.payload,
                        offset=operation.offset,
                        first=before.member,
                        second=operation.member,
                    )
                )
    return found


def skipped(history: GroupHistory) -> list[Anomaly]:
    """Records of the final log before a group's position that no member of it was given."""
    positions = _positions(history)
    given = {
        (it.group, it.partition, it.offset, it.payload)
        for it in history
        if isinstance(it, RecordDelivered)
    }
    return [
        SKIPPED.found(
            at_us=log.at_us,
            partition=partition,
            group=group,
            payload=record.payload,
            offset=record.offset,
            position=position,
        )
        for log in history
        if isinstance(log, FinalLog)
        for (group, partition), position in positions.items()
        if partition == log.partition
        for record in log.records
        if record.offset < position
        and (group, partition, record.offset, record.payload) not in given
    ]


def _positions(history: Sequence[object]) -> dict[Key, int]:
    """By group and partition: the end of what was given or committed."""
    positions: dict[Key, int] = {}
    for operation in history:
        match operation:
            case RecordDelivered():
                end_offset = operation.offset + 1
            case OffsetCommitted(outcome=CallOutcome.OK):
                end_offset = operation.offset
            case _:
                continue
        key = operation.group, operation.partition
        positions[key] = max(positions.get(key, 0), end_offset)
    return positions
