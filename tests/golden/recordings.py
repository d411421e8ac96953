"""What Apache Kafka answered, kept as readable files: one per API, one entry per case.

What a cluster answered, a broker with groups, one that coordinates, or one with transactions, is in
files of its own, whose names begin with `cluster-`, `groups-`, `coordinated-` and `transactions-`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.golden.broker import Broker
from tests.golden.cases.registry import Case
from tests.golden.talk import Talk

DIRECTORY = Path(__file__).with_name("recordings")

Steps = list[dict[str, Any]]


def run(case: Case, broker: Broker) -> Steps:
    """Hold one case's conversation; what was said, as plain JSON data."""
    talk = Talk(broker, case.name)
    try:
        case.run(talk)
    finally:
        talk.close()
    steps: Steps = json.loads(json.dumps(talk.steps))
    return steps


def load(directory: Path = DIRECTORY) -> dict[str, Steps]:
    """All recordings by the name of their case."""
    found: dict[str, Steps] = {}
    for file in sorted(directory.glob("*.json")):
        for name, entry in json.loads(file.read_text())["cases"].items():
            found[name] = entry["steps"]
    return found


def save(recorded: Mapping[str, Steps], cases: Iterable[Case], directory: Path = DIRECTORY) -> None:
    """Write the files anew; entries of cases that are gone go too."""
    directory.mkdir(parents=True, exist_ok=True)
    by_file: dict[str, dict[str, Any]] = {}
    for case in cases:
        if case.name in recorded:
            entry = {"description": case.description, "steps": recorded[case.name]}
            by_file.setdefault(case.file, {})[case.name] = entry
    for old in directory.glob("*.json"):
        if old.stem not in by_file:
            old.unlink()
    for file, entries in by_file.items():
        text = _text(file.rpartition("-")[2], entries)
        (directory / f"{file}.json").write_text(text)


def _text(api: str, entries: Mapping[str, Any]) -> str:
    """JSON with sorted keys, one line per step: a changed answer is one changed line of a diff."""
    cases = []
    for name in sorted(entries):
        entry = entries[name]
        steps = ",\n".join(f"  {json.dumps(step, sort_keys=True)}" for step in entry["steps"])
        head = f'"description": {json.dumps(entry["description"])}, "steps": ['
        cases.append(f" {json.dumps(name)}: {{{head}\n{steps}\n ]}}")
    return f'{{"api": {json.dumps(api)}, "cases": {{\n' + ",\n".join(cases) + "\n}}\n"
