"""Schedules: faults that come by chance, faults that come by script, or both in one run.

A fault is a name and an act. Chance picks one of a weighted menu every so often; a script names the
moments. Either way each fault is an event of the world and leaves a mark in the trace.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from tidelog.worlds.simulator.world import Scheduled, SimWorld

Act = Callable[[], None]


@dataclass(frozen=True, slots=True)
class FaultStruck:
    """A fault was injected."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledFault:
    """A fault that can be injected, and its weight compared with the others."""

    name: str
    act: Act
    weight: int = 1


class Schedule:
    """Lets faults strike until it is stopped."""

    def __init__(self, world: SimWorld) -> None:
        self._world = world
        self._random = world.random_for("schedule")
        self._next: Scheduled | None = None

    def script(self, steps: Sequence[tuple[int, ScheduledFault]]) -> None:
        """Each fault strikes at its time, in ms from now."""
        for after_ms, fault in steps:
            self._world.after(after_ms * 1_000, partial(self.strike, fault))

    def by_chance(
        self, menu: Sequence[ScheduledFault], *, interval_ms_min: int, interval_ms_max: int
    ) -> None:
        """One fault of the menu after another, until `stop`."""
        wait_us = self._random.randint(interval_ms_min * 1_000, interval_ms_max * 1_000)

        def next_one() -> None:
            weights = [fault.weight for fault in menu]
            self.strike(self._random.choices(menu, weights)[0])
            self.by_chance(menu, interval_ms_min=interval_ms_min, interval_ms_max=interval_ms_max)

        self._next = self._world.after(wait_us, next_one)

    def stop(self) -> None:
        """No more faults by chance; scripted ones still come."""
        if self._next is not None:
            self._next.cancel()

    def strike(self, fault: ScheduledFault) -> None:
        self._world.trace.emit("schedule", FaultStruck(fault.name))
        fault.act()
