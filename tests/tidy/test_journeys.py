"""The journeys of ARCHITECTURE.md do not grow unnoticed: the files of core that run on the way."""

from __future__ import annotations

import sys
from types import FrameType

import pytest

from tests.tidy.reading import ROOT
from tidelog.core.node.node import Node
from tidelog.lab.engines.simulator import SimulatorEngine
from tidelog.lab.lab import Lab
from tidelog.lab.stories.baseline import orders
from tidelog.lab.story import Story, play

CORE = str(ROOT / "src/tidelog/core")


class RunFiles:
    """The files of core in which a function was called meanwhile."""

    def __init__(self) -> None:
        self.files: set[str] = set()

    def __enter__(self) -> set[str]:
        sys.setprofile(self._on_call)
        return self.files

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _on_call(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(CORE):
            self.files.add(frame.f_code.co_filename)


def stated(journey: str) -> int:
    """The count that ARCHITECTURE.md gives."""
    page = (ROOT / "ARCHITECTURE.md").read_text()
    row = next(line for line in page.splitlines() if line.startswith(f"| {journey}"))
    return int(row.split("|")[2].split()[0])


def test_the_journeys_are_no_longer_than_the_page_says(monkeypatch: pytest.MonkeyPatch) -> None:
    # In the simulator every room checks itself after every tick: that is no part of a journey.
    monkeypatch.setattr(Node, "check", lambda node: None)
    produce, death = RunFiles(), RunFiles()

    def walk(lab: Lab) -> None:
        orders(lab)
        with produce:
            lab.writer("writer").begin("message")
            lab.until_high_watermark(11)
        with death:
            lab.kill(1)
            lab.until_led(2)

    story = Story(name="walk", ids=("D3-L4",), prose="", path="", act=walk)
    play(story, SimulatorEngine(seed=1))

    assert 20 < len(produce.files) <= stated("a Produce")
    assert 40 < len(death.files) <= stated("a leader's death")
