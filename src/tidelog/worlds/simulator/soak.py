"""`./dev soak`: new seeds of every profile for a while, each time others.

The seeds of CI are made of the code, so that a red run is red again everywhere; the same code
never meets a new world there. A soak begins at a number that nobody chose, and prints it. A failing
seed is printed as a story, the soak goes on, and the exit code is 1 in the end.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import dataclass
from random import SystemRandom

from tidelog.worlds.simulator.campaign_report import commit, print_failure
from tidelog.worlds.simulator.run import PROFILES, REPORTED_IN_FULL, shrink, verdicts
from tidelog.worlds.simulator.verdict import Verdict

FIRST_SEED_MAX = 2**40
"""Far beyond the seeds that CI takes."""
SEEDS_PER_TURN = 8
"""Of one profile, by each process, before the next profile has its turn."""


@dataclass(slots=True)
class SoakTotals:
    """How much of one profile was tried."""

    seeds: int = 0
    failed: int = 0
    operations: int = 0
    cpu_seconds: float = 0.0

    def add(self, verdict: Verdict) -> None:
        self.seeds += 1
        self.failed += bool(verdict.anomalies)
        self.operations += verdict.operations
        self.cpu_seconds += verdict.cpu_seconds

    def __str__(self) -> str:
        return (
            f"{self.seeds:,} seeds, {self.failed} failed, {self.operations:,} checked operations, "
            f"{self.cpu_seconds / max(self.seeds, 1):.2f} CPU-seconds per seed"
        )


def main(arguments: list[str]) -> int:
    """Parse, soak, report; the result is the exit code."""
    options = _parse(arguments)
    first_seed = options.first_seed
    if first_seed is None:
        first_seed = SystemRandom().randrange(FIRST_SEED_MAX)
    profiles = [options.profile] if options.profile else sorted(PROFILES)
    print(f"soak of {', '.join(profiles)} from seed {first_seed} at commit {commit()}", flush=True)
    totals = soak(profiles, first_seed=first_seed, seconds=options.minutes * 60, jobs=options.jobs)
    for profile, total in totals.items():
        print(f"{profile}: {total}")
    return 1 if any(total.failed for total in totals.values()) else 0


def soak(
    profiles: list[str], *, first_seed: int, seconds: float, jobs: int
) -> dict[str, SoakTotals]:
    """Every profile has its turn at least once; the turn in which the time ends is finished."""
    totals = {profile: SoakTotals() for profile in profiles}
    started_s = time.monotonic()
    turn = range(first_seed, first_seed + SEEDS_PER_TURN * jobs)
    while True:
        for profile, total in totals.items():
            for verdict in verdicts(profile, turn, jobs, None):
                total.add(verdict)
                if verdict.anomalies:
                    _report(profile, verdict, total)
            _show_progress(totals, time.monotonic() - started_s, seconds)
        if time.monotonic() - started_s >= seconds:
            return totals
        turn = range(turn.stop, turn.stop + len(turn))


def _report(profile: str, verdict: Verdict, total: SoakTotals) -> None:
    if total.failed > REPORTED_IN_FULL:
        print(f"{profile} seed {verdict.seed} failed: {verdict.anomalies[0].name}", flush=True)
        return
    print_failure(profile, verdict, None)
    if verdict.story:
        shrink(profile, verdict, None)
    print(f"  keep it: ONCE_FAILED in tests/seeds/test_{profile}_seeds.py", flush=True)


def _show_progress(totals: dict[str, SoakTotals], spent_s: float, seconds: float) -> None:
    counts = ", ".join(
        f"{profile} {total.seeds:,} ({total.failed} failed)" for profile, total in totals.items()
    )
    end = "   \r" if sys.stderr.isatty() else "\n"
    sys.stderr.write(f"{spent_s / 60:.1f} of {seconds / 60:g} minutes: {counts}{end}")
    sys.stderr.flush()


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev soak", description=__doc__)
    parser.add_argument("--minutes", type=_minutes, default=10.0, help="how long (default 10)")
    parser.add_argument("--profile", choices=sorted(PROFILES), help="only this one")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="default: all cores")
    parser.add_argument("--first-seed", type=int, metavar="K", help="begin here: again the same")
    options = parser.parse_args(arguments)
    if options.jobs < 1:
        parser.error("--jobs must be at least 1")
    return options


def _minutes(text: str) -> float:
    minutes = float(text)
    if minutes < 0:
        raise argparse.ArgumentTypeError("must not be negative")
    return minutes


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
