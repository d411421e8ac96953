"""Every story of the lab, played in the simulator; one test for each scenario that it shows."""

from __future__ import annotations

from functools import cache

import pytest

import tidelog.lab.stories  # noqa: F401 - opens the book
from tidelog.lab.engines.simulator import SimulatorEngine
from tidelog.lab.report import Report
from tidelog.lab.story import BOOK, play

CASES = [
    pytest.param(
        each.name,
        scenario,
        id=f"{scenario}-{each.name}",
        marks=[pytest.mark.scenario(scenario), pytest.mark.xdist_group(each.name)],
    )
    for each in BOOK.values()
    for scenario in each.ids
]


@cache
def played(name: str) -> Report:
    """A story is played once; each of its scenarios is then a question about its report."""
    return play(BOOK[name], SimulatorEngine(seed=1))


@pytest.mark.parametrize(("name", "scenario"), CASES)
def test_the_story_shows_its_scenario(name: str, scenario: str) -> None:
    report = played(name)
    reason = report.why_not(scenario)
    assert reason is None, "\n".join([f"{scenario} is not shown: {reason}", *report.lines()])


def test_a_story_is_the_same_every_time() -> None:
    """The same seed plays the same story: two reports are equal line by line."""
    first = next(iter(BOOK.values()), None)
    if first is not None:
        reports = [list(play(first, SimulatorEngine(seed=7)).lines()) for _ in range(2)]
        assert reports[0] == reports[1]
