"""Alarms: how everything in a node waits for time. Each rings once, in order of its deadline."""

from __future__ import annotations

import heapq
from collections.abc import Callable

Act = Callable[[int], None]


class Alarm:
    """Something to do at a time, unless it is cancelled before."""

    __slots__ = ("_act", "deadline_ms")

    def __init__(self, deadline_ms: int, act: Act) -> None:
        self.deadline_ms = deadline_ms
        self._act: Act | None = act

    @property
    def is_pending(self) -> bool:
        return self._act is not None

    def cancel(self) -> None:
        self._act = None

    def ring(self, now_ms: int) -> None:
        act, self._act = self._act, None
        if act is not None:
            act(now_ms)


class Alarms:
    """A heap; cancelled alarms stay in it until their time comes."""

    def __init__(self) -> None:
        self.heap: list[tuple[int, int, Alarm]] = []
        """The first one is the next to ring, unless it was cancelled."""
        self._count = 0

    def at(self, deadline_ms: int, act: Act) -> Alarm:
        self._count += 1
        alarm = Alarm(deadline_ms, act)
        heapq.heappush(self.heap, (deadline_ms, self._count, alarm))
        return alarm

    def run(self, now_ms: int) -> None:
        """Ring everything that is due, also what the acts themselves set for now."""
        while self.heap and self.heap[0][0] <= now_ms:
            heapq.heappop(self.heap)[2].ring(now_ms)
