"""Deleted segments that a power loss brings back, and other old bytes that must not win."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.core.storage.given import DIRECTORY, ROOT, SMALL, Rig, append_values, read_values
from tidelog.core.storage.disk import DiskError
from tidelog.core.storage.log import Log

MANY = [f"value {at}" for at in range(100)]
START_OFFSET = 75
CHECKPOINTS = ["recovery-point-offset-checkpoint", "log-start-offset-checkpoint"]


def headless(rig: Rig, *, start_offset: int) -> tuple[Log, dict[int, bytes]]:
    """A log whose head was deleted, everything durable; the deleted segments' bytes."""
    directory = rig.open_directory()
    log = rig.open_in(directory)
    append_values(log, *MANY)
    log.want_sync()
    log.advance_high_watermark(len(MANY))
    segments = {
        segment.base_offset: segment.file.read(0, segment.file.size_bytes)
        for segment in log.files.segments
    }
    log.delete_records_before(start_offset)
    rig.finish_syncs()
    directory.write_checkpoints()
    rig.finish_syncs()
    directory.delete_due_files(rig.wall_ms)
    rig.disk.sync_directory_now(DIRECTORY)
    kept = {segment.base_offset for segment in log.files.segments}
    names = {f"{base_offset:020d}.log" for base_offset in segments}
    assert names & set(rig.names()) == {f"{base_offset:020d}.log" for base_offset in kept}
    return log, {base: content for base, content in segments.items() if base not in kept}


@pytest.mark.scenario("X-32")
@pytest.mark.parametrize("lost", [[], CHECKPOINTS[:1], CHECKPOINTS[1:], CHECKPOINTS], ids=len)
@pytest.mark.parametrize("back", [[0], [1], [4], [0, 1], [0, 4], [1, 3], [0, 2, 4], [0, 1, 3]])
def test_a_deleted_head_that_comes_back_with_holes_costs_nothing_behind_it(
    back: list[int], lost: list[str]
) -> None:
    """Storage seed 610515: a hole in the head was taken for one in an unsynced tail."""
    rig = Rig()
    _, deleted = headless(rig, start_offset=START_OFFSET)
    rig.lose_power()
    for at in back:
        base_offset = sorted(deleted)[at]
        rig.disk.open(f"{DIRECTORY}/{base_offset:020d}.log").append(deleted[base_offset])
    for name in lost:
        rig.disk.open(f"{ROOT}/{name}").remove()

    log = rig.open_in(rig.open_directory())

    assert (log.log_start_offset, log.log_end_offset) == (START_OFFSET, len(MANY))
    assert read_values(log) == MANY[START_OFFSET:]
    append_values(log, "more")
    assert read_values(crashed_in_directory(rig))[-2:] == [MANY[-1], "more"]


def crashed_in_directory(rig: Rig) -> Log:
    rig.kill()
    return rig.open_in(rig.open_directory())


def test_a_deleted_head_that_comes_back_whole_without_its_checkpoint_is_kept() -> None:
    """Nothing tells that it was deleted but a file that could be wrong: no record is at stake."""
    rig = Rig()
    _, deleted = headless(rig, start_offset=START_OFFSET)
    rig.lose_power()
    for base_offset, content in deleted.items():
        rig.disk.open(f"{DIRECTORY}/{base_offset:020d}.log").append(content)
    rig.disk.open(f"{ROOT}/{CHECKPOINTS[1]}").remove()

    log = rig.open_in(rig.open_directory())

    assert read_values(log) == MANY


@pytest.mark.parametrize("seed", range(20))
def test_leader_epochs_tell_where_the_log_starts_before_a_deleted_segment_loses_its_name(
    seed: int,
) -> None:
    """Whenever the power fails: a log whose head has holes knows that it is a deleted head."""
    rig = Rig(seed=seed)
    directory = rig.open_directory()
    log = rig.open_in(directory)
    append_values(log, *MANY)
    log.want_sync()
    rig.finish_syncs()
    log.advance_high_watermark(len(MANY))
    log.delete_records_before(START_OFFSET)
    directory.write_checkpoints()
    for _ in range(seed):
        rig.world.step()
    directory.delete_due_files(rig.wall_ms)
    rig.lose_power()
    for name in CHECKPOINTS:
        if name in rig.names(ROOT):
            rig.disk.open(f"{ROOT}/{name}").remove()

    log = rig.open_in(rig.open_directory())

    assert log.log_start_offset <= START_OFFSET
    assert read_values(log) == MANY[log.log_start_offset :]


def test_an_offline_directory_opens_no_log_and_touches_no_file() -> None:
    """Without its checkpoints nobody knows where its logs start."""
    rig = Rig()
    headless(rig, start_offset=START_OFFSET)
    rig.kill()
    rig.store.fail_next_sync()
    directory = rig.open_directory()
    assert directory.offline is not None
    operations = rig.store.operations

    with pytest.raises(DiskError, match="sync failed"):
        rig.open_in(directory)

    assert rig.store.operations == operations
    assert not directory.logs


def test_a_hole_below_the_recovery_point_lies_in_a_deleted_head() -> None:
    """The log start checkpoint is lost, and the leader epochs are torn by the same power loss."""
    rig = Rig()
    _, deleted = headless(rig, start_offset=START_OFFSET)
    rig.lose_power()
    for base_offset in sorted(deleted)[:2]:
        rig.disk.open(f"{DIRECTORY}/{base_offset:020d}.log").append(deleted[base_offset])
    rig.disk.open(f"{ROOT}/{CHECKPOINTS[1]}").remove()
    rig.overwrite("leader-epoch-checkpoint", b"")

    log = rig.open_in(rig.open_directory())

    assert START_OFFSET - 12 < log.log_start_offset <= START_OFFSET
    assert read_values(log) == MANY[log.log_start_offset :]


@pytest.mark.parametrize("seed", range(20))
def test_a_clean_stop_before_deleted_segments_were_renamed_needs_no_checkpoint(seed: int) -> None:
    """Their bytes were never synced, and the log start checkpoint is lost."""
    rig = Rig(seed=seed)
    directory = rig.open_directory()
    log = rig.open_in(directory)
    append_values(log, *MANY)
    log.advance_high_watermark(len(MANY))
    log.delete_records_before(START_OFFSET)
    directory.close_cleanly()
    rig.lose_power()
    rig.disk.open(f"{ROOT}/{CHECKPOINTS[1]}").remove()

    directory = rig.open_directory()
    log = rig.open_in(directory)

    assert directory.was_clean
    assert read_values(log) == MANY[log.log_start_offset :]


@pytest.mark.parametrize("seed", range(20))
def test_an_index_that_was_emptied_does_not_come_back_after_a_clean_stop(seed: int) -> None:
    """Its final entry lay behind the end of the segment: the log seemed to end too early."""
    rig = Rig(replace(SMALL, segment_bytes=2_000, index_interval_bytes=600), seed=seed)
    directory = rig.open_directory()
    log = rig.open_in(directory)
    append_values(log, *MANY[:30])
    log.want_sync()
    rig.finish_syncs()
    rig.store.flip_bit(log.files.segments[0].file.path, position=400, bit=3)
    rig.kill()
    directory = rig.open_directory()
    log = rig.open_in(directory)
    assert 0 < log.log_end_offset < 30
    directory.close_cleanly()
    rig.lose_power()

    found = rig.open_in(rig.open_directory())

    assert found.log_end_offset == log.log_end_offset
    assert read_values(found) == MANY[: found.log_end_offset]
