"""The table of scenarios in the docs: which id is shown where, generated from what claims them.

    ./dev python -m tests.tidy.scenario_table

writes `docs/scenarios-shown.md` anew, and the index with which `tidelog lab run ID` finds them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import groupby

from tests.process.played_stories import PLAYED
from tests.tidy.claims import GUIDE, STORIES, Claim, claims
from tests.tidy.reading import ROOT
from tests.tidy.scenarios import PARTLY, REQUIRED, WAITING

TABLE_PATH = "docs/scenarios-shown.md"
INDEX_PATH = "src/tidelog/lab/scenarios.json"
HEAD = """\
# Scenarios and where they are shown

`D1`…`D5` are sentences of five documents about Kafka: 1 re-election and idempotence, 2 leader
epochs and truncation, 3 leader failure, 4 exactly-once producers, 5 leader election and racks. `N`
are notes where Kafka 4 differs from a document; the note is what is asserted. `X` goes beyond the
documents.

A *story* is a function in `src/tidelog/lab/stories` that reads as prose. All of them are played in
the simulator (`tests/stories/test_lab.py`), many on real processes, too
(`tests/process/test_stories.py`). What needs words rather than a test is explained in the
[guide](guide-1-reelection.md). This page is generated; a test fails when it is not up to date.

"""
COLUMNS = "| id | what | where | engine |\n|---|---|---|---|\n"
ENGINES = {
    "tests/process/": "processes",
    "tests/compat/": "processes",
    "tests/seeds/": "simulator",
    "tests/stories/": "simulator",
    STORIES: "simulator",
    GUIDE: "guide",
}
NUMBERS = re.compile(r"(\d+)")


def table(found: Sequence[Claim]) -> str:
    """The whole page."""
    ordered = sorted(found, key=lambda claim: (_order(claim.id), claim.path, claim.line))
    shown = {
        scenario: _row(scenario, list(group))
        for scenario, group in groupby(ordered, lambda each: each.id)
    }
    waiting = {
        scenario: f"| {_anchor(scenario)} | *not yet*: waits for {reason} | | |"
        for scenario, reason in WAITING.items()
    }
    rows = shown | waiting
    lines = [rows[scenario] for scenario in sorted(rows, key=_order)]
    partly = len(PARTLY.keys() & shown.keys())
    count = (
        f"**{len(shown) - partly} shown, {partly} partly, {len(waiting)} not yet.** "
        "A variant (a, b, c) counts for itself.\n\n"
    )
    return HEAD + count + COLUMNS + "\n".join(lines) + "\n"


def index(found: Sequence[Claim]) -> str:
    """Where the lab finds each scenario; stories are in its own book."""
    entries: dict[str, dict[str, object]] = {}
    for claim in sorted(found, key=lambda each: (_order(each.id), each.path, each.line)):
        entry = entries.setdefault(claim.id, {"what": REQUIRED.get(claim.id) or claim.text})
        if claim.path.startswith(GUIDE):
            entry["guide"] = claim.path
        elif not claim.path.startswith(STORIES):
            tests = entry.setdefault("tests", [])
            name = f"{claim.path}::{claim.where}" if claim.where else claim.path
            if isinstance(tests, list) and name not in tests:
                tests.append(name)
    for scenario, reason in WAITING.items():
        entries[scenario] = {"waits_for": reason}
    lines = [
        f"{json.dumps(scenario)}: {json.dumps(entries[scenario], ensure_ascii=False)}"
        for scenario in sorted(entries, key=_order)
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _anchor(scenario: str) -> str:
    return f'<a id="{scenario.lower()}"></a>{scenario}'


def _row(scenario: str, group: list[Claim]) -> str:
    told = [claim for claim in group if claim.path.startswith(STORIES)] or group
    text = REQUIRED.get(scenario) or told[0].text
    if scenario in PARTLY:
        text = f"*partly* ({PARTLY[scenario]}): {text}"
    places = dict.fromkeys(
        f"story `{claim.where}`"
        if claim.path.startswith(STORIES)
        else f"[{claim.where}]({claim.where})"
        if claim.path.startswith(GUIDE)
        else f"`{claim.path.removeprefix('tests/')}`"
        for claim in group
    )
    engines = dict.fromkeys(engine for claim in group for engine in _engines(claim))
    where = ", ".join(places)
    return f"| {_anchor(scenario)} | {text.replace('|', '/')} | {where} | {', '.join(engines)} |"


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
    (ROOT / INDEX_PATH).write_text(index(claims()))
    (ROOT / TABLE_PATH).write_text(table(claims()))
