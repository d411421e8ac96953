"""Wrong records: in the log too often, at another offset than acknowledged, or at all."""

from __future__ import annotations

from collections.abc import Iterable

from tidelog.judge.anomalies import (
    DUPLICATED,
    MISPLACED,
    REFUSED_BUT_PRESENT,
    UNEXPECTED,
    Anomaly,
)
from tidelog.judge.excuses import Excuses
from tidelog.judge.history import (
    CallOutcome,
    FinalLog,
    History,
    RecordsRead,
    Seen,
    WriteAcks,
    Wrote,
)


def duplicated(history: History, excuses: Excuses) -> list[Anomaly]:
    """Within one answer, or within the final log, no payload may have two offsets (D4-I2).

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
        if not isinstance(operation, RecordsRead | FinalLog):
            continue
        first: dict[str, Seen] = {}
        for record in operation.records:
            before = first.setdefault(record.payload, record)
            if before.offset == record.offset or _may_be_repeated(
                before, record, writes.get(record.payload), excuses, writes.values()
            ):
                continue
            found.append(
                DUPLICATED.found(
                    at_us=operation.at_us,
                    partition=operation.partition,
                    payload=record.payload,
                    first_offset=before.offset,
                    offset=record.offset,
                )
            )
    return found


def _may_be_repeated(
    before: Seen, after: Seen, write: Wrote | None, excuses: Excuses, writes: Iterable[Wrote]
) -> bool:
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
    return is_new_epoch and excuses.may_repeat_under_new_epoch(write, writes)


def misplaced(history: History, excuses: Excuses) -> list[Anomaly]:
    """A write that was answered ok stands where the answer said, or nowhere (D4-I7).

    This is what a duplicate that is answered with another offset than its first looks like. An
    election that may lose the record may also bring another copy back: an unclean leader can hold
    an earlier attempt elsewhere. A write whose offset is unknown promised no place. Where the head
    of a log is gone, what readers were given tells where a record stood.
    """
    offsets = _offsets(history, FinalLog)
    read_offsets = _offsets(history, RecordsRead)
    found = []
    for operation in history:
        if not isinstance(operation, Wrote) or operation.outcome is not CallOutcome.OK:
            continue
        if operation.base_offset is None:
            continue
        for offset, payload in enumerate(operation.payloads, operation.base_offset):
            key = (operation.partition, payload)
            present = offsets.get(key) or read_offsets.get(key, [offset])
            if offset in present or (key not in offsets and excuses.retries(operation.writer)):
                continue
            if not _may_have_moved(operation, offset, excuses):
                found.append(
                    MISPLACED.found(
                        at_us=operation.at_us,
                        partition=operation.partition,
                        payload=payload,
                        acknowledged_offset=offset,
                        offset=present[0],
                    )
                )
    return found


def _offsets(
    history: History, kind: type[FinalLog | RecordsRead]
) -> dict[tuple[str, str], list[int]]:
    """Where each record was found, by its partition and payload."""
    offsets: dict[tuple[str, str], list[int]] = {}
    for operation in history:
        if isinstance(operation, kind):
            for record in operation.records:
                offsets.setdefault((operation.partition, record.payload), []).append(record.offset)
    return offsets


def _may_have_moved(write: Wrote, offset: int, excuses: Excuses) -> bool:
    if write.acks is WriteAcks.ALL:
        return excuses.committed_may_go(write.partition, offset, since_us=write.invoked_us)
    return excuses.uncommitted_may_go(write.partition, offset, since_us=write.invoked_us)


def refused_but_present(history: History, excuses: Excuses) -> list[Anomaly]:
    """A record whose write was refused is never read from that partition."""
    return [
        REFUSED_BUT_PRESENT.found(
            at_us=operation.at_us,
            partition=operation.partition,
            payload=record.payload,
            offset=record.offset,
        )
        for operation, record, outcome in _read_records(history)
        if outcome is CallOutcome.REFUSED
    ]


def unexpected(history: History, excuses: Excuses) -> list[Anomaly]:
    """Whatever is read was once written to that partition: the history has every writer."""
    return [
        UNEXPECTED.found(
            at_us=operation.at_us,
            partition=operation.partition,
            payload=record.payload,
            offset=record.offset,
        )
        for operation, record, outcome in _read_records(history)
        if outcome is None
    ]


def _read_records(
    history: History,
) -> list[tuple[RecordsRead | FinalLog, Seen, CallOutcome | None]]:
    """Each record that was read, with the outcome of its write; None: nobody wrote it there."""
    outcomes: dict[tuple[str, str], CallOutcome] = {}
    for operation in history:
        if isinstance(operation, Wrote):
            for payload in operation.payloads:
                outcomes[(operation.partition, payload)] = operation.outcome
    return [
        (operation, record, outcomes.get((operation.partition, record.payload)))
        for operation in history
        if isinstance(operation, RecordsRead | FinalLog)
        for record in operation.records
    ]
