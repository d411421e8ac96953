"""Calls that wait until the markers of a transaction are written, for a bounded time each."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from tidelog.core.coordinator.outcome import Outcome, ReplyTo

HOLD_MS_MAX: Final = 500
"""How long a request waits for markers before it gets CONCURRENT_TRANSACTIONS."""
HELD_MAX: Final = 100
"""Requests that wait for one transactional id; more are refused at once."""


class HeldCall(NamedTuple):
    """One caller, and how to decide about it when it is its turn."""

    decide: Callable[[int], Outcome]
    reply_to: ReplyTo
    refusal: object
    deadline_ms: int


class HeldCalls:
    """By transactional id, in the order in which they came; so their deadlines only grow."""

    def __init__(self) -> None:
        self._by_id: dict[str, deque[HeldCall]] = {}

    def add(self, transactional_id: str, call: HeldCall) -> bool:
        """False: too many wait already."""
        held = self._by_id.setdefault(transactional_id, deque())
        if len(held) >= HELD_MAX:
            return False
        held.append(call)
        return True

    def take(self, transactional_id: str) -> HeldCall | None:
        """The first one that waits for this id."""
        held = self._by_id.get(transactional_id)
        if held is None:
            return None
        first = held.popleft()
        if not held:
            del self._by_id[transactional_id]
        return first

    def overdue(self, now_ms: int) -> Iterator[tuple[ReplyTo, object]]:
        """Those who waited for too long, each with its refusal; they are not held any more."""
        for transactional_id in list(self._by_id):
            held = self._by_id[transactional_id]
            while held and held[0].deadline_ms <= now_ms:
                first = held.popleft()
                yield first.reply_to, first.refusal
            if not held:
                del self._by_id[transactional_id]

    def next_deadline_ms(self) -> int | None:
        return min((held[0].deadline_ms for held in self._by_id.values()), default=None)

    def __iter__(self) -> Iterator[str]:
        """The transactional ids that somebody waits for."""
        return iter(self._by_id)
