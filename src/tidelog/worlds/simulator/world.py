"""A world is a virtual clock and one heap of events: a step takes the earliest event and runs it.

Nothing waits and nothing runs by itself. Time jumps from event to event, events of the same instant
run in the order in which they were scheduled, and chance comes from generators made of the seed, so
a seed decides the whole run. Every part of the world draws from its own stream of chance
(`random_for`), so that a change in one part does not reshuffle the others.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from random import Random

from tidelog.core.model.exceptions import TidelogError
from tidelog.worlds.simulator.trace import WorldTrace

Action = Callable[[], None]
FOR_EVER_US = 2**63


class ConditionNotReached(TidelogError, AssertionError):
    """A condition did not hold within the given virtual time."""


class Scheduled:
    """An event that is to come; it can be called off."""

    __slots__ = ("_action", "time_us")

    def __init__(self, time_us: int, action: Action) -> None:
        self.time_us = time_us
        self._action: Action | None = action

    def cancel(self) -> None:
        self._action = None

    @property
    def is_pending(self) -> bool:
        return self._action is not None

    def take(self) -> Action | None:
        action, self._action = self._action, None
        return action


class SimWorld:
    """Clock, events, chance and trace of one run."""

    def __init__(self, *, seed: int) -> None:
        self.seed = seed
        self.now_us = 0
        self.steps = 0
        self.trace = WorldTrace(self._now)
        self._heap: list[tuple[int, int, Scheduled]] = []
        self._sequence = 0

    @property
    def now_ms(self) -> int:
        return self.now_us // 1_000

    def random_for(self, name: str) -> Random:
        """A generator for one part of the world. Another name means other runs of all seeds."""
        return Random(f"{self.seed}/{name}")

    def at(self, time_us: int, action: Action) -> Scheduled:
        """Run `action` at a time, which may not lie in the past."""
        assert time_us >= self.now_us, (time_us, self.now_us)
        scheduled = Scheduled(time_us, action)
        self._sequence += 1
        heapq.heappush(self._heap, (time_us, self._sequence, scheduled))
        return scheduled

    def after(self, delay_us: int, action: Action) -> Scheduled:
        return self.at(self.now_us + delay_us, action)

    def step(self) -> bool:
        """Run the next event. False: there is none, and time stands still for ever."""
        return self._step_before(FOR_EVER_US)

    def run_until(self, condition: Callable[[], bool], *, within_ms: int) -> None:
        """Step until the condition holds; ConditionNotReached if it does not hold in that time."""
        deadline_us = self.now_us + within_ms * 1_000
        while not condition():
            if not self._step_before(deadline_us):
                raise ConditionNotReached(f"not within {within_ms} ms of virtual time")

    def run_for(self, duration_ms: int) -> None:
        """Let this much time pass, whatever happens in it."""
        deadline_us = self.now_us + duration_ms * 1_000
        while self._step_before(deadline_us):
            pass
        self.now_us = deadline_us

    def _step_before(self, deadline_us: int) -> bool:
        """Run the next event that was not called off, unless it comes after the deadline."""
        heap = self._heap
        while heap:
            time_us, _, scheduled = heap[0]
            if scheduled.is_pending and time_us > deadline_us:
                return False
            heapq.heappop(heap)
            action = scheduled.take()
            if action is not None:
                self.now_us = time_us
                self.steps += 1
                action()
                return True
        return False

    def _now(self) -> int:
        return self.now_us
