"""Opening a log after a stop that was not clean."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.core.storage.given import (
    DIRECTORY,
    NOW_MS,
    PARTITION,
    TOPIC_ID,
    Rig,
    append,
    append_values,
    batch,
    read_values,
)
from tidelog.core.storage import events
from tidelog.core.storage.log import Log
from tidelog.core.storage.offset_index import ENTRY

VALUES = [f"value {at}" for at in range(40)]
FIRST = "00000000000000000000"


def filled(rig: Rig, values: list[str] = VALUES) -> Log:
    log = rig.open()
    append_values(log, *values)
    return log


def crashed(rig: Rig, **offsets: Any) -> Log:
    rig.kill()
    return rig.open(**offsets)


def final_file(log: Log) -> str:
    return f"{log.files.segments[-1].base_offset:020d}.log"


def test_a_killed_process_loses_nothing() -> None:
    rig = Rig()
    log = filled(rig)

    log = crashed(rig)

    assert read_values(log) == VALUES
    assert not rig.trace.of(events.TailCut)
    append_values(log, "more")
    assert read_values(log) == [*VALUES, "more"]


@pytest.mark.scenario("X-32")
@pytest.mark.parametrize("missing_bytes", [1, 20, 75])
def test_a_torn_batch_at_the_end_is_cut(missing_bytes: int) -> None:
    rig = Rig()
    log = filled(rig)
    name = final_file(log)
    rig.overwrite(name, bytes(rig.file(name).data)[:-missing_bytes])

    log = crashed(rig)

    assert read_values(log) == VALUES[:-1]
    (cut,) = rig.trace.of(events.TailCut)
    assert (cut.end_offset, cut.partition) == (39, str(PARTITION))
    assert not cut.below_recovery_point
    append_values(log, "again")
    assert log.log_end_offset == 40
    assert read_values(crashed(rig)) == [*VALUES[:-1], "again"]


@pytest.mark.scenario("X-32")
def test_a_corrupt_batch_in_the_middle_cuts_all_that_follows() -> None:
    rig = Rig()
    log = filled(rig)
    second = log.files.segments[1].base_offset
    rig.store.flip_bit(f"{DIRECTORY}/{second:020d}.log", position=100, bit=3)

    log = crashed(rig)

    assert log.log_end_offset == second + 1
    assert read_values(log) == VALUES[: second + 1]
    assert len(rig.trace.of(events.SegmentDropped)) == 2
    assert [name for name in rig.names() if name.endswith(".log")] == [
        f"{FIRST}.log",
        f"{second:020d}.log",
    ]


def test_a_page_of_zeros_is_cut() -> None:
    rig = Rig()
    log = filled(rig, VALUES[:10])
    data = bytes(rig.file(f"{FIRST}.log").data)
    rig.overwrite(f"{FIRST}.log", data + bytes(4_096))

    log = crashed(rig)

    assert read_values(log) == VALUES[:10]
    assert rig.trace.of(events.TailCut)[0].cut_bytes == 4_096


def test_a_segment_behind_a_missing_one_is_no_part_of_the_log() -> None:
    rig = Rig()
    log = filled(rig)
    second, third = (segment.base_offset for segment in log.files.segments[1:3])
    rig.remove(f"{second:020d}.log")

    log = crashed(rig)

    assert read_values(log) == VALUES[:second]
    dropped = [event.base_offset for event in rig.trace.of(events.SegmentDropped)]
    assert dropped[0] == third


def test_a_tail_of_an_older_leader_that_came_back_is_cut() -> None:
    """A truncated segment's successor, deleted but not durably so, fits by its offsets alone."""
    rig = Rig()
    log = filled(rig, VALUES[:24])
    assert [segment.base_offset for segment in log.files.segments] == [0, 12]
    old = bytes(rig.file(f"{12:020d}.log").data)
    log.truncate_to(11)
    append_values(log, "new", leader_epoch=1)
    rig.kill()
    rig.disk.open(f"{DIRECTORY}/{12:020d}.log").append(old)

    log = rig.open(recovery_point=11)

    assert read_values(log) == [*VALUES[:11], "new"]
    assert "leader epoch 0 after 1" in rig.trace.of(events.TailCut)[0].reason


