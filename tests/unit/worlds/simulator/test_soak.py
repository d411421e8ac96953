"""A soak takes new seeds of every profile, prints where it began, and ends red if a seed did."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tidelog.judge.anomalies import HEAD_MISSING
from tidelog.worlds.simulator import run, soak
from tidelog.worlds.simulator.disk import SimDisk
from tidelog.worlds.simulator.verdict import Verdict
from tidelog.worlds.simulator.world import SimWorld

FAILING = 1_005
TRIED: list[int] = []


class FakeRun:
    """One seed fails, the others are clean."""

    def __init__(self, seed: int, *, disk_type: type[SimDisk]) -> None:
        TRIED.append(seed)
        self.world = SimWorld(seed=seed)

    def run(self, *, with_digest: bool = False) -> Verdict:
        found = HEAD_MISSING.found(
            at_us=1, partition="orders-0", log_start_offset=5, deleted_below=0
        )
        return Verdict(
            seed=self.world.seed,
            anomalies=(found,) if self.world.seed == FAILING else (),
            operations=10,
            steps=5,
            events=Counter(),
            digest=None,
            newest_lines=(),
            traceback=None,
        )


@pytest.fixture(autouse=True)
def _fake_profiles(monkeypatch: pytest.MonkeyPatch) -> None:
    TRIED.clear()
    for profile in run.PROFILES:
        monkeypatch.setitem(run.PROFILES, profile, FakeRun)


def test_every_profile_has_its_turn_and_a_failing_seed_makes_the_soak_red(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["--minutes", "0", "--jobs", "1", "--first-seed", "1000"]

    assert soak.main(arguments) == 1

    told = capsys.readouterr()
    for profile in run.PROFILES:
        assert f"{profile}: {soak.SEEDS_PER_TURN} seeds, 1 failed" in told.out
        assert f"--profile {profile} --replay {FAILING}" in told.out
        assert f"keep it: ONCE_FAILED in tests/seeds/test_{profile}_seeds.py" in told.out
    assert "of 0 minutes" in told.err


def test_a_soak_begins_elsewhere_each_time_and_says_where(
    capsys: pytest.CaptureFixture[str],
) -> None:
    begun = []
    for _ in range(2):
        assert soak.main(["--minutes", "0", "--jobs", "1", "--profile", "storage"]) == 0
        found = re.search(r"from seed (\d+) at commit", capsys.readouterr().out)
        assert found is not None
        begun.append(int(found[1]))

    assert begun[0] != begun[1]
    assert [seed for first in begun for seed in range(first, first + soak.SEEDS_PER_TURN)] == TRIED


def test_nonsense_is_refused() -> None:
    for arguments in (["--minutes", "-1"], ["--jobs", "0"], ["--profile", "none"]):
        with pytest.raises(SystemExit) as ended:
            soak.main(arguments)
        assert ended.value.code == 2
