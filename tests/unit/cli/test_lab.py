"""`tidelog lab`: stories are found by name and by scenario, and their verdict is the exit code."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from tidelog.cli.app import app
from tidelog.lab.lab import Lab
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
    def tell(lab: Lab) -> None:
        lab.step("D1-T1", "one is two")
        lab.same("one", 1, 2)

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
