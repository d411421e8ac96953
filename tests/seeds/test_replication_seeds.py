"""Seeds of the replication profile: many worlds, one trace twice, mutants and their stories."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tidelog.worlds.simulator import observation
from tidelog.worlds.simulator.mutants import MUTANTS
from tidelog.worlds.simulator.run import run_seed, shrink
from tidelog.worlds.simulator.steps import to_text
from tidelog.worlds.simulator.verdict import Verdict

PROFILE = "replication"
FIRST = int(os.environ.get("TIDELOG_FIRST_SEED", "1"))
"""The same seeds every time until thousands of fresh ones are clean; give another beginning."""
COUNT = 60
CHUNKS = 6
LONG = 100
"""More of them in long runs; thousands are `./dev sim --profile replication`."""
LONG_CHUNKS = 4
QUICK = 30
"""Mutants that are caught within so many seeds are tried in every run, the others in long ones."""

ONCE_FAILED: dict[int, str] = {}
"""Seeds that failed before a repair, with what went wrong; they must stay clean."""

DIGEST = """
from tidelog.worlds.simulator.profiles.replication import ReplicationRun
for seed in (1, 2):
    verdict = ReplicationRun(seed).run(with_digest=True)
    print(verdict.digest, verdict.steps, len(verdict.anomalies))
"""

MUTANT_NAMES = sorted(name for name, mutant in MUTANTS.items() if mutant.profile == PROFILE)


def failures(seeds: range) -> list[str]:
    return [
        f"seed {seed}: {anomaly.check} in {anomaly.partition}: {anomaly.evidence} "
        f"(again: ./dev sim --profile {PROFILE} --replay {seed})"
        for seed in seeds
        for anomaly in run_seed(PROFILE, seed, None).anomalies[:1]
    ]


@pytest.mark.scenario("D5-L3")
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_seeds_are_clean(chunk: int) -> None:
    share = COUNT // CHUNKS
    first = FIRST + chunk * share
    assert failures(range(first, first + share)) == []


@pytest.mark.long
@pytest.mark.parametrize("chunk", range(LONG_CHUNKS))
def test_more_seeds_are_clean(chunk: int) -> None:
    share = LONG // LONG_CHUNKS
    first = FIRST + COUNT + chunk * share
    assert failures(range(first, first + share)) == []


@pytest.mark.parametrize("seed", sorted(ONCE_FAILED))
def test_a_seed_that_once_failed_stays_clean(seed: int) -> None:
    assert failures(range(seed, seed + 1)) == [], ONCE_FAILED[seed]


def test_the_same_seed_gives_the_same_trace_under_two_hash_seeds() -> None:
    outputs = set()
    for hash_seed in ("1", "4242"):
        done = subprocess.run(
            [sys.executable, "-c", DIGEST],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        outputs.add(done.stdout)
    assert len(outputs) == 1
    assert len(outputs.pop().splitlines()) == 2


def caught(name: str) -> Verdict:
    """The first seed in which the mistake is found by a check that is meant for it."""
    mutant = MUTANTS[name]
    found: set[str] = set()
    for seed in range(1, mutant.within_seeds + 1):
        verdict = run_seed(PROFILE, seed, name)
        checks = {anomaly.check for anomaly in verdict.anomalies}
        if checks & mutant.caught_by:
            return verdict
        found |= checks
    pytest.fail(f"{name} was not caught in {mutant.within_seeds} seeds: {sorted(found)}")


@pytest.mark.parametrize("name", [n for n in MUTANT_NAMES if MUTANTS[n].within_seeds <= QUICK])
def test_a_planted_mistake_is_caught_within_its_seeds_by_its_check(name: str) -> None:
    caught(name)


@pytest.mark.long
@pytest.mark.parametrize("name", [n for n in MUTANT_NAMES if MUTANTS[n].within_seeds > QUICK])
def test_a_rare_planted_mistake_is_caught_within_its_seeds_by_its_check(name: str) -> None:
    caught(name)


def test_a_failing_seed_shrinks_to_a_short_story_that_fails_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = "truncate-by-high-watermark"
    verdict = caught(name)
    check = verdict.anomalies[0].check

    chosen = shrink(PROFILE, verdict, name)

    assert len(chosen) <= 5 < len(verdict.story), "most of what happened did not matter"
    again = run_seed(PROFILE, verdict.seed, name, chosen)
    assert again.anomalies[0].check == check
    told = capsys.readouterr().out
    assert f"the story of seed {verdict.seed}" in told
    assert f"--replay {verdict.seed} --only {to_text(chosen)} --mutant {name}" in told


@pytest.mark.parametrize("mutant", [None, "trust-every-restart"])
def test_steps_find_what_a_full_check_after_every_tick_finds(
    mutant: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed = 1 if mutant is None else caught(mutant).seed
    seldom = run_seed(PROFILE, seed, mutant)
    monkeypatch.setattr(observation, "TICKS_PER_FULL_CHECK", 1)

    always = run_seed(PROFILE, seed, mutant)

    def first(verdict: Verdict) -> tuple[object, ...]:
        return tuple((a.check, a.partition, a.at_us) for a in verdict.anomalies[:1])

    assert first(seldom) == first(always)