def test_below_the_recovery_point_nothing_is_read() -> None:
    rig = Rig()
    log = filled(rig)
    second = log.files.segments[1].base_offset
    rig.finish_syncs()
    rig.store.flip_bit(f"{DIRECTORY}/{FIRST}.log", position=100, bit=3)

    log = crashed(rig, recovery_point=second)

    assert log.log_end_offset == 40
    (told,) = rig.trace.of(events.LogRecovered)
    assert (told.recovery_point, told.scanned_segments) == (second, 3)
    assert told.scanned_bytes == sum(segment.file.size_bytes for segment in log.files.segments[1:])


def test_damage_to_synced_bytes_of_a_scanned_segment_is_told() -> None:
    rig = Rig()
    filled(rig, VALUES[:10])
    rig.store.flip_bit(f"{DIRECTORY}/{FIRST}.log", position=300, bit=3)

    crashed(rig, recovery_point=9)

    assert rig.trace.of(events.TailCut)[0].below_recovery_point


@pytest.mark.parametrize(
    "damage", ["missing", "cut", "outside"], ids=lambda word: f"{word} offset index"
)
def test_an_unusable_index_of_a_trusted_segment_is_rebuilt(damage: str) -> None:
    rig = Rig()
    log = filled(rig)
    second = log.files.segments[1].base_offset
    good = bytes(rig.file(f"{FIRST}.index").data)
    assert good
    if damage == "missing":
        rig.remove(f"{FIRST}.index")
    else:
        rig.overwrite(f"{FIRST}.index", good[:-3] if damage == "cut" else good + ENTRY.pack(99, 99))

    log = crashed(rig, recovery_point=second)

    assert bytes(rig.file(f"{FIRST}.index").data) == good
    assert rig.trace.of(events.IndexRebuilt)[0].base_offset == 0
    assert read_values(log) == VALUES


def test_indexes_of_scanned_segments_are_never_trusted() -> None:
    rig = Rig()
    log = filled(rig)
    good = bytes(rig.file(f"{FIRST}.index").data), bytes(rig.file(f"{FIRST}.timeindex").data)
    rig.overwrite(f"{FIRST}.index", bytes(8))
    rig.overwrite(f"{FIRST}.timeindex", b"\x7f" * 12)

    log = crashed(rig)

    found = bytes(rig.file(f"{FIRST}.index").data), bytes(rig.file(f"{FIRST}.timeindex").data)
    assert found == good
    assert log.find_by_timestamp(NOW_MS) is not None


@pytest.mark.parametrize(
    "content", [None, b"", b"0\n2\n0 0\n", b"0\n1\n0 0", b"\0" * 8, b"0\n1\nx 0\n"]
)
def test_unusable_leader_epochs_are_rebuilt_from_the_batches(content: bytes | None) -> None:
    rig = Rig()
    log = rig.open()
    for leader_epoch in (1, 4, 5):
        append_values(log, *VALUES[:15], leader_epoch=leader_epoch)
    if content is None:
        rig.remove("leader-epoch-checkpoint")
    else:
        rig.overwrite("leader-epoch-checkpoint", content)

    log = crashed(rig, recovery_point=45)

    assert log.epochs.entries == [(1, 0), (4, 15), (5, 30)]
    assert rig.trace.of(events.LeaderEpochsRebuilt)


def test_a_leader_epoch_without_records_is_forgotten() -> None:
    rig = Rig()
    log = filled(rig, VALUES[:3])
    log.begin_leader_epoch(9)

    assert crashed(rig).epochs.entries == [(0, 0)]


def test_a_torn_snapshot_is_discarded_and_the_log_replayed() -> None:
    rig = Rig()
    log = rig.open()
    for sequence in range(40):
        append(log, batch(producer_id=1, producer_epoch=0, sequence=sequence))
    snapshots = [name for name in rig.names() if name.endswith(".snapshot")]
    log.close_cleanly()
    final = max(name for name in rig.names() if name.endswith(".snapshot"))
    rig.overwrite(final, bytes(rig.file(final).data)[:-1] + b"\x07")
    rig.overwrite(snapshots[-1], b"")
    rig.kill()

    log = rig.open(clean=True)

    assert append(log, batch(producer_id=1, producer_epoch=0, sequence=38)).is_duplicate
    assert len(rig.trace.of(events.FileDiscarded)) == 2


def test_snapshots_beyond_the_scanned_part_are_not_believed() -> None:
    """They may tell of a tail that was truncated and replaced."""
    rig = Rig()
    log = rig.open()
    for sequence in range(40):
        append(log, batch(producer_id=1, producer_epoch=0, sequence=sequence))
    log.close_cleanly()
    rig.overwrite(f"{40:020d}.snapshot", bytes(rig.file(f"{40:020d}.snapshot").data))

    log = crashed(rig)

    assert [name for name in rig.names() if name.endswith(".snapshot")] == []
    assert append(log, batch(producer_id=1, producer_epoch=0, sequence=40)).base_offset == 40


