"""What a broker process says about itself: its log of JSON lines, as happenings of a story."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tidelog.lab.engine import Happening
from tidelog.lab.engines.line_tail import JsonTail

_HEAD = ("time", "at_us", "level", "event")


class BrokerLog:
    """The log of one node over all its lives."""

    def __init__(self, path: Path, *, story_us: Callable[[int], int]) -> None:
        self._tail = JsonTail(path)
        self._story_us = story_us
        self._by_kind: dict[str, list[Happening]] = {}

    def of(self, kind: str) -> list[Happening]:
        """All events of one kind so far, oldest first."""
        for line in self._tail.new_objects():
            name, at_us = line.get("event"), line.get("at_us")
            if isinstance(name, str) and isinstance(at_us, int):
                fields = {key: _frozen(value) for key, value in line.items() if key not in _HEAD}
                happening = Happening(self._story_us(at_us), name, fields)
                self._by_kind.setdefault(name, []).append(happening)
        return list(self._by_kind.get(kind, ()))


def _frozen(value: Any) -> Any:
    """The core's events have tuples where JSON has lists."""
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
