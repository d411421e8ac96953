"""What is told about a campaign: its pace in CPU-seconds, rare events, and how to see it again."""

from __future__ import annotations

from collections import Counter

import pytest

from tidelog.judge.anomalies import LOST, Anomaly
from tidelog.worlds.simulator.campaign_report import Progress, command, print_story, seed_summary
from tidelog.worlds.simulator.steps import ChosenStep
from tidelog.worlds.simulator.verdict import Verdict

RECORD_LOST = LOST.found(
    at_us=2_500_000,
    partition="safe-0",
    payload="a",
    writer="w",
    offset=7,
    acks="1",
    log_start_offset=0,
    log_end_offset=7,
)


def verdict(*, anomalies: tuple[Anomaly, ...] = (), story: tuple[str, ...] = ()) -> Verdict:
    return Verdict(
        seed=9,
        anomalies=anomalies,
        operations=3_000,
        steps=5,
        events=Counter({"LogTruncated": 1, "BecameLeader": 20}),
        digest=None,
        newest_lines=(),
        traceback=None,
        elections=12,
        cpu_seconds=0.5,
        story=story,
    )


def test_the_pace_is_told_per_second_of_cpu(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress(total=20, profile="replication")
    for _ in range(20):
        progress.add(verdict())
    progress.events["LogTruncated"] = 3

    progress.finish(with_counts=True)

    told = capsys.readouterr().out
    assert "20 seeds in 10 CPU-seconds: 6,000 checked operations per CPU-second" in told
    assert "24.0 elections per CPU-second" in told
    assert "0.50 CPU-seconds per seed" in told
    assert "coverage: 2 of " in told
    assert "less than 10 times: LogTruncated (3)" in told, "an event that hardly ever fires"
    assert "       400 BecameLeader" in told


def test_the_least_fired_events_are_told_even_if_they_are_not_rare(
    capsys: pytest.CaptureFixture[str],
) -> None:
    progress = Progress(total=20, profile="replication")
    for _ in range(20):
        progress.add(verdict())

    progress.finish(with_counts=False)

    assert "least: LogTruncated (20), BecameLeader (400)" in capsys.readouterr().out


def test_a_story_ends_with_what_broke_and_how_to_see_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    failed = verdict(anomalies=(RECORD_LOST,), story=("   300 ms  kill node-2 for 30 ms",))

    print_story("replication", failed, [ChosenStep(4), ChosenStep(7, 30)], None, tries=11)

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "  the story of seed 9, after 11 tries with fewer steps:"
    assert lines[1].endswith("kill node-2 for 30 ms")
    assert lines[2].strip() == "2500 ms  LOST in safe-0"
    assert lines[3] == "  again: ./dev sim --profile replication --replay 9 --only 4,7/30"


def test_a_seed_is_told_in_one_line_with_its_pace() -> None:
    assert seed_summary(verdict()) == (
        "seed 9: 5 steps, 3,000 operations (6,000 per CPU-second), "
        "12 elections (24.0 per CPU-second), 0.50 CPU-seconds"
    )


def test_a_mutant_is_part_of_the_command() -> None:
    assert command("storage", 3, "forget-names") == (
        "./dev sim --profile storage --replay 3 --mutant forget-names"
    )
