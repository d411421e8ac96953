"""Seeds of the storage profile: fresh ones, those that failed before, and the same trace twice."""

from __future__ import annotations

import pytest

from tests.seeds.fresh import first_fresh_seed
from tests.seeds.trying import caught, chunk_of, failures, mutants_of, traces_under_hash_seeds

PROFILE = "storage"
FRESH_BASE = first_fresh_seed()
SHARE = 10
CHUNKS = 6
LONG_SHARE = 50
LONG_CHUNKS = 10

ONCE_FAILED: dict[int, str] = {
    610_515: "a start that could not read its checkpoints recovered its logs all the same: a hole "
    "in a deleted head that a power loss had brought back cost everything behind it",
    584_344_346: "the log start checkpoint was lost, and a deleted head that a power loss had "
    "brought back was read with its holes",
    15: "a sync was under way when retention deleted its segment, and every later ack hung on it",
    620435: "a last offset delta of 1,073,741,826 sent the next batch's readers to the damage",
    700644: "a last offset delta of 16,777,217 in a segment's first batch hid the one behind it",
    710326: "a last offset delta of 16,777,218 below the recovery point hid the batch behind it",
    730117: "a last offset delta below zero: every offset behind it was refused, for ever",
    196195602: "a search by time opened a damaged batch, and the profile knew no such refusal",
    772253: "a last offset delta of 2,049 hid ten sound records between two index entries",
}
"""Seeds that failed before a repair, with what went wrong; they must stay clean."""


@pytest.mark.scenario("D4-O9", "D4-I3", "D4-I8", "X-32")
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_fresh_seeds_are_clean(chunk: int) -> None:
    assert failures(PROFILE, chunk_of(chunk, first=FRESH_BASE, share=SHARE)) == []


@pytest.mark.long
@pytest.mark.parametrize("chunk", range(LONG_CHUNKS))
def test_the_first_seeds_are_clean(chunk: int) -> None:
    assert failures(PROFILE, chunk_of(chunk, first=1, share=LONG_SHARE)) == []


@pytest.mark.parametrize("seed", sorted(ONCE_FAILED))
def test_a_seed_that_once_failed_stays_clean(seed: int) -> None:
    assert failures(PROFILE, [seed]) == [], ONCE_FAILED[seed]


def test_the_same_seed_gives_the_same_trace_under_two_hash_seeds() -> None:
    one, other = traces_under_hash_seeds(PROFILE, (1, 2, 3))

    assert one == other
    assert len(one) == 3


@pytest.mark.parametrize("name", mutants_of(PROFILE))
def test_a_planted_mistake_is_caught_within_its_seeds_by_its_check(name: str) -> None:
    caught(name)
