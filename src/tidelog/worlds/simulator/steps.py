"""Steps: what happens to a cluster in a run, as data that can be printed, selected and shortened.

A seed makes a list of steps. A run carries them out, each at its time. Since they are data, a
failing run can be tried again with fewer of them, and the few that are left are the story.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tidelog.core.model.exceptions import TidelogError


class BadChoice(TidelogError, ValueError):
    """A text that chooses no steps."""


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One event: a verb, its targets, when, and for how long."""

    at_ms: int
    verb: str
    who: tuple[str, ...] = ()
    for_ms: int = 0

    @property
    def end_ms(self) -> int:
        return self.at_ms + self.for_ms

    def __str__(self) -> str:
        who = " ".join(("", *self.who))
        lasting = f" for {self.for_ms} ms" if self.for_ms else ""
        return f"{self.at_ms:6} ms  {self.verb}{who}{lasting}"


@dataclass(frozen=True, slots=True, order=True)
class ChosenStep:
    """One step of a seed's list, by its number, perhaps lasting less long."""

    number: int
    for_ms: int | None = None

    def __str__(self) -> str:
        return f"{self.number}" if self.for_ms is None else f"{self.number}/{self.for_ms}"


def choose(steps: Sequence[PlanStep], chosen: Sequence[ChosenStep]) -> list[PlanStep]:
    """The steps that a choice leaves, in their order."""
    return [
        steps[each.number]
        if each.for_ms is None
        else replace(steps[each.number], for_ms=each.for_ms)
        for each in sorted(chosen)
    ]


def to_text(chosen: Sequence[ChosenStep]) -> str:
    """A choice as the command line takes it: `3,7/200` is number 3, and 7 for only 200 ms."""
    return ",".join(str(each) for each in sorted(chosen)) or "none"


def from_text(text: str, *, count: int) -> list[ChosenStep]:
    """What `to_text` wrote, for a list of so many steps."""
    if text == "none":
        return []
    chosen = []
    for part in text.split(","):
        number, slash, for_ms = part.partition("/")
        if not number.isdigit() or int(number) >= count or (slash and not for_ms.isdigit()):
            raise BadChoice(f"{part!r} is none of the steps 0 to {count - 1}")
        chosen.append(ChosenStep(int(number), int(for_ms) if slash else None))
    return sorted(chosen)