def test_leftovers_of_interrupted_operations_are_removed() -> None:
    rig = Rig()
    filled(rig)
    strays = [
        f"{FIRST}.log.deleted",
        f"{5:020d}.log.cleaned",
        f"{6:020d}.log.swap",
        "leader-epoch-checkpoint.tmp",
        f"{77:020d}.index",
        f"{77:020d}.timeindex",
    ]
    for name in strays:
        rig.disk.open(f"{DIRECTORY}/{name}")

    log = crashed(rig)

    assert not set(strays) & set(rig.names())
    assert read_values(log) == VALUES


def test_segments_before_the_log_start_are_removed() -> None:
    rig = Rig()
    log = filled(rig)
    third = log.files.segments[2].base_offset

    log = crashed(rig, log_start_offset=third + 1)

    assert log.files.segments[0].base_offset == third
    assert read_values(log) == VALUES[third + 1 :]


def test_a_log_that_ends_before_its_start_starts_anew_there() -> None:
    rig = Rig()
    filled(rig)

    log = crashed(rig, log_start_offset=1_000)

    assert (log.log_start_offset, log.log_end_offset) == (1_000, 1_000)
    append_values(log, "new")
    assert read_values(log) == ["new"]


def test_a_clean_mark_that_lies_does_no_harm() -> None:
    rig = Rig()
    log = filled(rig)
    name = final_file(log)
    rig.overwrite(name, bytes(rig.file(name).data)[:-10])
    rig.kill()

    log = rig.open(clean=True)

    assert read_values(log) == VALUES[:-1]
    assert rig.trace.of(events.LogRecovered)


def test_recovered_segments_are_synced_before_the_recovery_point_moves() -> None:
    rig = Rig()
    filled(rig)

    log = crashed(rig)

    assert log.recovery_point == 0
    rig.finish_syncs()
    assert log.recovery_point == log.files.segments[-1].base_offset
    log.want_sync()
    append_values(log, "more")
    log.want_sync()
    rig.finish_syncs()
    assert log.recovery_point == 41


def test_the_topic_id_is_found_again() -> None:
    rig = Rig()
    filled(rig)
    rig.kill()

    assert rig.open(topic_id=None).topic_id == TOPIC_ID


@pytest.mark.parametrize(
    "content", [b"", b"version: 0\n", b"version: 0\ntopic_id: AAE", b"\0" * 43]
)
def test_a_torn_topic_id_is_none(content: bytes) -> None:
    rig = Rig()
    filled(rig)
    rig.overwrite("partition.metadata", content)
    rig.kill()

    assert rig.open(topic_id=None).topic_id is None


def test_preallocated_indexes_of_kafka_are_read_and_continued() -> None:
    rig = Rig()
    filled(rig, VALUES[:10]).close_cleanly()
    rig.kill()
    entries = bytes(rig.file(f"{FIRST}.index").data)
    rig.overwrite(f"{FIRST}.index", entries + bytes(800))
    rig.overwrite(f"{FIRST}.timeindex", bytes(rig.file(f"{FIRST}.timeindex").data) + bytes(1_200))

    log = rig.open(clean=True)
    append_values(log, *VALUES[10:])
    log.check()

    assert read_values(log) == VALUES
    assert log.files.segments[0].offsets.entries()[: len(entries) // 8] == list(
        ENTRY.iter_unpack(entries)
    )


def test_a_cut_is_durable_before_anything_is_written_behind_it() -> None:
    """The old bytes must not come back, by a power loss, between the new ones."""
    rig = Rig()
    filled(rig, VALUES[:10])
    data = bytes(rig.file(f"{FIRST}.log").data)
    rig.overwrite(f"{FIRST}.log", data[:-30] + bytes(30))

    crashed(rig)

    file = rig.file(f"{FIRST}.log")
    assert file.durable == file.data
    assert len(file.data) < len(data)


def test_names_that_a_killed_process_did_not_sync_are_synced_by_the_next() -> None:
    rig = Rig(seed=3)
    filled(rig, VALUES[:5])
    log = crashed(rig)
    append_values(log, VALUES[5])
    log.want_sync()
    rig.finish_syncs()
    assert log.synced_end_offset == 6

    for _ in range(3):
        rig.lose_power()
        assert read_values(rig.open()) == VALUES[:6]
