"""What readers of a compacted log were given: the newest value of each key, and what was written.

A scan is one way through a partition, from an offset to its end. Acknowledged writes that ended
before it began must be in it, or what replaced them. A key whose newest record is a tombstone is
given with it or not at all, if the scan took less than `delete.retention.ms` and one leader
answered all of it, the one that took the tombstone: another replica may be cleaned earlier.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tidelog.judge.anomalies import (
    CHANGED_BY_COMPACTION,
    MISPLACED,
    NEWEST_MISSING,
    REORDERED,
    TOMBSTONE_TOO_SOON,
    UNEXPECTED,
    Anomaly,
)
from tidelog.judge.compaction.compacted_log import KeyedRecord
from tidelog.judge.history import CallOutcome


class KeyedWrite(NamedTuple):
    """One write of one key, and what its writer knows about it."""

    partition: str
    key: str
    payload: str
    is_tombstone: bool
    invoked_us: int
    at_us: int
    outcome: CallOutcome
    offset: int | None
    is_repeated: bool = False
    """Its writer tries again. A broker remembers of each producer, through a restart, only the
    latest batch, as Kafka does: one before it may be in the log twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogScanned:
    """A reader went through a partition from an offset to where its leader said that it ends."""

    at_us: int
    began_us: int
    reader: str
    partition: str
    start_offset: int
    end_offset: int
    log_start_offset: int
    records: tuple[KeyedRecord, ...]
    leader_epoch: int | None
    """Of the leader that answered all of it; None: there were several."""


def judge_scans(
    scans: Sequence[LogScanned],
    writes: Sequence[KeyedWrite],
    *,
    delete_retention_ms: Mapping[str, int],
) -> list[Anomaly]:
    """`delete_retention_ms` by partition."""
    by_payload = {write.payload: write for write in writes}
    held: dict[tuple[str, int], str] = {}
    found: list[Anomaly] = []
    for scan in scans:
        found += _order(scan)
        found += _contents(scan, by_payload, held)
        mine = [write for write in writes if write.partition == scan.partition]
        found += _newest(scan, mine, delete_retention_ms[scan.partition])
    return found


def _order(scan: LogScanned) -> Iterator[Anomaly]:
    before = scan.start_offset - 1
    for record in scan.records:
        if record.offset <= before:
            yield REORDERED.found(
                at_us=scan.at_us,
                partition=scan.partition,
                offset=record.offset,
                payload=record.payload,
                offset_before=before,
            )
        before = record.offset


def _contents(
    scan: LogScanned, by_payload: Mapping[str, KeyedWrite], held: dict[tuple[str, int], str]
) -> Iterator[Anomaly]:
    for record in scan.records:
        write = by_payload.get(record.payload)
        is_known = write is not None and (
            (write.partition, write.key, write.is_tombstone)
            == (scan.partition, record.key, record.is_tombstone)
        )
        if write is None or not is_known:
            yield UNEXPECTED.found(
                at_us=scan.at_us,
                partition=scan.partition,
                payload=record.payload,
                offset=record.offset,
            )
            continue
        if write.offset not in (None, record.offset) and not write.is_repeated:
            yield MISPLACED.found(
                at_us=scan.at_us,
                partition=scan.partition,
                payload=record.payload,
                acknowledged_offset=write.offset,
                offset=record.offset,
            )
        payload_before = held.setdefault((scan.partition, record.offset), record.payload)
        if payload_before != record.payload:
            yield CHANGED_BY_COMPACTION.found(
                at_us=scan.at_us,
                partition=scan.partition,
                reader=scan.reader,
                offset=record.offset,
                payload=record.payload,
                payload_before=payload_before,
            )


def _newest(
    scan: LogScanned, writes: Sequence[KeyedWrite], delete_retention_ms: int
) -> Iterator[Anomaly]:
    given: dict[str, KeyedRecord] = {record.key: record for record in scan.records}
    first = max(scan.start_offset, scan.log_start_offset)
    for write in _acknowledged(writes, before_us=scan.began_us).values():
        assert write.offset is not None
        latest = given.get(write.key)
        if not first <= write.offset < scan.end_offset:
            continue
        if latest is not None and latest.offset >= write.offset:
            continue
        if write.is_tombstone:
            if latest is not None and _keeps_up(scan, latest, delete_retention_ms):
                yield TOMBSTONE_TOO_SOON.found(
                    at_us=scan.at_us,
                    partition=scan.partition,
                    reader=scan.reader,
                    key=write.key,
                    payload=latest.payload,
                    offset=write.offset,
                )
        elif not _may_be_deleted(scan, write, writes, delete_retention_ms):
            yield NEWEST_MISSING.found(
                at_us=scan.at_us,
                partition=scan.partition,
                reader=scan.reader,
                start_offset=scan.start_offset,
                end_offset=scan.end_offset,
                key=write.key,
                payload=write.payload,
                offset=write.offset,
            )


def _acknowledged(writes: Sequence[KeyedWrite], *, before_us: int) -> dict[str, KeyedWrite]:
    """The newest write of each key that was answered ok by then."""
    newest: dict[str, KeyedWrite] = {}
    for write in writes:
        if write.outcome is CallOutcome.OK and write.at_us <= before_us:
            known = newest.get(write.key)
            assert write.offset is not None
            if known is None or known.offset is None or known.offset < write.offset:
                newest[write.key] = write
    return newest


def _keeps_up(scan: LogScanned, older: KeyedRecord, delete_retention_ms: int) -> bool:
    is_short = scan.at_us - scan.began_us < delete_retention_ms * 1_000
    return is_short and scan.leader_epoch is not None and scan.leader_epoch == older.leader_epoch


def _may_be_deleted(
    scan: LogScanned, write: KeyedWrite, writes: Sequence[KeyedWrite], delete_retention_ms: int
) -> bool:
    """By a tombstone behind it, whose own time is over: its write may have had no answer."""
    assert write.offset is not None
    return any(
        other.is_tombstone
        and other.key == write.key
        and other.outcome is not CallOutcome.REFUSED
        and (other.offset is None or other.offset > write.offset)
        and other.invoked_us + delete_retention_ms * 1_000 <= scan.at_us
        for other in writes
    )
