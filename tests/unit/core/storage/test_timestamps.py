"""Finding records by time."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from tests.unit.core.storage.given import NOW_MS, Rig, append, batch, read_all
from tidelog.core.storage.log import Log, TimestampedOffset
from tidelog.core.wire.record_batch import CorruptBatch, batches
from tidelog.core.wire.records import NewRecord, build


def write(log: Log, *late_ms: int, leader_epoch: int = 0) -> None:
    """One batch with records of these times."""
    records = [NewRecord(value=b"v", timestamp_ms=NOW_MS + late) for late in late_ms]
    assert append(log, memoryview(build(records)), leader_epoch=leader_epoch).error == 0


def slow_find(log: Log, timestamp_ms: int) -> int | None:
    for record in read_all(log):
        if record.timestamp_ms >= timestamp_ms:
            return record.offset
    return None


@pytest.mark.parametrize("seed", range(20))
def test_the_first_record_not_earlier_is_found_as_a_full_search_finds_it(seed: int) -> None:
    random = Random(seed)
    rig = Rig(seed=seed)
    log = rig.open()
    for _ in range(60):
        write(log, *[random.randint(0, 200) for _ in range(random.randint(1, 4))])
    log.advance_high_watermark(log.log_end_offset)
    log.delete_records_before(random.randint(0, 40))

    for wanted_ms in range(NOW_MS - 1, NOW_MS + 203, 3):
        found = log.find_by_timestamp(wanted_ms)
        assert (None if found is None else found.offset) == slow_find(log, wanted_ms)

    log.close_cleanly()
    rig.kill()
    again = rig.open(clean=bool(seed % 2), log_start_offset=log.log_start_offset)
    for wanted_ms in range(NOW_MS - 1, NOW_MS + 203, 7):
        assert again.find_by_timestamp(wanted_ms) == log_answer(log, again, wanted_ms)


@pytest.mark.scenario("X-33")
@pytest.mark.parametrize("byte", [10, 16, 26, 60, 70])
def test_a_search_by_time_neither_believes_damage_nor_passes_over_it(byte: int) -> None:
    """Batch length, magic, last offset delta, count and a record's own time, each damaged."""
    rig = Rig()
    log = rig.open()
    for late_ms in range(0, 60, 2):
        write(log, late_ms, late_ms + 1)
    file = log.files.segments[0].file
    position = [at for at, _ in batches(file.read(0, file.size_bytes))][3]
    rig.store.flip_bit(file.path, position=position + byte, bit=4)

    with pytest.raises(CorruptBatch):
        log.find_by_timestamp(NOW_MS + 6)
    for late_ms in (0, 5, 40, 59):
        found = log.find_by_timestamp(NOW_MS + late_ms)
        assert found is not None and found.offset == late_ms


def log_answer(before: Log, after: Log, wanted_ms: int) -> TimestampedOffset | None:
    offset = slow_find(after, wanted_ms)
    if offset is None:
        return None
    timestamp_ms = next(one.timestamp_ms for one in read_all(after) if one.offset == offset)
    return TimestampedOffset(timestamp_ms, offset, 0)


def test_the_answer_carries_time_and_leader_epoch_of_the_record() -> None:
    log = Rig().open()
    write(log, 0, leader_epoch=1)
    write(log, 5, 9, leader_epoch=2)

    assert log.find_by_timestamp(NOW_MS + 6) == TimestampedOffset(NOW_MS + 9, 2, 2)
    assert log.find_by_timestamp(NOW_MS + 10) is None
    assert log.find_by_timestamp(0) == TimestampedOffset(NOW_MS, 0, 1)


def test_the_largest_timestamp_is_the_first_record_that_has_it() -> None:
    log = Rig().open()
    assert log.largest_timestamp() is None

    write(log, 0, 30)
    write(log, 10, 40, 40)
    write(log, 40)
    write(log, 3)

    assert log.largest_timestamp() == TimestampedOffset(NOW_MS + 40, 3, 0)


def test_the_largest_timestamp_survives_rolls_and_restarts() -> None:
    rig = Rig()
    log = rig.open()
    for late_ms in (1, 50, *range(2, 40)):
        write(log, late_ms)
    assert len(log.files.segments) > 2
    rig.kill()

    assert rig.open().largest_timestamp() == TimestampedOffset(NOW_MS + 50, 1, 0)


def test_records_without_timestamps_are_never_found() -> None:
    log = Rig().open()
    append(log, batch(timestamp_ms=-1))

    assert log.find_by_timestamp(0) is None
    assert log.largest_timestamp() is None


def test_time_index_entries_grow_and_end_with_the_largest() -> None:
    log = Rig().open()
    for late_ms in (5, 3, 9, 2, 8, 20, 1, 1, 1, 1, 1, 1, 1, 1):
        write(log, late_ms)

    entries = log.files.segments[0].times.entries()

    assert all(before[0] < after[0] for before, after in pairwise(entries))
    assert entries[-1] == (NOW_MS + 20, 5)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("count", [1, 9])
def test_a_smaller_timestamp_after_a_restart_does_not_hide_the_largest(
    clean: bool, count: int
) -> None:
    rig = Rig()
    log = rig.open()
    write(log, 50)
    for _ in range(count):
        write(log, 1)
    if clean:
        log.close_cleanly()
    rig.kill()

    log = rig.open(clean=clean)
    write(log, 2)

    assert log.largest_timestamp() == TimestampedOffset(NOW_MS + 50, 0, 0)
    assert log.find_by_timestamp(NOW_MS + 10) == TimestampedOffset(NOW_MS + 50, 0, 0)
