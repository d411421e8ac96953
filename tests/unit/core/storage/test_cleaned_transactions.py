"""Compaction and transactions: aborted data goes, a marker stays as long as it guards something."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.core.storage.compaction_given import COMPACT, clean, opened, pairs_of, put, roll
from tests.unit.core.storage.given import NOW_MS, Rig
from tidelog.core.storage.log import Log
from tidelog.core.wire.control_records import end_txn_marker
from tidelog.core.wire.records import build

PRODUCER = 5


def end_transaction(log: Log, *, commit: bool, producer_id: int = PRODUCER) -> None:
    marker = end_txn_marker(commit=commit, coordinator_epoch=0, timestamp_ms=NOW_MS)
    view = memoryview(
        build([marker], producer_id=producer_id, producer_epoch=0, transactional=True, control=True)
    )
    appended = log.append_as_leader(view, leader_epoch=0, wall_ms=NOW_MS, from_client=False)
    assert appended.error == 0, appended


def written(*, commit: bool) -> tuple[Rig, Log]:
    """x outside, then a transaction of a and b, its marker at 3, then b outside."""
    rig, log = opened(replace(COMPACT, delete_retention_ms=1_000))
    put(log, ("x", "1"))
    put(log, ("a", "1"), ("b", "1"), producer_id=PRODUCER, sequence=0, transactional=True)
    end_transaction(log, commit=commit)
    put(log, ("b", "2"))
    put(log, ("z", "1"))
    roll(log, rig)
    return rig, log


def markers(log: Log) -> list[int]:
    return [
        header.base_offset
        for header in log.batch_headers()
        if header.is_control and header.records_count
    ]


def more(rig: Rig, log: Log, key: str) -> None:
    put(log, (key, "1"))
    roll(log, rig)
    clean(log, rig)


def test_records_of_an_aborted_transaction_go_and_replace_nothing() -> None:
    rig, log = written(commit=False)
    put(log, ("x", "2"), producer_id=6, sequence=0, transactional=True)
    end_transaction(log, commit=False, producer_id=6)
    roll(log, rig)

    clean(log, rig)

    data = [pair for pair in pairs_of(log) if pair[0] not in markers(log)]
    assert data == [(0, "x", "1"), (4, "b", "2"), (5, "z", "1")]


def test_the_marker_of_an_aborted_transaction_goes_after_its_records() -> None:
    rig, log = written(commit=False)
    clean(log, rig)
    assert markers(log) == [3], "a reader in the middle of it still needs the marker"
    assert log.aborted_transactions(0, 6) == [(PRODUCER, 1)]

    log.producers.by_id.clear()  # the producer is forgotten: nothing is kept for it any more
    more(rig, log, "c")
    assert markers(log) == [3]
    more(rig, log, "d")
    assert log.aborted_transactions(0, 6) == []
    rig.wall_ms += 1_000
    more(rig, log, "e")
    assert markers(log) == []


def test_committed_records_are_compacted_and_keep_their_marker() -> None:
    rig, log = written(commit=True)

    clean(log, rig)

    assert [pair for pair in pairs_of(log) if pair[0] != 3] == [
        (0, "x", "1"), (1, "a", "1"), (4, "b", "2"), (5, "z", "1"),
    ]  # fmt: skip
    rig.wall_ms += 1_000
    more(rig, log, "c")
    assert markers(log) == [3], "a record of the transaction is still there"


@pytest.mark.parametrize("commit", [True, False])
def test_the_latest_batch_of_a_transactional_producer_keeps_its_sequence(commit: bool) -> None:
    rig, log = written(commit=commit)
    put(log, ("a", "2"))
    roll(log, rig)
    clean(log, rig)

    again = rig.open(clean=False)

    assert again.producers.by_id[PRODUCER].expected_sequence == 2
    assert again.last_stable_offset == again.high_watermark


def test_the_marker_of_a_committed_transaction_goes_after_all_its_records_are_replaced() -> None:
    rig, log = written(commit=True)
    log.producers.by_id.clear()
    put(log, ("a", "2"))
    roll(log, rig)
    clean(log, rig)
    assert markers(log) == [3], "its records were there when this round began"

    more(rig, log, "c")
    assert markers(log) == [3], "readers have delete.retention.ms to see it"
    rig.wall_ms += 999
    more(rig, log, "d")
    assert markers(log) == [3]
    rig.wall_ms += 1
    more(rig, log, "e")
    assert markers(log) == []


def test_nothing_at_or_above_the_last_stable_offset_is_touched_or_counts() -> None:
    """Everything is replicated; an open transaction alone holds the cleaner back."""
    rig, log = opened()
    put(log, ("a", "1"))
    put(log, ("a", "2"))
    roll(log, rig)
    put(log, ("b", "1"), producer_id=PRODUCER, sequence=0, transactional=True)
    put(log, ("a", "3"))
    put(log, ("a", "4"))
    roll(log, rig)
    put(log, ("a", "5"))
    roll(log, rig)
    assert (log.last_stable_offset, log.high_watermark) == (2, 6)

    clean(log, rig)
    above = [(2, "b", "1"), (3, "a", "3"), (4, "a", "4"), (5, "a", "5")]
    assert pairs_of(log) == [(1, "a", "2"), *above]

    end_transaction(log, commit=True)
    roll(log, rig)
    clean(log, rig)
    assert [pair for pair in pairs_of(log) if pair[0] != 6] == [(2, "b", "1"), (5, "a", "5")]
