"""What the tests of seeds share: trying them, telling how to see it again, comparing traces."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Sequence

import pytest

from tidelog.worlds.simulator.campaign_report import command
from tidelog.worlds.simulator.mutants import MUTANTS
from tidelog.worlds.simulator.run import run_seed
from tidelog.worlds.simulator.verdict import Verdict

HASH_SEEDS = ("1", "4242")

DIGEST = """
import sys
from tidelog.worlds.simulator.run import PROFILES
for seed in map(int, sys.argv[2:]):
    verdict = PROFILES[sys.argv[1]](seed).run(with_digest=True)
    print(verdict.digest, verdict.steps, len(verdict.anomalies))
"""


def chunk_of(number: int, *, first: int, share: int) -> range:
    """The seeds of one test: so many of them, after those of the tests before it."""
    return range(first + number * share, first + (number + 1) * share)


def failures(profile: str, seeds: Iterable[int]) -> list[str]:
    """The first anomaly of each seed that is not clean, with the command that shows it again."""
    return [
        f"seed {seed}: {anomaly.name} in {anomaly.partition}: {anomaly.text} "
        f"(again: {command(profile, seed, None)})"
        for seed in seeds
        for anomaly in run_seed(profile, seed, None).anomalies[:1]
    ]


def traces_under_hash_seeds(profile: str, seeds: Sequence[int]) -> list[list[str]]:
    """One line for each seed's trace, as Python renders it under two hash seeds."""
    return [
        subprocess.run(
            [sys.executable, "-c", DIGEST, profile, *map(str, seeds)],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        for hash_seed in HASH_SEEDS
    ]


def caught(name: str) -> Verdict:
    """The first seed in which the mistake is found by a check that is meant for it."""
    mutant = MUTANTS[name]
    found: set[str] = set()
    for seed in range(1, mutant.within_seeds + 1):
        verdict = run_seed(mutant.profile, seed, name)
        kinds = {anomaly.kind for anomaly in verdict.anomalies}
        if kinds & mutant.caught_by:
            return verdict
        found |= {kind.name for kind in kinds}
    pytest.fail(f"{name} was not caught in {mutant.within_seeds} seeds: {sorted(found)}")


def mutants_of(profile: str) -> list[str]:
    return sorted(name for name, mutant in MUTANTS.items() if mutant.profile == profile)
