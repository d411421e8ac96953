"""A log directory: found partitions, checkpoints, the mark of a clean stop, deletion."""

from __future__ import annotations

import pytest

from tests.unit.core.storage.given import (
    NOW_MS,
    PARTITION,
    ROOT,
    TOPIC_ID,
    Rig,
    append_values,
    read_values,
)
from tidelog.core.model.ids import TopicPartition
from tidelog.core.storage import events, meta_properties
from tidelog.core.storage.directory import LogDirectory
from tidelog.core.storage.log import Log

OTHER = TopicPartition("with-dashes", 12)


def opened(rig: Rig) -> tuple[LogDirectory, Log]:
    directory = rig.open_directory()
    return directory, rig.open_in(directory)


def content(rig: Rig, name: str) -> bytes:
    file = rig.disk.open(f"{ROOT}/{name}")
    return file.read(0, file.size_bytes)


def test_partitions_are_found_by_the_names_of_their_directories() -> None:
    rig = Rig()
    directory, log = opened(rig)
    other = rig.open_in(directory, OTHER)
    append_values(log, "a")
    append_values(other, "b", "c")
    rig.disk.make_directory(f"{ROOT}/no partition")
    rig.kill()

    directory = rig.open_directory()

    assert directory.found == [PARTITION, OTHER]
    assert directory.topic_id_of(OTHER) == TOPIC_ID
    logs = [rig.open_in(directory, each) for each in directory.found]
    assert [read_values(one) for one in logs] == [["a"], ["b", "c"]]
    directory.check()


def test_a_clean_stop_leaves_its_mark_and_the_next_start_removes_it() -> None:
    rig = Rig()
    directory, log = opened(rig)
    append_values(log, "a", "b")
    log.advance_high_watermark(2)
    directory.close_cleanly(broker_epoch=7)
    assert content(rig, ".kafka_cleanshutdown") == b'{"version":0,"brokerEpoch":7}'
    rig.lose_power()

    directory, log = opened(rig)

    assert directory.was_clean
    assert (log.log_end_offset, log.high_watermark, log.recovery_point) == (2, 2, 2)
    assert not rig.trace.of(events.LogRecovered)
    assert ".kafka_cleanshutdown" not in rig.names(ROOT)
    rig.lose_power()
    assert not rig.open_directory().was_clean


def test_a_stop_before_the_logs_were_looked_at_proves_nothing_about_them() -> None:
    """The power failed, and the next process ended before it knew which logs to open."""
    rig = Rig()
    _, log = opened(rig)
    append_values(log, "a", "b")
    rig.lose_power()
    directory = rig.open_directory()
    assert directory.found and not directory.was_clean

    directory.close_cleanly(broker_epoch=8)

    after = rig.open_directory()
    assert not after.was_clean
    assert after.clean_broker_epoch is None


def test_a_clean_directory_that_nobody_touched_stays_clean() -> None:
    rig = Rig()
    directory, log = opened(rig)
    append_values(log, "a", "b")
    directory.close_cleanly(broker_epoch=7)

    rig.open_directory().close_cleanly(broker_epoch=8)

    after = rig.open_directory()
    assert after.was_clean
    assert after.clean_broker_epoch == 8


@pytest.mark.parametrize("mark", [b"", b"{}", b"[]", b'{"brokerEpoch":-1}', b'{"brokerEpoch":"7"}'])
def test_a_mark_without_a_broker_epoch_proves_a_clean_stop_of_nobody(mark: bytes) -> None:
    rig = Rig()
    directory, _ = opened(rig)
    directory.close_cleanly(broker_epoch=7)
    file = rig.disk.open(f"{ROOT}/.kafka_cleanshutdown")
    file.truncate(0)
    file.append(mark)

    after = rig.open_directory()

    assert after.was_clean
    assert after.clean_broker_epoch is None


def test_checkpoints_are_written_in_kafkas_format() -> None:
    rig = Rig()
    directory, log = opened(rig)
    append_values(log, "a", "b", "c")
    log.want_sync()
    rig.finish_syncs()
    log.advance_high_watermark(2)
    log.delete_records_before(1)

    directory.write_checkpoints()
    rig.finish_syncs()

    assert content(rig, "recovery-point-offset-checkpoint") == b"0\n1\norders 3 3\n"
    assert content(rig, "replication-offset-checkpoint") == b"0\n1\norders 3 2\n"
    assert content(rig, "log-start-offset-checkpoint") == b"0\n1\norders 3 1\n"


def test_checkpointed_offsets_are_used_at_the_next_start() -> None:
    rig = Rig()
    directory, log = opened(rig)
    append_values(log, "a", "b", "c")
    log.want_sync()
    rig.finish_syncs()
    log.advance_high_watermark(3)
    log.delete_records_before(2)
    directory.write_checkpoints()
    rig.finish_syncs()
    rig.lose_power()

    _, log = opened(rig)

    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (2, 3, 3)
    assert rig.trace.of(events.LogRecovered)[0].recovery_point == 3


def test_a_checkpoint_asked_for_while_one_is_written_follows_it() -> None:
    rig = Rig()
    directory, log = opened(rig)
    append_values(log, "a")
    directory.write_checkpoints()
    log.advance_high_watermark(1)
    directory.write_checkpoints()
    log.want_sync()
    rig.finish_syncs()
    assert content(rig, "replication-offset-checkpoint") == b"0\n1\norders 3 1\n"
    assert content(rig, "recovery-point-offset-checkpoint") == b"0\n1\norders 3 0\n"

    directory.write_checkpoints()
    rig.finish_syncs()
    assert content(rig, "recovery-point-offset-checkpoint") == b"0\n1\norders 3 1\n"


