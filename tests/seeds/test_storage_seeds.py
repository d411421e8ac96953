"""Seeds of the storage profile: fresh ones, what others found before, and the same trace twice."""

from __future__ import annotations

from importlib import import_module

import pytest

from tests.seeds.fresh import first_fresh_seed
from tests.seeds.trying import caught, chunk_of, failures, mutants_of, traces_under_hash_seeds

PROFILE = "storage"
FRESH_BASE = first_fresh_seed()
SHARE = 10
CHUNKS = 6
LONG_SHARE = 15
LONG_CHUNKS = 10

STORIES = "tests.stories.test_disk_trouble"
STALE_HEADS = "tests.unit.core.storage.test_stale_heads"
DAMAGE = "tests.unit.core.storage.test_damage"
DIRECTORY = "tests.unit.core.storage.test_directory"
RETENTION = "tests.unit.core.storage.test_retention"
TIMESTAMPS = "tests.unit.core.storage.test_timestamps"
HEADER_STORY = "test_a_flipped_bit_in_a_header_is_told_at_its_own_offsets_and_hides_no_others"
ANY_BIT = "test_any_flipped_bit_of_a_header_is_told_and_hides_nothing"

ONCE_FAILED: dict[int, tuple[str, str, str]] = {
    610_515: (
        (
            "a start that could not read its checkpoints recovered its logs all the same: a hole "
            "in a deleted head that a power loss had brought back cost everything behind it"
        ),
        STORIES,
        "test_a_start_that_cannot_read_its_checkpoints_changes_no_log",
    ),
    584_344_346: (
        (
            "the log start checkpoint was lost, and a deleted head that a power loss had brought "
            "back was read with its holes"
        ),
        STALE_HEADS,
        "test_a_deleted_head_that_comes_back_with_holes_costs_nothing_behind_it",
    ),
    15: (
        "a sync was under way when retention deleted its segment, and every later ack hung on it",
        STORIES,
        "test_retention_may_delete_what_is_still_being_synced_and_writes_are_acknowledged_on",
    ),
    620_435: (
        "a last offset delta of 1,073,741,826 sent the next batch's readers to the damage",
        DAMAGE,
        ANY_BIT,
    ),
    700_644: (
        "a last offset delta of 16,777,217 in a segment's first batch hid the one behind it",
        DAMAGE,
        ANY_BIT,
    ),
    710_326: (
        "a last offset delta of 16,777,218 below the recovery point hid the batch behind it",
        STORIES,
        HEADER_STORY,
    ),
    730_117: (
        "a last offset delta below zero: every offset behind it was refused, for ever",
        DAMAGE,
        "test_a_negative_last_offset_delta_refuses_only_its_own_batch",
    ),
    196_195_602: (
        "a search by time opened a damaged batch, and the profile knew no such refusal",
        TIMESTAMPS,
        "test_a_search_by_time_neither_believes_damage_nor_passes_over_it",
    ),
    20_001_605: (
        "a recovery cut a log below its recovery point, and what came next was never scanned",
        DIRECTORY,
        "test_a_recovery_that_cuts_below_the_recovery_point_lowers_it_durably",
    ),
    20_004_499: (
        "a torn time index made a young segment seem old, and retention deleted it",
        RETENTION,
        "test_a_time_index_that_a_power_loss_tore_deletes_nothing",
    ),
    772_253: (
        "a last offset delta of 2,049 hid ten sound records between two index entries",
        STORIES,
        HEADER_STORY,
    ),
}
"""Seeds that failed before a repair: what went wrong, and the test that tells it since.

Most of these worlds are gone. The numbers made other plans when this profile had clients of its
own, so to run them again would show nothing; what each of them found is told by a test of its own.
"""


@pytest.mark.scenario("D4-O9", "D4-I3", "D4-I8", "X-32")
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_fresh_seeds_are_clean(chunk: int) -> None:
    assert failures(PROFILE, chunk_of(chunk, first=FRESH_BASE, share=SHARE)) == []


@pytest.mark.long
@pytest.mark.parametrize("chunk", range(LONG_CHUNKS))
def test_the_first_seeds_are_clean(chunk: int) -> None:
    assert failures(PROFILE, chunk_of(chunk, first=1, share=LONG_SHARE)) == []


@pytest.mark.parametrize("seed", sorted(ONCE_FAILED))
def test_what_a_seed_once_found_is_told_by_a_test_of_its_own(seed: int) -> None:
    what, module, name = ONCE_FAILED[seed]

    assert callable(getattr(import_module(module), name, None)), what


def test_the_same_seed_gives_the_same_trace_under_two_hash_seeds() -> None:
    one, other = traces_under_hash_seeds(PROFILE, (1, 2, 3))

    assert one == other
    assert len(one) == 3


@pytest.mark.parametrize("name", mutants_of(PROFILE))
def test_a_planted_mistake_is_caught_within_its_seeds_by_its_check(name: str) -> None:
    caught(name)
