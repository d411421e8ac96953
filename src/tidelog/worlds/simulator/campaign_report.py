"""The report of a campaign: how fast it goes, what failed, and which events never fired."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tidelog.judge.anomalies import Anomaly
from tidelog.worlds.simulator.coverage import catalogue
from tidelog.worlds.simulator.steps import ChosenStep, to_text
from tidelog.worlds.simulator.verdict import Verdict

ANOMALIES_SHOWN = 10
LEAST_SHOWN = 5
RARE = 10
"""An event that fired less often than this proves little."""


class Progress:
    """A progress line: how fast it goes and how much of the trace's catalogue has fired."""

    def __init__(self, *, total: int, profile: str) -> None:
        self.done = 0
        self.events: Counter[str] = Counter()
        self._total = total
        self._operations = 0
        self._elections = 0
        self._cpu_seconds = 0.0
        self._started_s = time.monotonic()
        self._printed_s = 0.0
        self._catalogue = catalogue(profile)
        self._is_terminal = sys.stderr.isatty()

    def add(self, verdict: Verdict) -> None:
        self.done += 1
        self.events.update(verdict.events)
        self._operations += verdict.operations
        self._elections += verdict.elections
        self._cpu_seconds += verdict.cpu_seconds
        now_s = time.monotonic()
        if now_s - self._printed_s >= (0.2 if self._is_terminal else 10.0):
            self._printed_s = now_s
            self._print_progress()

    def end_line(self) -> None:
        if self._is_terminal:
            sys.stderr.write("\n")

    def finish(self, *, with_counts: bool) -> None:
        self._print_progress()
        self.end_line()
        counts = {name: self.events[name] for name in sorted(self._catalogue)}
        if with_counts:
            for name, count in counts.items():
                print(f"{count:10} {name}")
        self._print_coverage(counts)
        print(self._pace())

    def _print_coverage(self, counts: Mapping[str, int]) -> None:
        missing = [name for name, count in counts.items() if count == 0]
        print(f"coverage: {len(counts) - len(missing)} of {len(counts)} kinds of events fired")
        if missing:
            print(f"  never: {', '.join(missing)}")
        fired = sorted((count, name) for name, count in counts.items() if count)
        rare = [each for each in fired if each[0] < RARE]
        if rare and self.done >= RARE:
            print(f"  less than {RARE} times: {_counts_text(rare)}")
        else:
            print(f"  least: {_counts_text(fired[:LEAST_SHOWN])}")

    def _pace(self) -> str:
        """Per second of CPU: the machine may be busy with other things."""
        seconds = self._cpu_seconds or time.monotonic() - self._started_s
        seconds = max(seconds, 0.001)
        text = f"{self._operations / seconds:,.0f} checked operations per CPU-second"
        if self._elections:
            text += f", {self._elections / seconds:.1f} elections per CPU-second"
        return (
            f"{self.done:,} seeds in {seconds:,.0f} CPU-seconds: {text}, "
            f"{seconds / max(self.done, 1):.2f} CPU-seconds per seed"
        )

    def _print_progress(self) -> None:
        seconds = max(time.monotonic() - self._started_s, 0.001)
        fired = sum(1 for name in self._catalogue if self.events[name])
        sys.stderr.write(
            f"{self.done}/{self._total} seeds, {self.done / seconds:.1f} seeds/s, "
            f"{self._operations / seconds:,.0f} operations/s, "
            f"{fired}/{len(self._catalogue)} kinds of events"
            + ("   \r" if self._is_terminal else "\n")
        )
        sys.stderr.flush()


def _counts_text(counted: Iterable[tuple[int, str]]) -> str:
    return ", ".join(f"{name} ({count:,})" for count, name in counted)


def seed_summary(verdict: Verdict) -> str:
    """One seed in one line."""
    text = f"seed {verdict.seed}: {verdict.steps} steps, {verdict.operations:,} operations"
    seconds = verdict.cpu_seconds
    if not seconds:
        return text
    return (
        f"{text} ({verdict.operations / seconds:,.0f} per CPU-second), "
        f"{verdict.elections} elections ({verdict.elections / seconds:.1f} per CPU-second), "
        f"{seconds:.2f} CPU-seconds"
    )


def print_failure(profile: str, verdict: Verdict, mutant: str | None) -> None:
    """A failing seed, with all that is needed to see it again."""
    print(f"seed {verdict.seed} failed at commit {commit()}")
    for line in verdict.newest_lines:
        print(f"  {line}")
    if verdict.traceback is not None:
        print(verdict.traceback)
    print_anomalies(verdict.anomalies)
    print(f"  again: {command(profile, verdict.seed, mutant)}")


def print_story(
    profile: str, verdict: Verdict, chosen: Sequence[ChosenStep], mutant: str | None, *, tries: int
) -> None:
    """The few steps with which the seed still fails."""
    print(f"  the story of seed {verdict.seed}, after {tries} tries with fewer steps:")
    for line in verdict.story or ("(nothing happens at all)",):
        print(f"    {line}")
    anomaly = verdict.anomalies[0]
    print(f"    {anomaly.at_us / 1_000:6.0f} ms  {anomaly.name.upper()} in {anomaly.partition}")
    print(f"  again: {command(profile, verdict.seed, mutant, chosen)}")


def command(
    profile: str, seed: int, mutant: str | None, chosen: Sequence[ChosenStep] | None = None
) -> str:
    only = "" if chosen is None else f" --only {to_text(chosen)}"
    planted = "" if mutant is None else f" --mutant {mutant}"
    return f"./dev sim --profile {profile} --replay {seed}{only}{planted}"


def print_anomalies(anomalies: Iterable[Anomaly]) -> None:
    for anomaly in list(anomalies)[:ANOMALIES_SHOWN]:
        print(
            f"  {anomaly.name.upper()} at {anomaly.at_us / 1_000:.3f} ms in {anomaly.partition}: "
            f"{anomaly.text}"
        )


def commit() -> str:
    """The commit of the source; a dirty tree says so."""
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()
