"""Deadlines of parked requests: one queue per distinct timeout, so each queue is in order."""

from __future__ import annotations

from collections import OrderedDict
from typing import Protocol


class Expiring(Protocol):
    def on_expired(self, now_ms: int) -> None: ...


class RequestTimeouts:
    """Adding and discarding cost one dictionary operation each; nothing is ever sorted."""

    def __init__(self) -> None:
        self.queues: dict[int, OrderedDict[Expiring, int]] = {}

    def add(self, item: Expiring, *, timeout_ms: int, now_ms: int) -> None:
        queue = self.queues.get(timeout_ms)
        if queue is None:
            queue = self.queues[timeout_ms] = OrderedDict()
        queue[item] = now_ms + timeout_ms

    def discard(self, item: Expiring, *, timeout_ms: int) -> None:
        queue = self.queues.get(timeout_ms)
        if queue is not None:
            queue.pop(item, None)

    def expire(self, now_ms: int) -> int:
        """Notify everyone whose time has come; returns how many there were."""
        expired = 0
        for timeout_ms in list(self.queues):
            queue = self.queues[timeout_ms]
            while queue:
                item = next(iter(queue))
                if queue[item] > now_ms:
                    break
                del queue[item]
                item.on_expired(now_ms)
                expired += 1
            if not queue:
                del self.queues[timeout_ms]
        return expired

    def next_deadline_ms(self) -> int | None:
        """The earliest deadline of all, or None when nobody waits."""
        heads = [queue[next(iter(queue))] for queue in self.queues.values() if queue]
        return min(heads) if heads else None

    def __len__(self) -> int:
        return sum(len(queue) for queue in self.queues.values())
