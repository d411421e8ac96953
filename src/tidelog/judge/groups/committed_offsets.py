"""Committed offsets as a register: what was answered ok stays until a later write replaces it.

A write (a commit or a deletion) has happened by the time at which its caller was answered ok, or
at which somebody was given what it wrote. A later fetch must not show anything that was overwritten
before it was asked: not an older commit, not nothing. That holds over every change of coordinators.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tidelog.judge.anomalies import COMMIT_FORGOTTEN, DELETED_OFFSET_BACK, OFFSET_INVENTED, Anomaly
from tidelog.judge.groups.group_history import (
    GroupHistory,
    OffsetCommitted,
    OffsetFetched,
    OffsetsRemoved,
)
from tidelog.judge.history import CallOutcome

Key = tuple[str, str]


@dataclass(slots=True)
class _Write:
    """A commit, or a deletion (without a token), of one partition's offset."""

    token: str | None
    invoked_us: int
    happened_us: int | None
    """By then it has happened; None: nobody knows that it has."""


def commit_forgotten(history: GroupHistory) -> list[Anomaly]:
    """Fetches that show less than what was committed, or deleted, before they were asked."""
    writes = _writes(history)
    found = []
    for fetch in _fetches(history):
        if fetch.from_deposed:
            continue
        of_key = writes.get((fetch.group, fetch.partition), [])
        newer = _overwritten_by(fetch, of_key)
        if newer is None:
            continue
        evidence = {"group": fetch.group, "reader": fetch.reader}
        if newer.token is None:
            kind, more = DELETED_OFFSET_BACK, {"token": fetch.token}
        elif fetch.token is None:
            kind, more = COMMIT_FORGOTTEN, {"committed": newer.token}
        else:
            kind, more = COMMIT_FORGOTTEN, {"committed": newer.token, "token": fetch.token}
        found.append(kind.found(at_us=fetch.at_us, partition=fetch.partition, **evidence, **more))
    return found


def offset_invented(history: GroupHistory) -> list[Anomaly]:
    """Fetches that show what nobody has committed, or another offset than was committed."""
    offsets = {
        (it.group, it.partition, it.token): it.offset
        for it in history
        if isinstance(it, OffsetCommitted)
    }
    return [
        OFFSET_INVENTED.found(
            at_us=fetch.at_us,
            partition=fetch.partition,
            group=fetch.group,
            reader=fetch.reader,
            token=fetch.token,
            offset=fetch.offset,
        )
        for fetch in _fetches(history)
        if fetch.token is not None
        and offsets.get((fetch.group, fetch.partition, fetch.token)) != fetch.offset
    ]


def _overwritten_by(fetch: OffsetFetched, writes: list[_Write]) -> _Write | None:
    """The write before the fetch that replaced all that the fetch could have shown."""
    shown = [
        write for write in writes if write.token == fetch.token and write.invoked_us < fetch.at_us
    ]
    by_us = [write.happened_us for write in shown]
    if fetch.token is None:
        by_us.append(-1)  # nothing was committed at first
    newer = [
        write
        for write in writes
        if write.token != fetch.token
        and write.happened_us is not None
        and write.happened_us <= fetch.invoked_us
    ]
    for write in newer:
        if all(it is not None and it < write.invoked_us for it in by_us):
            return write
    return None


def _writes(history: GroupHistory) -> dict[Key, list[_Write]]:
    keys: dict[str, dict[str, None]] = {}
    for operation in history:
        if isinstance(operation, OffsetCommitted):
            keys.setdefault(operation.group, {})[operation.partition] = None
    seen_us: dict[tuple[str, str, str], int] = {}
    for fetch in _fetches(history):
        if fetch.token is not None:
            seen_us.setdefault((fetch.group, fetch.partition, fetch.token), fetch.at_us)
    writes: dict[Key, list[_Write]] = {}
    for operation in history:
        if isinstance(operation, OffsetCommitted):
            if operation.outcome is not CallOutcome.REFUSED:
                key = operation.group, operation.partition
                known = [seen_us.get((*key, operation.token)), _answered_us(operation)]
                happened_us = min((it for it in known if it is not None), default=None)
                writes.setdefault(key, []).append(
                    _Write(operation.token, operation.invoked_us, happened_us)
                )
        elif isinstance(operation, OffsetsRemoved) and operation.outcome is not CallOutcome.REFUSED:
            partitions: Iterable[str] = keys.get(operation.group, ())
            if operation.partition is not None:
                partitions = (operation.partition,)
            for partition in partitions:
                write = _Write(None, operation.invoked_us, _answered_us(operation))
                writes.setdefault((operation.group, partition), []).append(write)
    return writes


def _answered_us(operation: OffsetCommitted | OffsetsRemoved) -> int | None:
    return operation.at_us if operation.outcome is CallOutcome.OK else None


def _fetches(history: GroupHistory) -> list[OffsetFetched]:
    return [operation for operation in history if isinstance(operation, OffsetFetched)]
