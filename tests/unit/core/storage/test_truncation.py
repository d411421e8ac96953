"""Cutting the end of a log, and starting it anew."""

from __future__ import annotations

import pytest

from tests.unit.core.storage.given import (
    NOW_MS,
    Rig,
    append,
    append_values,
    batch,
    read_all,
    read_values,
)
from tidelog.core.storage import events
from tidelog.core.storage.log import Log


def filled(rig: Rig, count: int = 40) -> Log:
    log = rig.open()
    append_values(log, *[f"value {at}" for at in range(count)])
    return log


@pytest.mark.parametrize("end_offset", [0, 1, 9, 10, 11, 25, 39])
def test_everything_from_the_offset_on_is_gone_and_the_log_goes_on_there(end_offset: int) -> None:
    rig = Rig()
    log = filled(rig)

    assert log.truncate_to(end_offset)
    log.check()

    assert log.log_end_offset == end_offset
    append_values(log, "new", leader_epoch=1)
    expected = [*[f"value {at}" for at in range(end_offset)], "new"]
    assert read_values(log) == expected
    rig.kill()
    assert read_values(rig.open()) == expected


def test_an_offset_at_or_behind_the_end_cuts_nothing() -> None:
    log = filled(Rig(), 3)

    assert not log.truncate_to(3)
    assert not log.truncate_to(30)

    assert log.log_end_offset == 3


def test_a_batch_that_holds_the_offset_in_its_middle_goes_as_a_whole() -> None:
    """A follower copies whole batches: a log that ended inside one could never be continued."""
    log = Rig().open()
    for _ in range(3):
        append(log, batch(5))

    log.truncate_to(7)

    assert log.log_end_offset == 5
    assert len(read_all(log)) == 5


def test_the_high_watermark_goes_back_with_the_log_end() -> None:
    log = filled(Rig(), 10)
    log.advance_high_watermark(8)

    log.truncate_to(9)
    assert log.high_watermark == 8
    log.truncate_to(4)
    assert log.high_watermark == 4


def test_leader_epochs_that_have_no_records_left_are_forgotten() -> None:
    rig = Rig()
    log = rig.open()
    for leader_epoch in range(4):
        append_values(log, "a", "b", leader_epoch=leader_epoch)

    log.truncate_to(4)

    assert log.epochs.entries == [(0, 0), (1, 2)]
    assert bytes(rig.file("leader-epoch-checkpoint").data) == b"0\n2\n0 0\n1 2\n"


def test_an_epoch_that_began_without_a_record_is_forgotten_by_an_empty_truncation() -> None:
    log = filled(Rig(), 2)
    log.begin_leader_epoch(7)
    assert log.latest_leader_epoch == 7

    assert not log.truncate_to(2)

    assert log.latest_leader_epoch == 0


def test_snapshots_of_the_cut_tail_are_removed() -> None:
    rig = Rig()
    log = filled(rig)
    before = [name for name in rig.names() if name.endswith(".snapshot")]
    assert len(before) == 3

    log.truncate_to(13)

    after = [name for name in rig.names() if name.endswith(".snapshot")]
    assert after == before[:1]


def test_a_cut_segment_is_never_appended_to_again() -> None:
    """A sync that was under way during the cut must not count for the bytes that follow it."""
    rig = Rig()
    log = filled(rig, 6)
    log.want_sync()
    log.truncate_to(3)
    cut = log.files.segments[0].file

    append_values(log, "new", leader_epoch=1)
    rig.finish_syncs()

    assert log.files.segments[-1].file is not cut
    assert log.synced_end_offset <= 3
    log.want_sync()
    rig.finish_syncs()
    assert log.synced_end_offset == 4


def test_indexes_and_largest_timestamp_fit_what_is_left() -> None:
    log = Rig().open()
    for at in range(8):
        append(log, batch(timestamp_ms=NOW_MS + at))
    log.truncate_to(5)

    found = log.largest_timestamp()

    assert found is not None
    assert (found.offset, found.timestamp_ms) == (4, NOW_MS + 4)
    assert all(entry[0] < 5 for entry in log.files.segments[0].offsets.entries())


def test_starting_anew_forgets_everything() -> None:
    rig = Rig()
    log = filled(rig)
    log.start_anew_at(1_000)
    log.check()

    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (1_000,) * 3
    assert log.epochs.entries == []
    append_values(log, "new", leader_epoch=9)
    assert read_values(log) == ["new"]
    rig.kill()
    log = rig.open()
    assert (log.log_start_offset, read_values(log)) == (1_000, ["new"])
    assert rig.trace.of(events.LogStartedAnew)[0].at_offset == 1_000


def test_after_starting_anew_a_restart_must_look_at_everything_until_a_sync_is_done() -> None:
    """Until then the old segments may come back with their names."""
    rig = Rig()
    log = filled(rig)
    log.want_sync()
    rig.finish_syncs()
    assert log.recovery_point == 40

    log.start_anew_at(1_000)
    assert log.recovery_point == 0
    append_values(log, "new", leader_epoch=1)
    log.want_sync()
    rig.finish_syncs()
    assert log.recovery_point == 1_001


def test_a_log_without_any_segment_is_truncated_by_starting_anew() -> None:
    """Everything was deleted and then lost, only the checkpoint knows where the log began."""
    log = Rig().open()
    log.start_anew_at(24)
    assert log.files.segments == []

    assert log.truncate_to(10)
    log.check()

    assert (log.log_start_offset, log.log_end_offset) == (10, 10)
    append_values(log, "new")
    assert read_values(log) == ["new"]


def test_truncating_below_the_first_segment_starts_anew_there() -> None:
    rig = Rig()
    log = filled(rig)
    log.start_anew_at(100)
    append_values(log, "a")

    log.truncate_to(50)
    log.check()

    assert (log.log_start_offset, log.log_end_offset) == (50, 50)


def test_files_of_cut_segments_are_renamed_then_removed_after_the_delay() -> None:
    rig = Rig()
    log = filled(rig)
    log.truncate_to(5)

    doomed = [name for name in rig.names() if name.endswith(".deleted")]
    assert any(name.endswith(".log.deleted") for name in doomed)

    log.delete_due_files(NOW_MS)
    log.delete_due_files(NOW_MS + 59_999)
    assert [name for name in rig.names() if name.endswith(".deleted")] == doomed
    log.delete_due_files(NOW_MS + 60_000)
    assert not [name for name in rig.names() if name.endswith(".deleted")]


def test_two_truncations_to_the_same_offset_do_not_quarrel_about_names() -> None:
    rig = Rig()
    log = filled(rig)
    for leader_epoch in range(1, 4):
        log.truncate_to(5)
        append_values(log, *["x" * 50] * 30, leader_epoch=leader_epoch)
    log.delete_due_files(NOW_MS)
    log.delete_due_files(NOW_MS + 60_000)

    log.check()
    assert log.failed is None
    assert len(read_all(log)) == 35


def test_the_indexes_of_a_cut_segment_are_as_durable_as_its_end() -> None:
    """Old entries that a power loss brings back point into the middle of batches."""
    rig = Rig()
    log = filled(rig)
    log.want_sync()
    rig.finish_syncs()

    log.truncate_to(5)

    assert log.recovery_point == 5
    for suffix in ("index", "timeindex"):
        node = rig.file(f"{0:020d}.{suffix}")
        assert node.durable == node.data
