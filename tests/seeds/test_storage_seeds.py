"""Seeds of the storage profile: fresh ones, those that failed before, and the same trace twice."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.seeds.fresh import first_fresh_seed
from tidelog.worlds.simulator.mutants import MUTANTS
from tidelog.worlds.simulator.run import run_seed

FRESH_BASE = first_fresh_seed()
FRESH = 60
CHUNKS = 6
LONG = 1_000

ONCE_FAILED: dict[int, str] = {
    15: "a sync was under way when retention deleted its segment, and every later ack hung on it",
}
"""Seeds that failed before a repair, with what went wrong; they must stay clean."""

DIGEST = """
import sys
from tidelog.worlds.simulator.profiles.storage import StorageRun
for seed in (1, 2, 3):
    verdict = StorageRun(seed).run(with_digest=True)
    print(verdict.digest, verdict.steps, len(verdict.anomalies))
"""


def failures(seeds: range) -> list[str]:
    return [
        f"seed {seed}: {anomaly.check} in {anomaly.partition}: {anomaly.evidence} "
        f"(again: ./dev sim --profile storage --replay {seed})"
        for seed in seeds
        for anomaly in run_seed("storage", seed, None).anomalies[:1]
    ]


@pytest.mark.scenario("D4-O9", "D4-I3", "D4-I8", "X-32")
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_fresh_seeds_are_clean(chunk: int) -> None:
    share = FRESH // CHUNKS
    first = FRESH_BASE + chunk * share
    assert failures(range(first, first + share)) == []


@pytest.mark.long
@pytest.mark.parametrize("chunk", range(10))
def test_a_thousand_seeds_are_clean(chunk: int) -> None:
    share = LONG // 10
    first = 1 + chunk * share
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
    assert len(outputs.pop().splitlines()) == 3


@pytest.mark.parametrize("name", sorted(n for n, m in MUTANTS.items() if m.profile == "storage"))
def test_a_planted_mistake_is_caught_within_its_seeds_by_its_check(name: str) -> None:
    mutant = MUTANTS[name]
    caught: set[str] = set()
    for seed in range(1, mutant.within_seeds + 1):
        caught |= {anomaly.check for anomaly in run_seed("storage", seed, name).anomalies}
        if caught & mutant.caught_by:
            return
    pytest.fail(f"{name} was not caught in {mutant.within_seeds} seeds: {sorted(caught)}")