@pytest.mark.parametrize(
    "damage", [b"0\n2\norders 3 1\n", b"\0\0\0", b"0\n1\norders x 1\n", b"9\n"]
)
def test_torn_checkpoints_only_cost_a_scan(damage: bytes) -> None:
    rig = Rig()
    directory, log = opened(rig)
    append_values(log, "a", "b")
    log.want_sync()
    rig.finish_syncs()
    directory.write_checkpoints()
    rig.finish_syncs()
    for name in ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint"):
        file = rig.disk.open(f"{ROOT}/{name}")
        file.truncate(0)
        file.append(damage)
    rig.kill()

    _, log = opened(rig)

    assert read_values(log) == ["a", "b"]
    assert len(rig.trace.of(events.FileDiscarded)) >= 2


def test_a_truncation_lowers_the_durable_recovery_point_first() -> None:
    """Otherwise what is written behind the cut would be trusted although nobody synced it."""
    rig = Rig()
    directory, log = opened(rig)
    append_values(log, *[f"value {at}" for at in range(30)])
    log.want_sync()
    rig.finish_syncs()
    directory.write_checkpoints()
    rig.finish_syncs()
    assert content(rig, "recovery-point-offset-checkpoint") == b"0\n1\norders 3 30\n"

    log.truncate_to(5)

    assert content(rig, "recovery-point-offset-checkpoint") == b"0\n1\norders 3 5\n"


def test_a_recovery_that_cuts_below_the_recovery_point_lowers_it_durably() -> None:
    """Seed 20001605 of `storage`: what was written behind the cut was never scanned again."""
    rig = Rig()
    directory, log = opened(rig)
    append_values(log, *[f"value {at}" for at in range(30)])
    log.want_sync()
    rig.finish_syncs()
    directory.write_checkpoints()
    rig.finish_syncs()
    rig.kill()
    damaged = rig.file(max(name for name in rig.names() if name.endswith(".log")))
    damaged.flip(len(damaged.data) - 1, 1)

    _, log = opened(rig)

    assert log.recovery_point == log.log_end_offset == 29
    assert content(rig, "recovery-point-offset-checkpoint") == b"0\n1\norders 3 29\n"


def test_logs_that_are_not_open_keep_their_checkpointed_offsets() -> None:
    rig = Rig()
    directory, log = opened(rig)
    other = rig.open_in(directory, OTHER)
    append_values(log, "a")
    append_values(other, "b")
    directory.close_cleanly()
    rig.kill()

    directory, _ = opened(rig)
    directory.write_checkpoints()
    rig.finish_syncs()

    assert b"with-dashes 12 1\n" in content(rig, "recovery-point-offset-checkpoint")


def test_a_deleted_partition_goes_in_two_steps() -> None:
    rig = Rig()
    directory, log = opened(rig)
    append_values(log, "a")

    directory.remove_log(PARTITION, unique="abc", wall_ms=NOW_MS)

    assert "orders-3.abc-delete" in rig.names(ROOT)
    assert PARTITION not in directory.logs
    directory.delete_due_files(NOW_MS + 59_999)
    assert "orders-3.abc-delete" in rig.names(ROOT)
    directory.delete_due_files(NOW_MS + 60_000)
    assert "orders-3.abc-delete" not in rig.names(ROOT)


def test_a_deleted_partition_is_removed_by_the_next_start() -> None:
    rig = Rig()
    directory, log = opened(rig)
    append_values(log, "a")
    directory.remove_log(PARTITION, unique="abc", wall_ms=NOW_MS)
    rig.kill()

    assert rig.open_directory().found == []
    assert "orders-3.abc-delete" not in rig.names(ROOT)


def test_a_partition_with_the_name_of_a_deleted_one_begins_at_zero_durably() -> None:
    rig = Rig()
    directory, log = opened(rig)
    append_values(log, *[f"value {at}" for at in range(30)])
    log.advance_high_watermark(30)
    log.delete_records_before(20)
    log.want_sync()
    rig.finish_syncs()
    directory.write_checkpoints()
    rig.finish_syncs()
    directory.remove_log(PARTITION, unique="abc", wall_ms=NOW_MS)

    log = rig.open_in(directory)
    append_values(log, "new", leader_epoch=0)
    log.want_sync()
    rig.finish_syncs()
    assert log.synced_end_offset == 1
    rig.lose_power()

    _, log = opened(rig)
    assert (log.log_start_offset, read_values(log)) == (0, ["new"])


def test_a_long_topic_name_still_makes_a_valid_deleted_name() -> None:
    rig = Rig()
    directory = rig.open_directory()
    partition = TopicPartition("t" * 249, 10_000)
    log = rig.open_in(directory, partition)
    append_values(log, "a")

    directory.remove_log(partition, unique="0123456789abcdef0123456789abcdef", wall_ms=NOW_MS)

    (name,) = [name for name in rig.names(ROOT) if name.endswith("-delete")]
    assert len(name) == 255


def test_meta_properties_are_kept_durably() -> None:
    rig = Rig()
    rig.open_directory()
    assert meta_properties.read(rig.disk, ROOT) is None

    meta_properties.write(rig.disk, ROOT, {"version": "1", "node.id": "4", "cluster.id": "x=y"})
    rig.lose_power()

    assert meta_properties.read(rig.disk, ROOT) == {
        "version": "1",
        "node.id": "4",
        "cluster.id": "x=y",
    }
