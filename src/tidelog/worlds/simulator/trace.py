"""The trace of a run: what happened, when and where, as values that render the same everywhere.

Nodes emit events through a port made by `of`; the parts of the world emit their own. The rendering
sorts whatever has no order (sets), shortens bytes and never shows an address in memory, so the same
seed gives the same text, byte for byte, whatever Python's hash seed is.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import NamedTuple

BYTES_SHOWN = 16


class TraceEntry(NamedTuple):
    """One event of the trace."""

    time_us: int
    source: str
    event: object


class WorldTrace:
    """Everything that was emitted, in order."""

    def __init__(self, now_us: Callable[[], int]) -> None:
        self._now_us = now_us
        self.entries: list[TraceEntry] = []
        self.watchers: dict[type, Callable[[str, object], None]] = {}
        """Told of each event of a kind, when it happens: for observers that judge while it runs."""

    def emit(self, source: str, event: object) -> None:
        self.entries.append(TraceEntry(self._now_us(), source, event))
        watcher = self.watchers.get(type(event))
        if watcher is not None:
            watcher(source, event)

    def of(self, source: str) -> SourceTrace:
        """A trace port (core.model.trace.Trace) that signs with a name."""
        return SourceTrace(self, source)

    def lines(self, *, newest: int | None = None) -> Iterator[str]:
        entries = self.entries if newest is None else self.entries[-newest:]
        for entry in entries:
            yield f"{entry.time_us / 1_000:12.3f} ms  {entry.source:<10} {render(entry.event)}"

    def digest(self) -> str:
        """One number for the whole rendering: equal digests, equal runs."""
        summed = hashlib.sha256()
        for line in self.lines():
            summed.update(line.encode() + b"\n")
        return summed.hexdigest()

    def counts(self) -> Counter[str]:
        """How often each kind of event was seen."""
        return Counter(type(entry.event).__name__ for entry in self.entries)


class SourceTrace:
    """The Trace port of one process."""

    __slots__ = ("_source", "_trace")

    def __init__(self, trace: WorldTrace, source: str) -> None:
        self._trace = trace
        self._source = source

    def emit(self, event: object) -> None:
        self._trace.emit(self._source, event)


def render(value: object) -> str:
    """A value as text, independent of hash seeds and addresses."""
    if isinstance(value, Enum):
        return value.name
    if value is None or isinstance(value, (str, int, float)):
        return repr(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        data = bytes(value)
        more = f"..{len(data)}B" if len(data) > BYTES_SHOWN else ""
        return f"0x{data[:BYTES_SHOWN].hex()}{more}"
    if is_dataclass(value) and not isinstance(value, type):
        return _fields(
            type(value).__name__, [(f.name, getattr(value, f.name)) for f in fields(value)]
        )
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return _fields(type(value).__name__, list(zip(value._fields, value, strict=True)))
    if isinstance(value, (set, frozenset)):
        return "{" + ", ".join(sorted(render(item) for item in value)) + "}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{render(k)}: {render(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(render(item) for item in value) + "]"
    return f"<{type(value).__name__}>"


def _fields(name: str, pairs: list[tuple[str, object]]) -> str:
    return f"{name}({', '.join(f'{key}={render(value)}' for key, value in pairs)})"
