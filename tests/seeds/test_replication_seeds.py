"""Seeds of the replication profile: many worlds, one trace twice, mutants and their stories."""

from __future__ import annotations

import pytest

from tests.seeds.fresh import first_fresh_seed
from tests.seeds.trying import caught, chunk_of, failures, mutants_of, traces_under_hash_seeds
from tidelog.worlds.simulator import observation
from tidelog.worlds.simulator.mutants import MUTANTS
from tidelog.worlds.simulator.run import run_seed, shrink
from tidelog.worlds.simulator.steps import to_text
from tidelog.worlds.simulator.verdict import Verdict

PROFILE = "replication"
FIRST = first_fresh_seed()
SHARE = 10
CHUNKS = 8
LONG_CHUNKS = 20
"""More of them in long runs; thousands are `./dev sim --profile replication`."""
QUICK = 20
"""Mutants that are caught within so many seeds are tried in every run, the others in long ones."""

ONCE_FAILED: dict[int, str] = {
    1001127: "a last known leader was in sync before it had synced what it came back with",
    1001480: "a leader came back with an older log, and was compared with nothing but itself",
    2000486: "a power loss kept a log's second segment and lost its first",
    192132: "the judge condemned an unclean election that an administrator had asked for",
    2000545: "a leader that did not know of a higher minimum committed alone",
    2000601: "a quorum leader committed and heard of a later epoch in one step",
    2001074: "a follower kept records that nobody else had, behind its leader's start",
    2001780: "a log that had just started anew was thought to be durable up to there",
    135328121: "the observer took a proposal that was made again for the one that was refused",
    230445097: "the same: a proposal that was refused and made again for another process",
    230445069: "an unregistered broker came back with an empty disk and could lead nothing",
    233258897: "the judge wanted two in sync of a partition that was left with one replica",
    165480412: "the judge took two pasts for one, since one of them had been deleted",
    282329519: "the judge counted what a leader committed after an unclean election had deposed it",
    63681647: "a cancelled reassignment dropped the last known leader, and nobody could lead",
    31000155: "the judge took the replicas of a topic's first partition for those of another",
}
"""Seeds that failed before a repair, with what went wrong; they must stay clean."""


@pytest.mark.scenario("D5-L3", "D3-V3")
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_seeds_are_clean(chunk: int) -> None:
    assert failures(PROFILE, chunk_of(chunk, first=FIRST, share=SHARE)) == []


@pytest.mark.long
@pytest.mark.parametrize("chunk", range(CHUNKS, CHUNKS + LONG_CHUNKS))
def test_more_seeds_are_clean(chunk: int) -> None:
    assert failures(PROFILE, chunk_of(chunk, first=FIRST, share=SHARE)) == []


@pytest.mark.parametrize("seed", sorted(ONCE_FAILED))
def test_a_seed_that_once_failed_stays_clean(seed: int) -> None:
    assert failures(PROFILE, [seed]) == [], ONCE_FAILED[seed]


def test_the_same_seed_gives_the_same_trace_under_two_hash_seeds() -> None:
    one, other = traces_under_hash_seeds(PROFILE, (1, 2))

    assert one == other
    assert len(one) == 2


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


def test_a_failing_seed_shrinks_to_a_short_story_that_fails_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = "truncate-by-high-watermark"
    verdict = caught(name)
    kind = verdict.anomalies[0].kind

    chosen = shrink(PROFILE, verdict, name)

    assert len(chosen) <= 5 < len(verdict.story), "most of what happened did not matter"
    again = run_seed(PROFILE, verdict.seed, name, chosen)
    assert again.anomalies[0].kind == kind
    told = capsys.readouterr().out
    assert f"the story of seed {verdict.seed}" in told
    assert f"--replay {verdict.seed} --only {to_text(chosen)} --mutant {name}" in told


@pytest.mark.parametrize(
    "mutant", [None, "trust-every-restart", "recovery-point-ahead-of-the-sync"]
)
def test_steps_find_what_a_full_check_after_every_tick_finds(
    mutant: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed = 1 if mutant is None else caught(mutant).seed
    seldom = run_seed(PROFILE, seed, mutant)
    monkeypatch.setattr(observation, "TICKS_PER_FULL_CHECK", 1)

    always = run_seed(PROFILE, seed, mutant)

    def first(verdict: Verdict) -> tuple[object, ...]:
        return tuple((a.name, a.partition, a.at_us) for a in verdict.anomalies[:1])

    assert first(seldom) == first(always)
