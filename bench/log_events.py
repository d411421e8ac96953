"""Events in the logs of Tidelog's brokers, with their moments: what happened inside, and when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

_TIME, _LEVEL, _NAME, _FIELDS = range(4)


class LogEvent(NamedTuple):
    """One line of a log in the form `text`."""

    at_s: float
    """Wall clock."""
    name: str
    text: str
    """The fields, as they stand in the line."""

    def has(self, field: str, value: object) -> bool:
        return f" {field}={value} " in f" {self.text} "


def log_events(lines: Iterable[str], *names: str) -> Iterator[LogEvent]:
    """Those with one of these names; lines that are no events are left out."""
    for line in lines:
        parts = line.split(maxsplit=3)
        if len(parts) < _FIELDS or parts[_NAME] not in names:
            continue
        try:
            at_s = datetime.fromisoformat(parts[_TIME]).timestamp()
        except ValueError:
            continue
        yield LogEvent(at_s, parts[_NAME], parts[_FIELDS] if len(parts) > _FIELDS else "")
