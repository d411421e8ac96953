"""What counts as durable, and in which order things become so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.core.storage.given import (
    DIRECTORY,
    NOW_MS,
    ROOT,
    SMALL,
    Rig,
    append,
    append_values,
    batch,
    read_values,
)
from tidelog.core.storage import events
from tidelog.worlds.simulator.disk import NamesSynced, Synced


def synced_paths(rig: Rig) -> list[str]:
    """In the order in which they became durable."""
    return [
        event.path
        for _, _, event in rig.world.trace.entries
        if isinstance(event, Synced | NamesSynced)
    ]


def test_nothing_is_synced_until_the_disk_has_said_so() -> None:
    rig = Rig()
    log = rig.open()
    append_values(log, "a", "b")
    assert log.synced_end_offset == 0

    log.want_sync()
    assert log.synced_end_offset == 0
    append_values(log, "c")
    rig.finish_syncs()

    assert log.synced_end_offset == 2
    log.want_sync()
    rig.finish_syncs()
    assert (log.synced_end_offset, log.recovery_point) == (3, 3)


def test_asking_again_without_news_asks_nothing() -> None:
    rig = Rig()
    log = rig.open()
    append_values(log, "a")
    log.want_sync()
    rig.finish_syncs()
    before = rig.world.steps

    log.want_sync()
    rig.finish_syncs()

    assert rig.world.steps == before


def test_names_are_durable_before_the_first_byte_counts() -> None:
    rig = Rig()
    log = rig.open()
    append_values(log, "a")
    log.want_sync()

    rig.finish_syncs()

    order = synced_paths(rig)
    file = f"{DIRECTORY}/00000000000000000000.log"
    assert order.index(ROOT) < order.index(file)
    assert order.index(DIRECTORY) < order.index(file)
    assert order.index(f"{DIRECTORY}/leader-epoch-checkpoint") < order.index(file)
    assert order.index(f"{DIRECTORY}/partition.metadata") < order.index(file)


def test_a_rolled_segment_is_synced_without_being_asked_its_indexes_first() -> None:
    rig = Rig()
    log = rig.open()
    for _ in range(15):
        append(log)
    base = log.files.segments[1].base_offset

    rig.finish_syncs()

    order = synced_paths(rig)
    file = order.index(f"{DIRECTORY}/00000000000000000000.log")
    assert order.index(f"{DIRECTORY}/00000000000000000000.index") < file
    assert order.index(f"{DIRECTORY}/00000000000000000000.timeindex") < file
    assert order.index(f"{DIRECTORY}/{base:020d}.snapshot") < file
    assert log.recovery_point == base


def test_an_older_segment_that_is_not_synced_holds_the_offset_back() -> None:
    rig = Rig()
    log = rig.open()
    for _ in range(15):
        append(log)
    log.want_sync()
    first, second = log.files.segments[0].file, log.files.segments[1].file

    log.on_synced(second, second.size_bytes)
    assert log.synced_end_offset == 0

    rig.finish_syncs()
    assert first.size_bytes > 0
    assert log.synced_end_offset == 15


def test_a_new_leader_epoch_counts_only_once_its_line_is_durable() -> None:
    rig = Rig()
    log = rig.open()
    append_values(log, "a")
    log.want_sync()
    rig.finish_syncs()
    append_values(log, "b")
    log.want_sync()
    append_values(log, "c", leader_epoch=1)
    active = log.files.segments[-1].file

    log.on_synced(active, active.size_bytes)
    assert log.synced_end_offset == 2

    log.want_sync()
    rig.finish_syncs()
    assert log.synced_end_offset == 3


def test_a_sync_may_report_more_bytes_than_were_asked_for() -> None:
    rig = Rig()
    log = rig.open()
    append_values(log, "a")
    log.want_sync()
    append_values(log, "b")

    rig.finish_syncs()  # takes what the file holds when it begins

    assert log.synced_end_offset == 1


@pytest.mark.parametrize("count", [1, 3, 5])
def test_flush_messages_asks_by_itself(count: int) -> None:
    rig = Rig(replace(SMALL, flush_messages=count))
    log = rig.open()
    for _ in range(7):
        append(log)
    rig.finish_syncs()

    assert log.synced_end_offset == 7 - 7 % count


def test_flush_ms_asks_by_the_clock() -> None:
    rig = Rig(replace(SMALL, flush_ms=1_000))
    log = rig.open()
    append(log)

    log.flush_if_due(NOW_MS + 999)
    rig.finish_syncs()
    assert log.synced_end_offset == 0
    log.flush_if_due(NOW_MS + 1_000)
    rig.finish_syncs()
    assert log.synced_end_offset == 1


def test_a_clean_close_makes_everything_durable() -> None:
    rig = Rig()
    log = rig.open()
    values = [f"value {at}" for at in range(30)]
    append_values(log, *values, leader_epoch=3)

    log.close_cleanly()

    assert log.recovery_point == 30
    rig.lose_power()
    log = rig.open(clean=True)
    assert read_values(log) == values
    assert log.epochs.entries == [(3, 0)]
    assert not rig.trace.of(events.LogRecovered)


def test_a_clean_start_reads_only_the_end_of_the_log() -> None:
    rig = Rig(replace(SMALL, segment_bytes=10**6, index_interval_bytes=4_096))
    log = rig.open()
    for sequence in range(5_000):
        view = batch(producer_id=1, producer_epoch=0, sequence=sequence)
        log.append_as_leader(view, leader_epoch=0, wall_ms=NOW_MS)
    log.close_cleanly()
    rig.kill()
    before = rig.store.operations

    log = rig.open(clean=True)

    assert log.log_end_offset == 5_000
    assert rig.store.operations - before < 40


def test_a_clean_stop_of_an_untouched_log_costs_nothing() -> None:
    rig = Rig()
    log = rig.open()
    append_values(log, *["a"] * 30)
    log.close_cleanly()
    rig.kill()
    log = rig.open(clean=True)
    before = rig.store.operations

    log.close_cleanly()

    assert rig.store.operations == before


def test_a_log_too_small_to_index_is_closed_without_index_files() -> None:
    rig = Rig()
    log = rig.open()
    append_values(log, "a")
    log.close_cleanly()

    assert rig.names() == [
        "00000000000000000000.log",
        "00000000000000000001.snapshot",
        "leader-epoch-checkpoint",
        "partition.metadata",
    ]
    rig.kill()
    log = rig.open(clean=True)
    append_values(log, *["b"] * 30)
    log.check()
    assert read_values(log) == ["a", *["b"] * 30]
    assert not rig.trace.of(events.IndexRebuilt)


def test_a_clean_stop_syncs_the_indexes_of_a_segment_whose_records_were_synced_before() -> None:
    """The entry of its largest timestamp is written when it is rolled."""
    rig = Rig()
    log = rig.open()
    append(log)
    log.want_sync()
    rig.finish_syncs()
    log.roll(because="test", base_offset=1, wall_ms=None)

    log.close_cleanly()

    for name in rig.names():
        if name.endswith((".index", ".timeindex")):
            assert rig.file(name).durable == rig.file(name).data, name
    assert rig.file("00000000000000000000.timeindex").durable
