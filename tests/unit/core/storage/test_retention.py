"""Deleting from the start: by time, by size, on request."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.core.storage.given import NOW_MS, SMALL, Rig, append, batch, read_all
from tidelog.core.storage import events
from tidelog.core.storage.log import Log, OffsetOutOfRange

HOUR_MS = 3_600_000


def filled(rig: Rig, count: int = 40) -> Log:
    """Segments of ten records; record n is n milliseconds late."""
    log = rig.open()
    for at in range(count):
        append(log, batch(timestamp_ms=NOW_MS + at))
    log.advance_high_watermark(count)
    return log


def bases(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.files.segments]


@pytest.fixture
def by_time() -> Rig:
    return Rig(replace(SMALL, retention_ms=HOUR_MS))


def test_a_segment_goes_when_its_latest_record_is_too_old(by_time: Rig) -> None:
    log = filled(by_time)
    first, second, *_ = bases(log)[1:]

    assert log.enforce_retention(NOW_MS + HOUR_MS + first - 1) == 0
    assert log.enforce_retention(NOW_MS + HOUR_MS + first) == 1
    log.check()

    assert log.log_start_offset == first
    assert log.enforce_retention(NOW_MS + HOUR_MS + second) == 1
    assert read_all(log)[0].offset == second


@pytest.mark.parametrize("lost_bytes", [12, 6, 24])
def test_a_time_index_that_a_power_loss_tore_deletes_nothing(by_time: Rig, lost_bytes: int) -> None:
    """Seed 20004499 of `storage`: its final entry read as timestamp 0, below the recovery point."""
    filled(by_time)
    by_time.kill()
    name = min(name for name in by_time.names() if name.endswith(".timeindex"))
    written = bytes(by_time.file(name).data)
    assert len(written) >= 24
    by_time.overwrite(name, written[:-lost_bytes] + bytes(lost_bytes))

    log = by_time.open(recovery_point=40)
    log.advance_high_watermark(40)
    first = bases(log)[1]

    assert log.enforce_retention(NOW_MS + HOUR_MS + first - 1) == 0
    assert log.enforce_retention(NOW_MS + HOUR_MS + first) == 1


def test_the_active_segment_goes_too_and_the_offsets_go_on(by_time: Rig) -> None:
    log = filled(by_time)

    assert log.enforce_retention(NOW_MS + 2 * HOUR_MS) > 1
    log.check()

    assert (log.log_start_offset, log.log_end_offset) == (40, 40)
    assert bases(log) == [40]
    assert append(log).base_offset == 40
    by_time.kill()
    log = by_time.open(log_start_offset=40)
    assert (log.log_start_offset, log.log_end_offset) == (40, 41)


def test_an_empty_active_segment_stays(by_time: Rig) -> None:
    log = filled(by_time)
    log.enforce_retention(NOW_MS + 2 * HOUR_MS)

    assert log.enforce_retention(NOW_MS + 9 * HOUR_MS) == 0


def test_nothing_beyond_the_high_watermark_goes(by_time: Rig) -> None:
    log = by_time.open()
    for at in range(40):
        append(log, batch(timestamp_ms=NOW_MS + at))
    second = bases(log)[2]
    log.advance_high_watermark(second)

    log.enforce_retention(NOW_MS + 9 * HOUR_MS)

    assert log.log_start_offset == second


def test_a_record_from_the_future_keeps_its_segment(by_time: Rig) -> None:
    log = by_time.open()
    append(log, batch(timestamp_ms=NOW_MS + HOUR_MS))
    for _ in range(20):
        append(log, batch(timestamp_ms=NOW_MS))
    log.advance_high_watermark(21)

    assert log.enforce_retention(NOW_MS + HOUR_MS + 1) == 0


def test_records_without_timestamps_age_from_when_their_segment_began() -> None:
    rig = Rig(replace(SMALL, retention_ms=HOUR_MS))
    log = rig.open()
    append(log, batch(timestamp_ms=-1))
    log.advance_high_watermark(1)

    assert log.enforce_retention(NOW_MS + HOUR_MS) == 0
    assert log.enforce_retention(NOW_MS + HOUR_MS + 1) == 1


def test_by_size_as_many_segments_go_as_leave_the_limit_filled() -> None:
    rig = Rig(replace(SMALL, retention_bytes=2_000))
    log = filled(rig)
    sizes = [segment.file.size_bytes for segment in log.files.segments]

    deleted = log.enforce_retention(NOW_MS)
    log.check()

    assert 2_000 <= log.size_bytes < 2_000 + sizes[deleted]
    assert rig.trace.of(events.SegmentsDeleted)[0].because == "retention size"


def test_without_limits_everything_stays() -> None:
    log = filled(Rig(replace(SMALL, retention_ms=None)))

    assert log.enforce_retention(NOW_MS + 10**12) == 0


def test_a_topic_that_is_only_compacted_keeps_its_old_segments() -> None:
    rig = Rig(replace(SMALL, retention_ms=1, compact=True, delete=False))
    log = filled(rig)

    assert log.enforce_retention(NOW_MS + HOUR_MS) == 0


def test_deleting_records_moves_the_log_start_and_drops_whole_segments() -> None:
    rig = Rig()
    log = filled(rig)
    second, third = bases(log)[1:3]

    assert log.delete_records_before(third - 1) == third - 1
    log.check()

    assert bases(log)[0] == second
    assert read_all(log)[0].offset == third - 1
    assert log.epochs.entries == [(0, third - 1)]


def test_records_beyond_the_high_watermark_cannot_be_deleted() -> None:
    log = filled(Rig())
    append(log)

    with pytest.raises(OffsetOutOfRange):
        log.delete_records_before(41)
    assert log.delete_records_before(40) == 40


def test_deleting_records_that_are_gone_changes_nothing() -> None:
    log = filled(Rig())
    log.delete_records_before(20)

    assert log.delete_records_before(5) == 20


def test_deleted_segments_are_renamed_first_and_removed_after_the_delay() -> None:
    rig = Rig()
    log = filled(rig)
    log.delete_records_before(15)

    assert "00000000000000000000.log.deleted" in rig.names()
    log.delete_due_files(NOW_MS)
    assert "00000000000000000000.log.deleted" in rig.names()
    assert log.delete_due_files(NOW_MS + 60_000) == 3
    assert not [name for name in rig.names() if name.startswith("00000000000000000000")]


def test_a_read_that_began_before_the_deletion_can_be_finished() -> None:
    rig = Rig()
    log = filled(rig)
    piece = log.read(0, bytes_max=10**6, end_offset=40)
    assert piece is not None

    log.delete_records_before(30)

    assert len(piece.file.read(piece.position, piece.size_bytes)) == piece.size_bytes


def test_a_directory_touches_the_files_only_when_its_checkpoint_is_durable() -> None:
    """Otherwise a power loss could keep an older and a newer segment and lose one between."""
    rig = Rig()
    directory = rig.open_directory()
    log = rig.open_in(directory)
    for _ in range(40):
        append(log)
    log.advance_high_watermark(40)
    log.delete_records_before(15)

    directory.delete_due_files(NOW_MS)
    assert "00000000000000000000.log" in rig.names()

    directory.write_checkpoints()
    directory.delete_due_files(NOW_MS)
    assert "00000000000000000000.log" in rig.names()

    rig.finish_syncs()
    directory.delete_due_files(NOW_MS)
    assert "00000000000000000000.log.deleted" in rig.names()
