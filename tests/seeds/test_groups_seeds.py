"""Seeds of the groups profile: many worlds, one trace twice, mutants and their stories."""

from __future__ import annotations

import pytest

from tests.seeds.fresh import first_fresh_seed
from tests.seeds.trying import caught, chunk_of, failures, mutants_of, traces_under_hash_seeds
from tidelog.worlds.simulator.mutants import MUTANTS
from tidelog.worlds.simulator.run import run_seed, shrink
from tidelog.worlds.simulator.steps import to_text

PROFILE = "groups"
FIRST = first_fresh_seed()
SHARE = 6
CHUNKS = 2
LONG_CHUNKS = 5
"""More of them in long runs; thousands are `./dev sim --profile groups`."""
QUICK = 10
"""Mutants that are caught within so many seeds are tried in every run, the others in long ones."""


ONCE_FAILED: dict[int, str] = {
    5004: "a member that was killed for good was started again, and owned a partition for ever",
}
"""Seeds that failed before a repair, with what went wrong; they must stay clean."""


@pytest.mark.parametrize("seed", sorted(ONCE_FAILED))
def test_a_seed_that_once_failed_stays_clean(seed: int) -> None:
    assert failures(PROFILE, [seed]) == [], ONCE_FAILED[seed]


@pytest.mark.scenario("X-42", "X-51")
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
    name = "load-without-tombstones"
    verdict = caught(name)
    kind = verdict.anomalies[0].kind

    chosen = shrink(PROFILE, verdict, name)

    assert len(chosen) <= 4 < len(verdict.story), "most of what happened did not matter"
    again = run_seed(PROFILE, verdict.seed, name, chosen)
    assert again.anomalies[0].kind == kind
    told = capsys.readouterr().out
    assert f"--replay {verdict.seed} --only {to_text(chosen)} --mutant {name}" in told
