"""What a reader of a compacted log must be given: lies are condemned, innocent scans are not."""

from __future__ import annotations

import pytest

from tidelog.judge.compaction.compacted_log import KeyedRecord
from tidelog.judge.compaction.scans import KeyedWrite, LogScanned, judge_scans
from tidelog.judge.history import CallOutcome

RETENTION_MS = 1_000


def write(
    offset: int | None, key: str = "a", *, deletes: bool = False, at_us: int = 10
) -> KeyedWrite:
    outcome = CallOutcome.UNKNOWN if offset is None else CallOutcome.OK
    return KeyedWrite("p", key, f"{key}.{offset}", deletes, at_us, at_us, outcome, offset)


def record(offset: int, key: str = "a", *, deletes: bool = False) -> KeyedRecord:
    return KeyedRecord(offset, key, f"{key}.{offset}", deletes, 0, 3)


def scan(*records: KeyedRecord, at_us: int = 2_000_000, start: int = 0) -> LogScanned:
    return LogScanned(
        at_us=at_us,
        began_us=at_us - 1_000,
        reader="r",
        partition="p",
        start_offset=start,
        end_offset=50,
        log_start_offset=0,
        records=records,
        leader_epoch=3,
    )


def names(scanned: LogScanned, *writes: KeyedWrite) -> list[str]:
    found = judge_scans([scanned], writes, delete_retention_ms={"p": RETENTION_MS})
    assert all(anomaly.text for anomaly in found)
    return [anomaly.name for anomaly in found]


def test_the_newest_value_is_enough() -> None:
    assert names(scan(record(5)), write(1), write(5)) == []
    assert names(scan(record(5), start=3), write(1), write(5)) == []


def test_a_deleted_key_is_given_with_its_tombstone_or_not_at_all() -> None:
    deleted = (write(1), write(5, deletes=True))

    assert names(scan(record(1), record(5, deletes=True)), *deleted) == []
    assert names(scan(), *deleted) == []
    assert names(scan(record(1)), *deleted) == ["tombstone gone too soon"]


def test_a_value_may_be_missing_behind_an_old_tombstone_whose_write_was_not_answered() -> None:
    assert names(scan(), write(1), write(None, deletes=True)) == []
    assert names(scan(), write(1), write(None, deletes=True, at_us=1_900_000)) == ["newest missing"]


@pytest.mark.parametrize(
    ("scanned", "name"),
    [
        (scan(), "newest missing"),
        (scan(record(1)), "newest missing"),
        (scan(record(5), record(1)), "reordered"),
        (scan(record(5), record(7)), "unexpected"),
        (scan(record(5, "b")), "unexpected"),
        (scan(KeyedRecord(6, "a", "a.5", False, 0, 3)), "misplaced"),
    ],
)
def test_a_lie_is_condemned(scanned: LogScanned, name: str) -> None:
    assert name in names(scanned, write(1), write(5))
