"""Seeds of the transactions profile: many worlds, one trace twice, mutants and their stories."""

from __future__ import annotations

import pytest

from tests.seeds.fresh import first_fresh_seed
from tests.seeds.trying import caught, chunk_of, failures, mutants_of, traces_under_hash_seeds
from tidelog.worlds.simulator.mutants import MUTANTS
from tidelog.worlds.simulator.run import run_seed, shrink
from tidelog.worlds.simulator.steps import to_text

PROFILE = "transactions"
FIRST = first_fresh_seed()
SHARE = 4
CHUNKS = 2
LONG_CHUNKS = 6
"""More of them in long runs; thousands are `./dev sim --profile transactions`."""
QUICK = 6
"""Mutants that are caught within so many seeds are tried in every run, the others in long ones."""


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


@pytest.mark.parametrize(
    "name", [name for name in mutants_of(PROFILE) if MUTANTS[name].within_seeds <= QUICK]
)
def test_a_planted_mistake_is_caught_within_its_seeds_by_its_check(name: str) -> None:
    caught(name)


@pytest.mark.long
@pytest.mark.rotating(2)
@pytest.mark.parametrize(
    "name", [name for name in mutants_of(PROFILE) if MUTANTS[name].within_seeds > QUICK]
)
def test_a_rare_planted_mistake_is_caught_within_its_seeds_by_its_check(name: str) -> None:
    caught(name)


@pytest.mark.long
def test_a_failing_seed_shrinks_to_a_short_story_that_fails_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = "forget-prepared-transactions"
    verdict = caught(name)
    kind = verdict.anomalies[0].kind

    chosen = shrink(PROFILE, verdict, name)

    assert len(chosen) <= 4, "most of what happened did not matter"
    again = run_seed(PROFILE, verdict.seed, name, chosen)
    assert again.anomalies[0].kind == kind
    told = capsys.readouterr().out
    assert f"--replay {verdict.seed} --only {to_text(chosen)} --mutant {name}" in told
