"""Say what happened in values: the core emits events, the worlds turn them into lines or asserts.

Each room declares its own event types (frozen dataclasses) beside the code that emits them.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

Event = TypeVar("Event")


class Trace(Protocol):
    """Where events go. Emitting must never fail and never change what the core decides."""

    def emit(self, event: object) -> None: ...


class NullTrace:
    """Forgets everything: for benchmarks and tools."""

    def emit(self, event: object) -> None:
        return None


class ListTrace:
    """Remembers everything: for tests and the simulator."""

    def __init__(self) -> None:
        self.events: list[object] = []

    def emit(self, event: object) -> None:
        self.events.append(event)

    def of(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.events if type(event) is kind]
