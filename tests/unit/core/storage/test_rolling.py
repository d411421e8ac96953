"""When a new segment begins, and what an old one leaves behind."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from tests.unit.core.storage.given import NOW_MS, SMALL, Rig, append, batch
from tidelog.core.storage import events
from tidelog.core.storage.log import Log


def bases(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.files.segments]


def test_a_segment_is_full_when_the_next_batch_would_not_fit() -> None:
    size = len(batch())
    log = Rig(replace(SMALL, segment_bytes=3 * size)).open()
    for _ in range(7):
        append(log)

    assert bases(log) == [0, 3, 6]
    assert [segment.file.size_bytes for segment in log.files.segments] == [3 * size, 3 * size, size]


def test_a_segment_is_old_by_the_timestamps_of_its_records() -> None:
    rig = Rig(replace(SMALL, segment_ms=1_000))
    log = rig.open()
    for late_ms in (0, 1_000, 1_001, 500, 2_001, 2_002):
        append(log, batch(timestamp_ms=NOW_MS + late_ms))

    assert bases(log) == [0, 2, 5]
    assert [event.because for event in rig.trace.of(events.SegmentRolled)] == ["time", "time"]


def test_without_timestamps_a_segment_is_old_by_the_clock() -> None:
    log = Rig(replace(SMALL, segment_ms=1_000)).open()
    for late_ms in (0, 1_000, 1_001):
        log.append_as_leader(batch(timestamp_ms=-1), leader_epoch=0, wall_ms=NOW_MS + late_ms)

    assert bases(log) == [0, 2]


def test_the_age_is_known_after_a_restart() -> None:
    rig = Rig(replace(SMALL, segment_ms=1_000))
    log = rig.open()
    append(log)
    log.close_cleanly()
    rig.kill()

    log = rig.open(clean=True)
    append(log, batch(timestamp_ms=NOW_MS + 1_001))

    assert bases(log) == [0, 1]


def test_jitter_makes_segments_roll_earlier_and_is_the_same_in_every_run() -> None:
    log = Rig(replace(SMALL, segment_ms=10_000, segment_jitter_ms=5_000)).open()
    again = Rig(replace(SMALL, segment_ms=10_000, segment_jitter_ms=5_000)).open()

    assert 0 <= log.jitter_ms < 5_000
    assert log.jitter_ms == again.jitter_ms
    append(log)
    append(log, batch(timestamp_ms=NOW_MS + 10_001 - log.jitter_ms))
    assert bases(log) == [0, 1]


def test_a_full_index_ends_a_segment() -> None:
    rig = Rig(replace(SMALL, segment_bytes=10**6, segment_index_bytes=24, index_interval_bytes=1))
    log = rig.open()
    for _ in range(12):
        append(log)

    assert len(bases(log)) > 2
    reasons = {event.because for event in rig.trace.of(events.SegmentRolled)}
    assert reasons <= {"offset index full", "time index full"}


def test_offsets_too_far_from_the_base_begin_a_segment_that_can_hold_them() -> None:
    log = Rig(replace(SMALL, compact=True)).open()
    for offset in (0, 2**31 - 1, 2**31, 2**33):
        view = batch(base_offset=offset, leader_epoch=0)
        assert log.append_as_follower(view, wall_ms=NOW_MS).error == 0
        log.check()

    assert bases(log) == [0, 2**31, 2**33]


def test_a_rolled_segment_has_its_indexes_and_the_new_one_a_snapshot() -> None:
    rig = Rig()
    log = rig.open()
    for sequence in range(20):
        append(log, batch(producer_id=1, producer_epoch=0, sequence=sequence))

    second = bases(log)[1]
    assert f"{0:020d}.index" in rig.names()
    assert f"{0:020d}.timeindex" in rig.names()
    assert f"{second:020d}.snapshot" in rig.names()


def test_index_entries_are_an_interval_apart_and_name_the_final_offset_of_a_batch() -> None:
    log = Rig(replace(SMALL, segment_bytes=10**6, index_interval_bytes=250)).open()
    size = len(batch(2))
    for _ in range(20):
        append(log, batch(2))

    entries = log.files.segments[0].offsets.entries()

    assert entries[0] == (2 * 3 + 1, 3 * size)
    for offset, position in entries:
        assert position == offset // 2 * size
    gaps = [after[1] - before[1] for before, after in pairwise(entries)]
    assert all(250 < gap <= 250 + size for gap in gaps)
