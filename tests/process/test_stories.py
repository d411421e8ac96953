"""The lab's stories on real broker processes: the same verdict, step by step, as in the simulator.

A story that ends early, a step that finds something else, a look that is left out: each is a
difference.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

import tidelog.lab.stories  # noqa: F401 - opens the book
from tests.process.played_stories import PLAYED, QUICK
from tidelog.lab.engines.processes import ProcessEngine
from tidelog.lab.engines.simulator import SimulatorEngine
from tidelog.lab.report import Report
from tidelog.lab.story import BOOK, Story, play

LONG = (pytest.mark.long, pytest.mark.rotating(3))
PACE = 1.0
"""As slow as the stories say, not three times as fast: beside other tests a broker may get no
processor for a second, and a session of two would then end. Nor does a follower that is held back
leave the in-sync set before its leader is killed."""


class Seen(NamedTuple):
    """One look of a story, whatever numbers it found."""

    ids: tuple[str, ...]
    step: str
    what: str
    holds: bool


def looks(report: Report) -> list[Seen]:
    return [
        Seen(step.ids, step.text, finding.what, finding.holds)
        for step in report.steps
        for finding in step.findings
    ]


def verdict(report: Report, told: Story) -> dict[str, str | None]:
    """Of each scenario why the story did not show it; None: it did."""
    return {scenario: report.why_not(scenario) for scenario in told.ids}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else LONG) for name in PLAYED],
)
def test_processes_and_the_simulator_tell_the_same_story(name: str) -> None:
    told = BOOK[name]
    simulated = play(told, SimulatorEngine(seed=1))
    with ProcessEngine(pace=PACE) as engine:
        real = play(told, engine)
        said = "" if real.failure is None else engine.cluster.last_log_lines()

    report = "\n".join([*real.lines(), said])
    assert verdict(real, told) == verdict(simulated, told), report
    assert looks(real) == looks(simulated), report
    assert (real.cannot, real.failure) == (None, None), report
