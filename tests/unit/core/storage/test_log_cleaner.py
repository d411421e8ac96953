"""The rules of compaction, one test each."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.core.storage.compaction_given import COMPACT, clean, opened, pairs_of, put, roll
from tests.unit.core.storage.given import NOW_MS, Rig, batch, read_all
from tidelog.core.storage import events
from tidelog.core.storage.log_cleaner import CleanerSettings, LogCleaner
from tidelog.core.wire.record_batch import batches


def test_only_the_newest_value_of_each_key_stays_at_its_offset() -> None:
    rig, log = opened()
    put(log, ("a", "1"), ("b", "1"), ("a", "2"))
    put(log, ("c", "1"))
    put(log, ("a", "3"))
    roll(log, rig)

    clean(log, rig)

    assert pairs_of(log) == [(1, "b", "1"), (3, "c", "1"), (4, "a", "3")]
    assert log.cleaned_end_offset == log.log_end_offset == 5


def test_the_active_segment_is_left_alone() -> None:
    rig, log = opened()
    put(log, ("a", "1"))
    roll(log, rig)
    put(log, ("a", "2"))
    put(log, ("a", "3"))
    log.advance_high_watermark(log.log_end_offset)

    clean(log, rig)

    assert pairs_of(log) == [(0, "a", "1"), (1, "a", "2"), (2, "a", "3")]


@pytest.mark.parametrize("compression", range(5))
def test_a_batch_that_loses_records_keeps_its_codec_offsets_and_producer(compression: int) -> None:
    rig, log = opened()
    put(log, ("a", "1"), ("b", "1"), ("a", "2"), compression=compression, producer_id=9, sequence=0)
    put(log, ("z", "1"))
    roll(log, rig)
    (before, *_) = log.batch_headers()

    clean(log, rig)

    (after, *_) = log.batch_headers()
    assert after.records_count == 2
    kept = ("base_offset", "last_offset_delta", "producer_id", "base_sequence", "attributes")
    assert [getattr(after, name) for name in kept] == [getattr(before, name) for name in kept]
    assert pairs_of(log)[:2] == [(1, "b", "1"), (2, "a", "2")]


def test_a_producers_latest_batch_stays_although_it_is_empty() -> None:
    rig, log = opened()
    put(log, ("x", "0"))
    put(log, ("a", "1"), producer_id=9, sequence=0)
    put(log, ("a", "2"))
    put(log, ("b", "2"))
    roll(log, rig)

    clean(log, rig)

    empty = [header for header in log.batch_headers() if header.records_count == 0]
    assert [(each.base_offset, each.producer_id, each.base_sequence) for each in empty] == [
        (1, 9, 0)
    ]
    log.close_cleanly()
    again = rig.open(clean=False)
    assert again.producers.by_id[9].expected_sequence == 1


def test_a_tombstone_stays_until_its_delete_horizon() -> None:
    rig, log = opened(replace(COMPACT, delete_retention_ms=1_000))
    put(log, ("a", "1"))
    put(log, ("a", None), ("b", "1"))
    roll(log, rig)
    clean(log, rig)
    assert pairs_of(log) == [(1, "a", None), (2, "b", "1")]
    (header,) = [header for header in log.batch_headers() if header.records_count]
    assert header.delete_horizon_ms == rig.wall_ms + 1_000
    assert [record.timestamp_ms for record in read_all(log)] == [NOW_MS, NOW_MS]

    for waited_ms, left in ((999, ["a", "b", "c"]), (1, ["b", "c", "c2"])):
        rig.wall_ms += waited_ms
        put(log, ("c" if waited_ms == 999 else "c2", "1"))
        roll(log, rig)
        clean(log, rig)
        assert [key for _, key, _ in pairs_of(log)] == left


def test_a_segment_ends_where_the_next_begins_although_its_end_is_replaced() -> None:
    rig, log = opened(replace(COMPACT, segment_bytes=160))
    put(log, ("a", "1"))
    roll(log, rig)
    put(log, ("a", "2"))
    put(log, ("b", "1"))
    roll(log, rig)

    clean(log, rig)

    assert [segment.base_offset for segment in log.files.segments] == [0, 1, 3]
    assert log.files.segments[0].read_end_offset() == 1
    rig.kill()
    again = rig.open(clean=False, recovery_point=0)
    assert pairs_of(again) == [(1, "a", "2"), (2, "b", "1")]


def test_the_first_batch_of_a_leader_epoch_stays_so_that_epochs_can_be_rebuilt() -> None:
    rig, log = opened()
    put(log, ("a", "1"), leader_epoch=0)
    put(log, ("a", "2"), leader_epoch=4)
    put(log, ("a", "3"), leader_epoch=4)
    roll(log, rig)
    entries = list(log.epochs.entries)

    clean(log, rig)

    rig.remove("leader-epoch-checkpoint")
    rig.kill()
    again = rig.open(clean=False, recovery_point=0)
    assert pairs_of(again) == [(2, "a", "3")]
    assert list(again.epochs.entries) == entries == [(0, 0), (4, 1)]


def test_small_segments_become_one() -> None:
    rig, log = opened()
    for at in range(6):
        put(log, (f"key-{at % 3}", str(at)))
        roll(log, rig)

    clean(log, rig)

    assert [segment.base_offset for segment in log.files.segments] == [0, 6]
    assert [offset for offset, _, _ in pairs_of(log)] == [3, 4, 5]


def test_keys_that_do_not_fit_into_the_memory_take_several_rounds() -> None:
    rig, log = opened()
    for at in range(60):
        put(log, (f"key-{at % 30}", str(at)))
    roll(log, rig)
    small = CleanerSettings(map_bytes=24 * 20)

    rounds = 0
    while log.cleaned_end_offset != log.log_end_offset:
        clean(log, rig, small)
        rounds += 1
        assert rounds < 10

    assert rounds > 2
    assert [offset for offset, _, _ in pairs_of(log)] == list(range(30, 60))


def test_a_batch_with_more_keys_than_the_memory_holds_makes_the_log_uncleanable() -> None:
    rig, log = opened(replace(COMPACT, segment_bytes=10_000))
    put(log, *[(f"key-{at}", "1") for at in range(40)])
    roll(log, rig)

    clean(log, rig, CleanerSettings(map_bytes=24 * 20))

    assert log.uncleanable is not None
    assert any(isinstance(event, events.LogUncleanable) for event in rig.trace.events)
    assert len(pairs_of(log)) == 40


def test_a_damaged_log_is_left_alone() -> None:
    rig, log = opened()
    put(log, ("a", "1"))
    put(log, ("a", "2"))
    roll(log, rig)
    name = log.files.segments[0].file.path
    rig.store.flip_bit(name, position=70, bit=3)

    clean(log, rig)

    assert log.uncleanable is not None
    assert not [name for name in rig.names() if name.endswith((".cleaned", ".swap"))]


def test_a_truncation_in_the_middle_of_a_round_ends_it() -> None:
    rig, log = opened()
    put(log, ("a", "1"))
    put(log, ("b", "1"))
    put(log, ("a", "2"))
    roll(log, rig)
    for turns in range(1, 40):
        cleaner = LogCleaner(
            logs=lambda: [log], settings=CleanerSettings, trace=rig.trace, slice_work=1
        )
        for _ in range(turns):
            cleaner.run_slice(rig.wall_ms)
        if log.cleaned_end_offset is not None:
            break
        log.truncate_to(2)
        while cleaner.is_busy:
            cleaner.run_slice(rig.wall_ms)
            rig.finish_syncs()
        assert pairs_of(log) == [(0, "a", "1"), (1, "b", "1")]
        assert log.cleaned_end_offset in (None, 2)
        log.cleaned_end_offset = None
        put(log, ("a", "2"))
        roll(log, rig)
    assert turns > 3


def test_a_slice_does_a_bounded_amount_of_work() -> None:
    rig, log = opened(replace(COMPACT, segment_bytes=2**20))
    put(log, *[(f"key-{at % 10}", "x" * 10) for at in range(5_000)])
    roll(log, rig)
    cleaner = LogCleaner(logs=lambda: [log], settings=CleanerSettings, trace=rig.trace)

    slices = 0
    while log.cleaned_end_offset is None:
        cleaner.run_slice(rig.wall_ms)
        rig.finish_syncs()
        slices += 1

    assert slices >= 2 * 5_000 // 400, "the records are read twice"
    assert len(pairs_of(log)) == 10


def test_the_checkpoint_is_kafkas_and_is_found_by_the_next_start() -> None:
    rig = Rig(COMPACT)
    log = rig.open_in(rig.open_directory())
    put(log, ("a", "1"))
    put(log, ("a", "2"))
    roll(log, rig)
    clean(log, rig)
    rig.finish_syncs()

    content = rig.disk.open("data/logs/cleaner-offset-checkpoint").read(0, 100)

    assert content == b"0\n1\norders 3 2\n"
    rig.kill()
    assert rig.open_in(rig.open_directory()).cleaned_end_offset == 2


def test_a_follower_copies_a_compacted_log_with_its_gaps() -> None:
    rig, log = opened()
    for at in range(8):
        put(log, (f"key-{at % 2}", str(at)), ("other", str(at)), producer_id=9, sequence=2 * at)
    roll(log, rig)
    put(log, ("key-0", "new"))
    log.advance_high_watermark(log.log_end_offset)
    clean(log, rig)
    other = Rig(COMPACT)
    follower = other.open_in(other.open_directory())

    for segment in log.files.segments:
        data = segment.file.read(0, segment.file.size_bytes)
        for position, header in batches(data):
            piece = memoryview(data)[position : position + header.size_bytes]
            follower.append_as_follower(memoryview(bytearray(piece)), wall_ms=NOW_MS)

    follower.check()
    assert follower.log_end_offset == log.log_end_offset
    assert pairs_of(follower) == pairs_of(log)
    for offset in range(log.log_end_offset):
        assert read_all(follower, start_offset=offset) == read_all(log, start_offset=offset)
    assert follower.producers.by_id[9].expected_sequence == 16


def test_a_read_at_an_offset_that_is_gone_begins_with_the_next_record() -> None:
    rig, log = opened()
    for at in range(10):
        put(log, ("a", str(at)))
    put(log, ("b", "1"))
    roll(log, rig)
    clean(log, rig)

    assert pairs_of(log) == [(9, "a", "9"), (10, "b", "1")]
    for offset in range(10):
        assert read_all(log, start_offset=offset)[0].offset == 9


def test_a_log_with_another_policy_is_not_compacted() -> None:
    rig, log = opened(replace(COMPACT, compact=False))
    put(log, ("a", "1"))
    put(log, ("a", "2"))
    roll(log, rig)

    clean(log, rig)

    assert len(pairs_of(log)) == 2


def test_a_cleaner_that_is_switched_off_does_nothing() -> None:
    rig, log = opened()
    put(log, ("a", "1"))
    put(log, ("a", "2"))
    roll(log, rig)

    clean(log, rig, CleanerSettings(is_enabled=False))

    assert len(pairs_of(log)) == 2


def test_reading_is_throttled() -> None:
    rig, log = opened()
    put(log, *[(f"key-{at}", "x" * 10) for at in range(30)])
    roll(log, rig)
    cleaner = LogCleaner(
        logs=lambda: [log],
        settings=lambda: CleanerSettings(bytes_per_second_max=1_000.0),
        trace=rig.trace,
        slice_work=5,
    )

    delays = [cleaner.run_slice(rig.wall_ms) for _ in range(3)]

    assert max(delays) >= log.files.segments[0].file.size_bytes


def test_values_without_keys_go() -> None:
    """They came in before the topic was compacted; nobody could ever replace them."""
    rig, log = opened(replace(COMPACT, compact=False))
    log.append_as_leader(batch(["old"], key=None), leader_epoch=0, wall_ms=NOW_MS)
    put(log, ("a", "1"))
    roll(log, rig)
    log.update_config(COMPACT)

    clean(log, rig)

    assert pairs_of(log) == [(1, "a", "1")]
