"""The front door: honest exit codes, a failing seed told with what is needed to repeat it."""

from __future__ import annotations

from collections import Counter

import pytest

from tidelog.judge.anomalies import LOST
from tidelog.worlds.simulator import run
from tidelog.worlds.simulator.disk import SimDisk
from tidelog.worlds.simulator.verdict import Verdict
from tidelog.worlds.simulator.world import SimWorld


class FakeRun:
    """Seed 3 loses a record; the others are clean."""

    def __init__(self, seed: int, *, disk_type: type[SimDisk]) -> None:
        self.world = SimWorld(seed=seed)
        self.world.trace.emit("fake", ("happened", seed))

    def run(self, *, with_digest: bool = False) -> Verdict:
        lost = LOST.found(
            at_us=1_500,
            partition="orders-0",
            payload="a",
            writer="w",
            offset=7,
            acks="1",
            log_start_offset=0,
            log_end_offset=7,
        )
        return Verdict(
            seed=self.world.seed,
            anomalies=(lost,) if self.world.seed == 3 else (),
            operations=10,
            steps=5,
            events=Counter({"Chunk": 1}),
            digest="abc" if with_digest else None,
            newest_lines=("the newest event",),
            traceback=None,
        )


@pytest.fixture(autouse=True)
def _fake_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(run.PROFILES, "storage", FakeRun)


def test_clean_seeds_end_with_zero(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["--seeds", "2"]) == 0
    told = capsys.readouterr()
    assert "2 seeds clean (1 to 2)" in told.out
    assert "  never: " in told.out and "Chunk," not in told.out
    assert "2/2 seeds" in told.err


def test_a_failing_seed_is_told_with_seed_commit_check_and_events(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run.main(["--seeds", "5"]) == 1
    told = capsys.readouterr().out
    assert "seed 3 failed at commit" in told
    assert "the newest event" in told
    assert "LOST at 1.500 ms in orders-0: 'a' of w was answered ok at offset 7" in told
    assert "./dev sim --profile storage --replay 3" in told
    assert "1 of 3 seeds failed" in told


def test_keep_going_runs_every_seed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["--seeds", "5", "--keep-going"]) == 1
    assert "1 of 5 seeds failed" in capsys.readouterr().out


def test_a_replay_prints_every_event_and_the_digest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["--replay", "3"]) == 1
    told = capsys.readouterr().out
    assert "['happened', 3]" in told
    assert "digest abc" in told


def test_a_mutant_must_be_caught(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["--seeds", "2", "--mutant", "forget-names"]) == 1
    assert "was NOT caught in 2 seeds" in capsys.readouterr().out
    assert run.main(["--seeds", "5", "--mutant", "forget-names"]) == 0
    assert "was caught after 3 seeds by: lost" in capsys.readouterr().out


@pytest.mark.parametrize(
    "bad",
    [
        ["--seeds", "0"],
        ["--profile", "nonsense"],
        ["--seeds", "x"],
        ["--only", "3"],
        ["--profile", "replication", "--mutant", "forget-names"],
    ],
)
def test_bad_arguments_end_with_two(bad: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run.main(bad)
    assert ended.value.code == 2


def test_help_teaches_by_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run.main(["--help"])
    assert "./dev sim --profile storage --replay" in capsys.readouterr().out
