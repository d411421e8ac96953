"""A story is a function that is handed a Lab; its decorator says which scenarios it shows.

    @story("D2-S5", "N12")
    def c_is_elected_when_it_stands_first(lab: Lab) -> None:
        '''With replicas [A, C, B] the controller takes C, and M2 vanishes as well as M3.'''

The function's name and its docstring are the story's title and prose. Every id of the decorator
must be named by a step of the story, and no step may name another.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass

from tidelog.lab.checks import Refuted
from tidelog.lab.engine import CannotHere, Engine, StoryTimeout
from tidelog.lab.evidence_queries import Unanswered
from tidelog.lab.lab import Lab
from tidelog.lab.report import Report, StoryStep

StoryFunction = Callable[[Lab], None]


@dataclass(frozen=True, slots=True)
class Story:
    """One story of the book."""

    name: str
    ids: tuple[str, ...]
    prose: str
    path: str
    act: StoryFunction

    @property
    def title(self) -> str:
        return self.prose.split("\n\n")[0].replace("\n", " ")


BOOK: dict[str, Story] = {}
"""Every story by its name, in the order in which it was written down."""


def story(*ids: str) -> Callable[[StoryFunction], StoryFunction]:
    """Enter a function into the book."""

    def enter(act: StoryFunction) -> StoryFunction:
        name = act.__name__
        assert name not in BOOK, f"two stories are called {name}"
        assert ids and len(set(ids)) == len(ids), f"{name} names no scenario, or one twice"
        prose = (act.__doc__ or "").strip()
        assert prose, f"{name} has no prose"
        path = act.__module__.replace(".", "/") + ".py"
        BOOK[name] = Story(name, ids, "\n".join(map(str.strip, prose.split("\n"))), path, act)
        return act

    return enter


def stories_of(scenario: str) -> list[Story]:
    return [each for each in BOOK.values() if scenario in each.ids]


def play(
    story: Story, engine: Engine, *, on_step: Callable[[StoryStep], None] | None = None
) -> Report:
    """Play a story on an engine, from its beginning to its end or to where it goes wrong."""
    report = Report(story=story.name, engine=engine.name, on_step=on_step)
    lab = Lab(engine, report)
    try:
        story.act(lab)
    except CannotHere as word:
        report.cannot = str(word)
    except (Refuted, StoryTimeout, Unanswered) as wrong:
        report.failure = str(wrong)
    except (AssertionError, LookupError, ValueError) as wrong:
        frame = traceback.extract_tb(wrong.__traceback__)[-1]
        report.failure = f"{frame.filename}:{frame.lineno}: {frame.line} {wrong}"
    named = {scenario for step in report.steps for scenario in step.ids}
    strangers = sorted(named - set(story.ids))
    if strangers and report.failure is None:
        report.failure = f"steps name {', '.join(strangers)}, the story does not"
    return report
