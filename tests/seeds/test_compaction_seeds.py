"""Seeds of the compaction profile: many worlds, one trace twice, and mutants."""

from __future__ import annotations

import pytest

from tests.seeds.fresh import first_fresh_seed
from tests.seeds.trying import caught, chunk_of, failures, mutants_of, traces_under_hash_seeds

PROFILE = "compaction"
FIRST = first_fresh_seed()
SHARE = 4
CHUNKS = 1
LONG_CHUNKS = 4
"""More of them in long runs; thousands are `./dev sim --profile compaction`."""


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_seeds_are_clean(chunk: int) -> None:
    assert failures(PROFILE, chunk_of(chunk, first=FIRST, share=SHARE)) == []


@pytest.mark.long
@pytest.mark.parametrize("chunk", range(CHUNKS, CHUNKS + LONG_CHUNKS))
def test_more_seeds_are_clean(chunk: int) -> None:
    assert failures(PROFILE, chunk_of(chunk, first=FIRST, share=SHARE)) == []


def test_the_same_seed_gives_the_same_trace_under_two_hash_seeds() -> None:
    one, other = traces_under_hash_seeds(PROFILE, (1,))

    assert one == other
    assert len(one) == 1


@pytest.mark.long
@pytest.mark.parametrize("name", mutants_of(PROFILE))
def test_a_planted_mistake_is_caught_within_its_seeds_by_its_check(name: str) -> None:
    caught(name)
