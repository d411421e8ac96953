"""Every check of the history of one broker: what no excuse of the ledger covers is an anomaly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidelog.judge.anomalies import CHANGED, CORRUPT, GAP, HEAD_MISSING, LOST, Anomaly
from tidelog.judge.history import FinalLog, History, OffsetRefused, RecordsRead
from tidelog.judge.lone_broker.ledger import Ledger, ledgers_after, walk
from tidelog.judge.metadata_answers import producer_id_reused, topic_forgotten, topic_resurrected
from tidelog.judge.reordered import reordered
from tidelog.judge.wrong_records import duplicated, misplaced, refused_but_present, unexpected


def judge(history: History) -> list[Anomaly]:
    """All anomalies, the earliest first."""
    found = [anomaly for check in CHECKS for anomaly in check(history)]
    return sorted(found, key=lambda anomaly: anomaly.at_us)


def changed(history: History) -> list[Anomaly]:
    """Offsets are immutable, unless an excuse took the suffix that held them (D4-O9)."""
    return [
        CHANGED.found(
            at_us=each.at_us,
            partition=partition,
            offset=each.offset,
            payload=each.before,
            replaced_by=each.after,
        )
        for partition, ledger in ledgers_after(history).items()
        for each in ledger.contradictions
    ]


def lost(history: History) -> list[Anomaly]:
    """Every firm fact at or above the start of the final log must be in it."""
    found: list[Anomaly] = []
    for operation, ledger in walk(history):
        if not isinstance(operation, FinalLog):
            continue
        present = {record.offset for record in operation.records}
        end_offset = max([operation.end_offset, *(offset + 1 for offset in ledger.facts)])
        found.extend(
            LOST.found(
                at_us=operation.at_us,
                partition=operation.partition,
                offset=offset,
                payload=ledger.facts[offset].payload,
                log_start_offset=operation.log_start_offset,
                log_end_offset=operation.end_offset,
            )
            for offset in ledger.firm_offsets(operation.log_start_offset, end_offset)
            if offset not in present
        )
    return found


def gap(history: History) -> list[Anomaly]:
    """A record left out of an answer, an empty answer where one must be, or a false refusal."""
    found = []
    for operation, ledger in walk(history):
        if isinstance(operation, RecordsRead):
            evidence = _left_out(operation, ledger)
        elif isinstance(operation, OffsetRefused):
            evidence = _falsely_refused(operation, ledger)
        else:
            continue
        if evidence is not None:
            found.append(
                GAP.found(at_us=operation.at_us, partition=operation.partition, **evidence)
            )
    return found


def _left_out(read: RecordsRead, ledger: Ledger) -> dict[str, Any] | None:
    if read.records:
        given = {record.offset for record in read.records}
        end_offset = read.records[-1].offset
        for offset in ledger.firm_offsets(read.start_offset, end_offset):
            if offset not in given:
                return {"skipped_offset": offset, "start_offset": read.start_offset}
        return None
    is_readable = read.log_start_offset <= read.start_offset < read.high_watermark
    if is_readable and ledger.is_firm(read.start_offset):  # damage before it may not hide it
        return {"start_offset": read.start_offset, "high_watermark": read.high_watermark}
    return None


def _falsely_refused(refused: OffsetRefused, ledger: Ledger) -> dict[str, Any] | None:
    if ledger.head_offset_max is None or refused.start_offset < ledger.head_offset_max:
        return None
    if ledger.is_firm(refused.start_offset, since_us=refused.invoked_us):
        return {"start_offset": refused.start_offset}
    return None


def corrupt(history: History) -> list[Anomaly]:
    """Readers are told of damage, by checksum or refusal, only where the medium has it (X-33)."""
    return [
        CORRUPT.found(
            at_us=operation.at_us, partition=operation.partition, offset=operation.corrupt_offset
        )
        for operation, ledger in walk(history)
        if isinstance(operation, RecordsRead)
        and operation.corrupt_offset is not None
        and not ledger.is_damaged(operation.corrupt_offset)
    ]


def head_missing(history: History) -> list[Anomaly]:
    """Records leave the head of a log by retention or by DeleteRecords, never by themselves."""
    return [
        HEAD_MISSING.found(
            at_us=operation.at_us,
            partition=operation.partition,
            log_start_offset=operation.log_start_offset,
            deleted_below=ledger.head_offset_max,
        )
        for operation, ledger in walk(history)
        if isinstance(operation, RecordsRead | FinalLog)
        and not ledger.may_begin_at(operation.log_start_offset)
    ]


CHECKS: tuple[Callable[[History], list[Anomaly]], ...] = (
    changed,
    lost,
    misplaced,
    duplicated,
    refused_but_present,
    unexpected,
    gap,
    corrupt,
    head_missing,
    reordered,
    producer_id_reused,
    topic_forgotten,
    topic_resurrected,
)
