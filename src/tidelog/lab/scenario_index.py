"""Where each scenario is shown: by stories of the book, by tests of a checkout, or in the guide.

The index is written by `./dev python -m tests.tidy.scenario_table` from what claims a scenario, so
that `tidelog lab run ID` can open every one of them, also those that no story shows.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

INDEX = "scenarios.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One id of the five documents, of the notes on them, or beyond them."""

    id: str
    what: str
    """What is shown, as a sentence."""
    tests: tuple[str, ...] = ()
    """As pytest names them, from the root of a checkout."""
    guide: str | None = None
    """The page that explains it."""
    waits_for: str | None = None
    """What has to be built before it can be shown."""


@cache
def scenarios() -> dict[str, Scenario]:
    """Every scenario by its id."""
    entries = json.loads(files("tidelog.lab").joinpath(INDEX).read_text(encoding="utf-8"))
    return {
        scenario: Scenario(
            id=scenario,
            what=entry.get("what", ""),
            tests=tuple(entry.get("tests", ())),
            guide=entry.get("guide"),
            waits_for=entry.get("waits_for"),
        )
        for scenario, entry in entries.items()
    }


def find_scenarios(name: str) -> list[Scenario]:
    """The scenario of this id, or its variants: D3-PS3 stands for D3-PS3a and D3-PS3b."""
    wanted = name.upper()
    return [
        each
        for scenario, each in scenarios().items()
        if scenario.upper() == wanted
        or (scenario[:-1].upper() == wanted and scenario[-1] in "abcd")
    ]


def checkout() -> Path | None:
    """The root of the checkout that this package runs from; None for an installed one."""
    root = Path(__file__).parents[3]
    return root if (root / "tests" / "conftest.py").is_file() else None
