"""Which part of a log is cleaned, when it is due, and which segments become one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.core.storage.compaction_given import COMPACT, opened, put, roll
from tests.unit.core.storage.given import NOW_MS
from tidelog.core.storage.log_to_clean import groups, log_to_clean


@pytest.mark.parametrize(
    ("fence", "touched"), [("high watermark", False), ("recovery point", False), (None, True)]
)
def test_nothing_behind_a_fence_is_touched(fence: str | None, touched: bool) -> None:
    rig, log = opened()
    put(log, ("a", "1"))
    put(log, ("a", "2"))
    log.roll(because="size", base_offset=2, wall_ms=rig.wall_ms)
    if fence != "recovery point":
        rig.finish_syncs()
    log.advance_high_watermark(1 if fence == "high watermark" else 2)

    assert (log_to_clean(log, rig.wall_ms).dirty_bytes > 0) is touched


def test_an_undecided_transaction_is_a_fence() -> None:
    rig, log = opened()
    put(log, ("a", "1"))
    roll(log, rig)
    put(log, ("a", "2"), producer_id=5, sequence=0, transactional=True)
    roll(log, rig)

    assert log.last_stable_offset == 1
    assert log_to_clean(log, rig.wall_ms).end_offset == 1


def test_young_segments_wait_for_the_least_lag() -> None:
    rig, log = opened(replace(COMPACT, compaction_lag_min_ms=1_000))
    put(log, ("a", "1"), timestamp_ms=NOW_MS - 2_000)
    roll(log, rig)
    put(log, ("a", "2"), timestamp_ms=NOW_MS - 1_000)
    roll(log, rig)
    put(log, ("a", "3"), timestamp_ms=NOW_MS - 999)
    roll(log, rig)

    assert log_to_clean(log, NOW_MS).end_offset == 2


@pytest.mark.parametrize(("dirty_ratio", "is_due"), [(0.4, True), (0.6, False)])
def test_a_log_is_due_by_the_ratio_of_its_dirty_bytes(dirty_ratio: float, is_due: bool) -> None:
    rig, log = opened(replace(COMPACT, min_cleanable_dirty_ratio=dirty_ratio))
    put(log, ("a", "1"))
    roll(log, rig)
    log.cleaned_end_offset = 1
    put(log, ("b", "1"))
    roll(log, rig)

    found = log_to_clean(log, rig.wall_ms)

    assert (found.dirty_ratio, found.is_due) == (0.5, is_due)


@pytest.mark.parametrize(("age_ms", "is_due"), [(1_000, False), (1_001, True)])
def test_a_log_is_due_however_clean_once_a_record_exceeds_the_largest_lag(
    age_ms: int, is_due: bool
) -> None:
    config = replace(COMPACT, min_cleanable_dirty_ratio=1.0, compaction_lag_max_ms=1_000)
    rig, log = opened(config)
    put(log, ("a", "1"), timestamp_ms=NOW_MS - age_ms)
    roll(log, rig)

    assert log_to_clean(log, NOW_MS).is_due is is_due


@pytest.mark.parametrize("claimed", [-5, 99])
def test_a_checkpoint_that_the_log_denies_counts_for_nothing(claimed: int) -> None:
    rig, log = opened()
    put(log, ("a", "1"))
    roll(log, rig)
    log.cleaned_end_offset = claimed

    assert log_to_clean(log, rig.wall_ms).first_dirty_offset == 0


def test_groups_respect_the_segments_size() -> None:
    rig, log = opened()
    for at in range(4):
        put(log, (f"key-{at}", "x" * 100))
        roll(log, rig)
    size = log.files.segments[0].file.size_bytes
    segments = log.files.segments[:-1]

    found = groups(segments, end_offset=4, config=replace(COMPACT, segment_bytes=2 * size))

    assert [len(group) for group in found] == [2, 2]
