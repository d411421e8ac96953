"""Lost records: acknowledged or given to a reader, and gone; or a log whose head is missing."""

from __future__ import annotations

from tidelog.judge.anomalies import HEAD_MISSING, LOST, READ_THEN_LOST, Anomaly
from tidelog.judge.excuses import Excuses
from tidelog.judge.history import (
    CallOutcome,
    FinalLog,
    HeadDeleted,
    History,
    RecordsRead,
    Seen,
    WriteAcks,
    Wrote,
)

_BEYOND_EVERY_LOG = 2**62


def lost(history: History, excuses: Excuses) -> list[Anomaly]:
    """Every write that was answered ok is in the final log of its partition.

    Also one whose offset is unknown, while nothing was deleted from the head of the log.
    """
    finals = {op.partition: op for op in history if isinstance(op, FinalLog)}
    present = {
        (final.partition, record.payload) for final in finals.values() for record in final.records
    }
    committed_us = _committed_since(history)
    found = []
    for write in history:
        if not isinstance(write, Wrote) or write.outcome is not CallOutcome.OK:
            continue
        final = finals.get(write.partition)
        if final is None or write.acks is WriteAcks.NONE:
            continue
        for offset, payload in enumerate(write.payloads, _first_offset(write)):
            key = (write.partition, payload)
            if key in present or _may_be_deleted(write, offset, final):
                continue
            since_us = committed_us.get(key)
            if since_us is None:
                may_go = excuses.uncommitted_may_go(
                    write.partition, offset, since_us=write.invoked_us
                )
            else:
                may_go = excuses.committed_may_go(write.partition, offset, since_us=since_us)
            if not may_go:
                found.append(_lost(write, payload, offset, final))
    return found


def _first_offset(write: Wrote) -> int:
    """Whatever excuses the loss of any offset excuses that of an unknown one."""
    return _BEYOND_EVERY_LOG if write.base_offset is None else write.base_offset


def _may_be_deleted(write: Wrote, offset: int, final: FinalLog) -> bool:
    start = final.log_start_offset
    return start > 0 if write.base_offset is None else offset < start


def _committed_since(history: History) -> dict[tuple[str, str], int]:
    """When each record could first have been known as committed, by its partition and payload."""
    since: dict[tuple[str, str], int] = {}
    for operation in history:
        if isinstance(operation, Wrote):
            if operation.outcome is CallOutcome.OK and operation.acks is WriteAcks.ALL:
                for payload in operation.payloads:
                    since.setdefault((operation.partition, payload), operation.invoked_us)
        elif isinstance(operation, RecordsRead):
            for record in operation.records:
                since.setdefault((operation.partition, record.payload), operation.invoked_us)
    return since


def _lost(write: Wrote, payload: str, offset: int, final: FinalLog) -> Anomaly:
    at = {} if write.base_offset is None else {"offset": offset}
    return LOST.found(
        at_us=final.at_us,
        partition=write.partition,
        payload=payload,
        writer=write.writer,
        **at,
        acks=write.acks.value,
        log_start_offset=final.log_start_offset,
        log_end_offset=final.end_offset,
    )


def read_then_lost(history: History, excuses: Excuses) -> list[Anomaly]:
    """What one reader was given at an offset, every later reader and the final log have there.

    This is the model's read consistency: what is below a high watermark once stays for ever.
    """
    given: dict[str, dict[int, tuple[Seen, int]]] = {}
    found: list[Anomaly] = []
    for operation in history:
        if not isinstance(operation, RecordsRead | FinalLog):
            continue
        known = given.setdefault(operation.partition, {})
        records = {record.offset: record for record in operation.records}
        expected = sorted(known) if isinstance(operation, FinalLog) else records.keys() & known
        for offset in sorted(expected):
            before, since_us = known[offset]
            after = records.get(offset)
            if after is not None and after.payload == before.payload:
                continue
            is_deleted = after is None and offset < operation.log_start_offset
            if not is_deleted and not excuses.committed_may_go(
                operation.partition, offset, since_us=since_us, until_us=operation.at_us
            ):
                found.append(_read_then_lost(operation, before, after))
        if isinstance(operation, RecordsRead):
            for record in operation.records:
                if record.offset not in known or known[record.offset][0].payload != record.payload:
                    known[record.offset] = (record, operation.invoked_us)
    return found


def _read_then_lost(operation: RecordsRead | FinalLog, before: Seen, after: Seen | None) -> Anomaly:
    replaced = {} if after is None else {"replaced_by": after.payload}
    return READ_THEN_LOST.found(
        at_us=operation.at_us,
        partition=operation.partition,
        payload=before.payload,
        offset=before.offset,
        **replaced,
    )


def head_missing(history: History, excuses: Excuses) -> list[Anomaly]:
    """Records leave the head of a log by retention or by DeleteRecords, never by themselves."""
    limits: dict[str, int | None] = {}
    found = []
    for operation in history:
        if isinstance(operation, HeadDeleted):
            limit = limits.get(operation.partition, 0)
            below = operation.below_offset
            limits[operation.partition] = (
                None if below is None or limit is None else max(limit, below)
            )
        elif isinstance(operation, RecordsRead | FinalLog):
            limit = limits.get(operation.partition, 0)
            if limit is not None and operation.log_start_offset > limit:
                found.append(
                    HEAD_MISSING.found(
                        at_us=operation.at_us,
                        partition=operation.partition,
                        log_start_offset=operation.log_start_offset,
                        deleted_below=limit,
                    )
                )
    return found
