"""The table of scenarios in the docs: which id is shown where, generated from what claims them.

    ./dev python -m tests.tidy.scenario_table

writes `docs/scenarios-shown.md` anew.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

from tests.process.played_stories import PLAYED
from tests.tidy.claims import STORIES, Claim, claims
from tests.tidy.reading import ROOT
from tests.tidy.scenarios import REQUIRED

TABLE_PATH = "docs/scenarios-shown.md"
HEAD = """\
# Scenarios and where they are shown

`D1`…`D5` are sentences of five documents about Kafka: 1 re-election and idempotence, 2 leader
epochs and truncation, 3 leader failure, 4 exactly-once producers, 5 leader election and racks. `N`
are notes where Kafka 4 differs from a document; the note is what is asserted. `X` goes beyond the
documents.

A *story* is a function in `src/tidelog/lab/stories` that reads as prose. All of them are played in
the simulator (`tests/stories/test_lab.py`), many on real processes, too
(`tests/process/test_stories.py`). This page is generated; a test fails when it is not up to date.

| id | what | where | engine |
|---|---|---|---|
"""
ENGINES = {
    "tests/process/": "processes",
    "tests/compat/": "processes",
    "tests/seeds/": "simulator",
    "tests/stories/": "simulator",
    STORIES: "simulator",
}
NUMBERS = re.compile(r"(\d+)")


def table(found: Sequence[Claim]) -> str:
    """The whole page."""
    ordered = sorted(found, key=lambda claim: (_order(claim.id), claim.path, claim.line))
    rows = [
        _row(scenario, list(group)) for scenario, group in groupby(ordered, lambda each: each.id)
    ]
    return HEAD + "\n".join(rows) + "\n"


def _row(scenario: str, group: list[Claim]) -> str:
    told = [claim for claim in group if claim.path.startswith(STORIES)] or group
    text = REQUIRED.get(scenario) or told[0].text
    places = dict.fromkeys(
        f"story `{claim.where}`"
        if claim.path.startswith(STORIES)
        else f"`{claim.path.removeprefix('tests/')}`"
        for claim in group
    )
    engines = dict.fromkeys(engine for claim in group for engine in _engines(claim))
    where = ", ".join(places)
    return f"| {scenario} | {text.replace('|', '/')} | {where} | {', '.join(engines)} |"


def _engines(claim: Claim) -> list[str]:
    found = [engine for prefix, engine in ENGINES.items() if claim.path.startswith(prefix)]
    if claim.path.startswith(STORIES) and claim.where in PLAYED:
        found.append("processes")
    return found or ["unit test"]


def _order(scenario: str) -> list[str | int]:
    """Numbers by value: D3-T2 stands before D3-T10."""
    pieces = NUMBERS.split(scenario.upper())
    return [int(piece) if piece.isdecimal() else piece for piece in pieces]


if __name__ == "__main__":
    (ROOT / TABLE_PATH).write_text(table(claims()))
