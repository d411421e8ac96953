"""The report of one story: its steps, each named by scenario ids, each with what was found.

A step holds when everything that was checked in it was as the story says. A step in which nothing
was checked shows nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """One check: what was examined, what was found, what the story says."""

    what: str
    found: str
    wanted: str
    holds: bool


@dataclass(slots=True)
class StoryStep:
    """A passage of the story and the evidence for it."""

    ids: tuple[str, ...]
    text: str
    at_us: int
    findings: list[CheckFinding] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        return bool(self.findings) and all(finding.holds for finding in self.findings)


@dataclass(slots=True)
class Report:
    """How a story went on one engine."""

    story: str
    engine: str
    steps: list[StoryStep] = field(default_factory=list)
    failure: str | None = None
    """Why it ended before its end."""
    cannot: str | None = None
    """The word that this engine does not understand."""
    reads_judged: dict[str, int] = field(default_factory=dict)
    """By partition: how many readers its newest audit judged."""
    on_step: Callable[[StoryStep], None] | None = None
    """Called when a step begins, for those who watch."""

    def begin(self, step: StoryStep) -> None:
        self.steps.append(step)
        if self.on_step is not None:
            self.on_step(step)

    @property
    def is_refuted(self) -> bool:
        """Returns whether something was found that is not as the story says."""
        return any(not each.holds for step in self.steps for each in step.findings)

    def steps_of(self, scenario: str) -> list[StoryStep]:
        return [step for step in self.steps if scenario in step.ids]

    def why_not(self, scenario: str) -> str | None:
        """None: the story showed this scenario. Otherwise what is missing."""
        steps = self.steps_of(scenario)
        for step in steps:
            for finding in step.findings:
                if not finding.holds:
                    return f"{step.text}: {finding.what} is {finding.found}, not {finding.wanted}"
        if self.failure is not None:
            return self.failure
        if not steps:
            return "the story has no step for it"
        if not all(step.findings for step in steps):
            return "a step of it checks nothing"
        return None

    def lines(self) -> Iterator[str]:
        """The report as text, one step after the other."""
        yield f"{self.story} ({self.engine})"
        for step in self.steps:
            mark = "ok" if step.holds else "--"
            names = ", ".join(step.ids)
            yield f"{step.at_us / 1_000:12.3f} ms  {mark}  {names}: {step.text}"
            for finding in step.findings:
                against = "" if finding.holds else f", not {finding.wanted}"
                yield f"{'':22}{finding.what} = {finding.found}{against}"
        for partition, readers in self.reads_judged.items():
            yield f"  the audit judged what {readers} readers of {partition} were given"
        if not self.reads_judged:
            yield "  no audit: what readers were given was not judged"
        if self.failure is not None:
            yield f"  ended early: {self.failure}"
        if self.cannot is not None:
            yield f"  cannot be played here: {self.cannot}"
