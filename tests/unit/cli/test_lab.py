"""`tidelog lab`: stories are found by name and by scenario, and their verdict is the exit code."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from tidelog.cli import lab
from tidelog.cli.app import app
from tidelog.lab import scenario_index
from tidelog.lab.lab import Lab
from tidelog.lab.scenario_index import checkout, scenarios
from tidelog.lab.story import BOOK, Story

STORY = "stage_1_on_the_leader_alone"


def tidelog_lab(*arguments: str) -> tuple[int, str]:
    told = CliRunner().invoke(app, ["lab", *arguments])
    return told.exit_code, told.output


def test_stories_are_listed_by_name_or_scenario() -> None:
    code, everything = tidelog_lab("list")
    assert code == 0 and STORY in everything and "a_split_brain" in everything
    code, some = tidelog_lab("list", "d3-s5")
    assert code == 0 and "a_split_brain" in some and STORY not in some


def test_a_story_is_played_once_and_reported() -> None:
    code, told = tidelog_lab("run", STORY, "D3-L1")
    assert code == 0
    assert told.count(f"{STORY} (simulator)") == 1
    assert "the high watermark = 10" in told


def test_a_story_that_goes_wrong_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def tell(stage: Lab) -> None:
        stage.step("D1-T1", "one is two")
        stage.same("one", 1, 2)

    monkeypatch.setitem(BOOK, "wrong", Story("wrong", ("D1-T1",), "prose", "path", tell))
    code, told = tidelog_lab("run", "wrong", STORY)
    assert code == 1
    assert "one = 1, not 2" in told and f"{STORY} (simulator)" in told


def test_an_unknown_story_is_refused_with_a_near_one() -> None:
    code, told = tidelog_lab("run", "stage_1_on_the_leader")
    assert code == 2
    assert f"did you mean {STORY}?" in told
    code, told = tidelog_lab("run", "0")
    assert code == 2 and "tidelog lab list" in told


def test_every_scenario_opens_something() -> None:
    """A story, tests, a page of the guide, or what it waits for; each named one exists."""
    root = checkout()
    assert root is not None
    told = {scenario for story in BOOK.values() for scenario in story.ids}
    for scenario in scenarios().values():
        shown = scenario.id in told or scenario.tests or scenario.guide
        assert bool(shown) != bool(scenario.waits_for), scenario.id
        for test in scenario.tests:
            assert (root / test.partition("::")[0]).is_file(), test


def test_a_scenario_that_only_tests_show_is_shown_by_them(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[list[str]] = []

    def run(command: list[str], *, cwd: Path) -> SimpleNamespace:
        ran.append(command)
        return SimpleNamespace(returncode=codes.pop(0))

    monkeypatch.setattr(subprocess, "run", run)
    codes = [0, 1, lab.NO_TEST_RAN]
    named = scenarios()["D4-O1"]

    assert tidelog_lab("run", "d4-o1")[0] == 0
    assert ran[0][-len(named.tests) :] == list(named.tests)
    assert tidelog_lab("run", "D4-O1")[0] == 1
    code, text = tidelog_lab("run", "D4-O1")
    assert code == 0 and "./dev test --all" in text

    monkeypatch.setattr(scenario_index, "checkout", lambda: None)
    code, text = tidelog_lab("run", "D4-O1")
    assert code == 0 and "only a checkout has" in text and named.tests[0] in text
    assert len(ran) == 3


def test_a_scenario_of_the_guide_is_opened_there_and_one_to_come_says_so() -> None:
    code, text = tidelog_lab("run", "D1-K1")
    assert code == 0 and "docs/guide-1-reelection.md" in text
    code, text = tidelog_lab("run", "X-52")
    assert code == 1 and "waits for a story of transactions" in text
