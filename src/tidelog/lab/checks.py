"""Checks of a story: it says which scenario it is about to show, and each finding is reported."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar

from tidelog.core.model.exceptions import TidelogError
from tidelog.lab.engine import Engine
from tidelog.lab.report import CheckFinding, Report, StoryStep

T = TypeVar("T")


class Refuted(TidelogError, AssertionError):
    """The cluster is not as the story says."""


class Checks:
    """Each check adds what it found to the report, and ends the story if it is wrong."""

    def __init__(self, engine: Engine, report: Report) -> None:
        self._engine = engine
        self.report = report

    def step(self, *ids_and_text: str) -> None:
        """Begin a passage: scenario ids, then one sentence."""
        *ids, text = ids_and_text
        self.report.begin(StoryStep(tuple(ids), text, self._engine.now_us))

    def same(self, what: str, found: T, wanted: T) -> None:
        """It is exactly this."""
        self._note(what, repr(found), repr(wanted), found == wanted)

    def other(self, what: str, found: T, unwanted: T) -> None:
        """It is anything but this."""
        self._note(what, repr(found), f"anything but {unwanted!r}", found != unwanted)

    def true(self, what: str, holds: bool) -> None:
        """A sentence is true."""
        self._note(what, str(bool(holds)), "True", bool(holds))

    def among(self, what: str, found: T, wanted: Collection[T]) -> None:
        """It is one of these."""
        self._note(what, repr(found), f"one of {list(wanted)!r}", found in wanted)

    def between(self, what: str, found: float, at_least: float, at_most: float) -> None:
        """A measure lies in a range, both ends included."""
        holds = at_least <= found <= at_most
        self._note(what, f"{found:g}", f"between {at_least:g} and {at_most:g}", holds)

    def lasted(self, what: str, found_ms: float, at_least: float, at_most: float) -> None:
        """A duration lies in a range, as exactly as durations are what they seem on this engine."""
        self.between(what, found_ms, *self._engine.stretched(at_least, at_most))

    def _note(self, what: str, found: str, wanted: str, holds: bool) -> None:
        assert self.report.steps, "a story checks something before its first step"
        step = self.report.steps[-1]
        step.findings.append(CheckFinding(what, _short(found), _short(wanted), holds))
        if not holds:
            names = ", ".join(step.ids)
            raise Refuted(f"{names}: {step.text}: {what} is {_short(found)}, not {_short(wanted)}")


def _short(text: str, length_max: int = 400) -> str:
    return text if len(text) <= length_max else f"{text[:length_max]}… ({len(text)} characters)"
