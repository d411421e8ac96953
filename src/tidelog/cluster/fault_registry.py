"""The active faults of a cluster, in a file that every process reads: `faults.json`.

Whoever changes it holds a lock meanwhile. A fault with an end leaves the registry by itself, as its
rules leave the gates.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from tidelog.cluster.directory import ClusterDirectory, locked, write_whole
from tidelog.cluster.errors import ClusterError
from tidelog.cluster.rules import RuleFields


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveFault:
    """One fault: what it is in words, which nodes it hit, and which rules the gates were given."""

    id: str
    what: str
    text: str
    nodes: tuple[int, ...] = ()
    """Of a fault of processes: those that are down or paused because of it."""
    rules: tuple[RuleFields, ...] = field(default=())
    until_ms: int | None = None
    """Wall clock; None: until it is undone."""

    def is_over(self, wall_ms: int) -> bool:
        return self.until_ms is not None and self.until_ms <= wall_ms


class FaultRegistry:
    """`active` reads it, `edit` changes it."""

    def __init__(self, directory: ClusterDirectory) -> None:
        self._directory = directory
        self._lock_path = directory.root / "faults.lock"

    def active(self) -> list[ActiveFault]:
        """Those that are not over."""
        return self._read()[1]

    @contextmanager
    def edit(self) -> Iterator[RegistryEdit]:
        """Nobody else changes it meanwhile; written when the block ends without an exception."""
        with locked(self._lock_path):
            last_number, faults = self._read()
            edit = RegistryEdit(last_number, faults)
            yield edit
            document = {
                "number": edit.last_number,
                "faults": [asdict(each) for each in edit.faults],
            }
            write_whole(self._directory.faults_path, json.dumps(document, indent=2) + "\n")

    def clear(self) -> None:
        self._directory.faults_path.unlink(missing_ok=True)

    def _read(self) -> tuple[int, list[ActiveFault]]:
        path = self._directory.faults_path
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            faults = [_from_json(each) for each in document["faults"]]
            last_number = int(document["number"])
        except FileNotFoundError:
            return 0, []
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ClusterError(f"{path} cannot be read: {error}") from error
        wall_ms = time.time_ns() // 1_000_000
        return last_number, [each for each in faults if not each.is_over(wall_ms)]


class RegistryEdit:
    """The registry while it is being changed."""

    def __init__(self, last_number: int, faults: list[ActiveFault]) -> None:
        self.last_number = last_number
        self.faults = faults

    def new_id(self) -> str:
        self.last_number += 1
        return f"f{self.last_number}"

    def find(self, fault_id: str) -> ActiveFault | None:
        return next((each for each in self.faults if each.id == fault_id), None)

    def remove(self, is_gone: Callable[[ActiveFault], bool]) -> None:
        self.faults = [each for each in self.faults if not is_gone(each)]

    def release_nodes(self, nodes: tuple[int, ...], *kinds: str) -> None:
        """These nodes are no longer down or paused."""
        kept = []
        for fault in self.faults:
            if fault.what in kinds:
                left = tuple(each for each in fault.nodes if each not in nodes)
                if not left:
                    continue
                fault = replace(fault, nodes=left)
            kept.append(fault)
        self.faults = kept

    @property
    def rules(self) -> list[RuleFields]:
        return [rule for fault in self.faults for rule in fault.rules]


def _from_json(value: dict[str, Any]) -> ActiveFault:
    return ActiveFault(
        id=str(value["id"]),
        what=str(value["what"]),
        text=str(value["text"]),
        nodes=tuple(value["nodes"]),
        rules=tuple(value["rules"]),
        until_ms=value["until_ms"],
    )
