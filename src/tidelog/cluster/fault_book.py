"""The faults of now, in a file that every process looks into: `faults.json`.

Whoever changes it holds a lock meanwhile. A fault with an end leaves the book by itself, as its
rules leave the gates.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from tidelog.cluster.directory import Directory, locked, write_whole
from tidelog.cluster.errors import ClusterError
from tidelog.cluster.rules import Rule

PROCESS_FAULTS = ("kill", "stop", "pause")


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultNote:
    """One fault: what it is in words, whom it hit, and what the gates were told."""

    id: str
    what: str
    text: str
    nodes: tuple[int, ...] = ()
    """Of a fault of processes: those that are down or paused because of it."""
    rules: tuple[Rule, ...] = field(default=())
    until_ms: int | None = None
    """Wall clock; None: until it is undone."""

    @property
    def is_of_process(self) -> bool:
        return self.what in PROCESS_FAULTS

    def is_over(self, wall_ms: int) -> bool:
        return self.until_ms is not None and self.until_ms <= wall_ms


class FaultBook:
    """Open it to change it; `notes` to look."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._lock_path = directory.root / "faults.lock"

    def notes(self) -> list[FaultNote]:
        """Those that are not over."""
        return self._read()[1]

    @contextmanager
    def open(self) -> Iterator[OpenBook]:
        """Nobody else changes it meanwhile; written when the block ends without an exception."""
        with locked(self._lock_path):
            number, notes = self._read()
            book = OpenBook(number, notes)
            yield book
            told = {"number": book.number, "faults": [_as_json(each) for each in book.notes]}
            write_whole(self._directory.faults_path, json.dumps(told, indent=2) + "\n")

    def clear(self) -> None:
        self._directory.faults_path.unlink(missing_ok=True)

    def _read(self) -> tuple[int, list[FaultNote]]:
        path = self._directory.faults_path
        try:
            told = json.loads(path.read_text(encoding="utf-8"))
            notes = [_from_json(each) for each in told["faults"]]
            number = int(told["number"])
        except FileNotFoundError:
            return 0, []
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ClusterError(f"{path} cannot be read: {error}") from error
        wall_ms = time.time_ns() // 1_000_000
        return number, [each for each in notes if not each.is_over(wall_ms)]


class OpenBook:
    """A book that is being changed."""

    def __init__(self, number: int, notes: list[FaultNote]) -> None:
        self.number = number
        self.notes = notes

    def new_id(self) -> str:
        self.number += 1
        return f"f{self.number}"

    def find(self, fault_id: str) -> FaultNote | None:
        return next((each for each in self.notes if each.id == fault_id), None)

    def remove(self, is_gone: Callable[[FaultNote], bool]) -> None:
        self.notes = [each for each in self.notes if not is_gone(each)]

    def take_nodes_off(self, nodes: tuple[int, ...], *kinds: str) -> None:
        """They are no longer down or paused."""
        kept = []
        for note in self.notes:
            if note.what in kinds:
                left = tuple(each for each in note.nodes if each not in nodes)
                if not left:
                    continue
                note = replace(note, nodes=left)
            kept.append(note)
        self.notes = kept

    @property
    def rules(self) -> list[Rule]:
        return [rule for note in self.notes for rule in note.rules]


def _as_json(note: FaultNote) -> dict[str, Any]:
    return asdict(note)


def _from_json(told: dict[str, Any]) -> FaultNote:
    return FaultNote(
        id=str(told["id"]),
        what=str(told["what"]),
        text=str(told["text"]),
        nodes=tuple(told["nodes"]),
        rules=tuple(told["rules"]),
        until_ms=told["until_ms"],
    )
