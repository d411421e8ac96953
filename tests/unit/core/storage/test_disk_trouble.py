"""A disk that refuses: nothing unwritten is acknowledged or served; the directory goes offline."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.core.storage.given import (
    NOW_MS,
    PARTITION,
    Rig,
    append_values,
    batch,
    read_values,
)
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.storage import events
from tidelog.core.storage.directory import LogDirectory
from tidelog.core.storage.disk import DiskError
from tidelog.core.storage.log import Appended, Log


def write(log: Log, value: str = "x") -> Appended:
    return log.append_as_leader(batch([value]), leader_epoch=0, wall_ms=NOW_MS)


def opened(rig: Rig) -> tuple[LogDirectory, Log]:
    directory = rig.open_directory()
    return directory, rig.open_in(directory)


@pytest.mark.scenario("X-31")
@pytest.mark.parametrize("bytes_left", [0, 1, 40, 70])
def test_a_full_disk_in_mid_append_acknowledges_nothing_and_breaks_the_log(bytes_left: int) -> None:
    rig = Rig()
    directory, log = opened(rig)
    append_values(log, "a", "b")
    rig.store.fill_up(bytes_left=bytes_left)

    result = write(log)

    assert result.error == ErrorCode.KAFKA_STORAGE_ERROR
    assert result.message is not None and "no space left" in result.message
    assert log.log_end_offset == 2
    assert directory.offline is not None and "no space left" in directory.offline
    assert len(rig.trace.of(events.DirectoryOffline)) == 1


@pytest.mark.scenario("X-31")
def test_after_the_space_is_back_the_broken_log_still_refuses() -> None:
    rig = Rig()
    _, log = opened(rig)
    append_values(log, "a")
    rig.store.fill_up(bytes_left=10)
    write(log)
    rig.store.heal()

    assert write(log).error == ErrorCode.KAFKA_STORAGE_ERROR
    with pytest.raises(DiskError):
        log.read(0, bytes_max=100, end_offset=1)


@pytest.mark.scenario("X-31")
def test_a_restart_with_space_keeps_what_was_acknowledged_and_cuts_the_torn_rest() -> None:
    rig = Rig()
    _, log = opened(rig)
    append_values(log, "a", "b")
    rig.store.fill_up(bytes_left=40)
    write(log, "torn")
    rig.store.heal()
    rig.kill()

    directory, log = opened(rig)

    assert directory.offline is None
    assert read_values(log) == ["a", "b"]
    append_values(log, "c")
    assert read_values(log) == ["a", "b", "c"]


def test_one_broken_log_takes_all_logs_of_its_directory_along() -> None:
    rig = Rig()
    directory, log = opened(rig)
    other = rig.open_in(directory, TopicPartition("other", 0))
    append_values(log, "a")
    append_values(other, "b")
    rig.store.fail_operation(after=0)

    assert write(log).error == ErrorCode.KAFKA_STORAGE_ERROR

    assert write(other).error == ErrorCode.KAFKA_STORAGE_ERROR
    directory.check()


def test_a_failed_sync_is_final() -> None:
    rig = Rig()
    directory, log = opened(rig)
    append_values(log, "a")
    rig.store.fail_next_sync()
    log.want_sync()
    rig.finish_syncs()
    (path,) = rig.sync_failures

    directory.on_sync_failed(path, "input/output error")

    assert log.failed is not None and "sync failed" in log.failed
    assert write(log).error == ErrorCode.KAFKA_STORAGE_ERROR
    assert log.synced_end_offset == 0
    log.want_sync()
    directory.write_checkpoints()
    directory.close_cleanly()
    assert ".kafka_cleanshutdown" not in rig.names("data/logs")


@pytest.mark.parametrize("after", range(40))
def test_an_error_at_any_operation_leaves_a_log_that_can_be_recovered(after: int) -> None:
    """Appends, rolls, truncation, deletion, syncs: whichever operation it hits."""
    rig = Rig(seed=after)
    directory, log = opened(rig)
    append_values(log, "kept")
    rig.store.fail_operation(after=after)
    acknowledged = 1
    for at in range(20):
        if write(log, f"value {at}").error != 0:
            break
        acknowledged += 1
    if log.failed is None:
        log.advance_high_watermark(log.log_end_offset)
        log.delete_records_before(3)
        directory.delete_due_files(NOW_MS)
        log.want_sync()
        directory.write_checkpoints()
    rig.store.heal()
    rig.kill()

    _, log = opened(rig)
    log.check()

    values = read_values(log)
    assert log.log_end_offset >= acknowledged
    assert (
        values
        == ["kept", *[f"value {at}" for at in range(20)]][
            log.log_start_offset : log.log_start_offset + len(values)
        ]
    )


@pytest.mark.parametrize(
    "ask",
    [
        lambda log: log.read(0, bytes_max=100, end_offset=30),
        lambda log: log.find_by_timestamp(NOW_MS),
        lambda log: log.largest_timestamp(),
    ],
    ids=["read", "find by timestamp", "largest timestamp"],
)
def test_a_read_error_breaks_the_log_too(ask: Callable[[Log], object]) -> None:
    rig = Rig()
    directory, log = opened(rig)
    append_values(log, *["a"] * 30)
    rig.store.fail_operation(after=0)

    with pytest.raises(DiskError):
        ask(log)

    assert log.failed is not None
    assert directory.offline is not None


def test_a_directory_that_cannot_be_opened_is_offline_with_a_reason() -> None:
    rig = Rig()
    rig.store.fail_operation(after=3)

    directory = rig.open_directory()

    assert directory.offline is not None
    assert "input/output error" in directory.offline


def test_a_log_that_cannot_be_opened_takes_its_directory_offline() -> None:
    rig = Rig()
    directory, log = opened(rig)
    append_values(log, "a")
    rig.kill()
    directory = rig.open_directory()
    rig.store.fail_operation(after=2)

    with pytest.raises(DiskError):
        rig.open_in(directory, PARTITION)

    assert directory.offline is not None
