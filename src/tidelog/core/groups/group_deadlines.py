"""When something is due: one deadline per key, moved and cancelled at will.

A heartbeat moves its member's deadline. The queue keeps one entry per key and looks the true
deadline up when that entry comes to its head, so a move to a later time costs one dictionary write.
"""

from __future__ import annotations

from enum import Enum
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple

SPARE_ENTRIES: Final = 100
"""Cancelled entries that are not worth the work to look for them."""


class DeadlineKind(Enum):
    """What is awaited."""

    SESSION = "session"
    """A sign of life of a member, or the join of a pending one."""
    JOIN = "join"
    """The joins of all members."""
    SYNC = "sync"
    """The syncs of all members."""
    REVOCATION = "revocation"
    """That a member of a KIP-848 group gives back what others should get."""


class DeadlineKey(NamedTuple):
    """Whose deadline it is. `member_id` is empty if all members are awaited."""

    kind: DeadlineKind
    group_id: str
    member_id: str = ""


class GroupDeadlines:
    """Invariant: every key has an entry in the queue at or before its deadline."""

    def __init__(self) -> None:
        self._due_ms: dict[DeadlineKey, int] = {}
        self._queued_ms: dict[DeadlineKey, int] = {}
        self._queue: list[tuple[int, int, DeadlineKey]] = []
        self._entries_made = 0

    def schedule(self, key: DeadlineKey, deadline_ms: int) -> None:
        """Set or move the deadline of a key."""
        self._due_ms[key] = deadline_ms
        queued_ms = self._queued_ms.get(key)
        if queued_ms is None or deadline_ms < queued_ms:
            self._push(key, deadline_ms)

    def cancel(self, key: DeadlineKey) -> None:
        self._due_ms.pop(key, None)
        if len(self._queue) > 2 * len(self._due_ms) + SPARE_ENTRIES:
            self._drop_cancelled()

    @property
    def entries_count(self) -> int:
        """What the queue holds, cancelled entries too."""
        return len(self._queue)

    def _drop_cancelled(self) -> None:
        """Otherwise members that join and leave in a loop would be here until they are due."""
        self._queue = [entry for entry in self._queue if entry[2] in self._due_ms]
        heapify(self._queue)
        self._queued_ms = {
            key: queued_ms for key, queued_ms in self._queued_ms.items() if key in self._due_ms
        }

    def pop_due(self, now_ms: int) -> DeadlineKey | None:
        """The next key whose time has come; it has no deadline any more."""
        head_ms = self.next_deadline_ms()
        if head_ms is None or head_ms > now_ms:
            return None
        _, _, key = heappop(self._queue)
        del self._due_ms[key], self._queued_ms[key]
        return key

    def next_deadline_ms(self) -> int | None:
        """The earliest deadline; entries that are out of date are dropped on the way."""
        while self._queue:
            queued_ms, _, key = self._queue[0]
            due_ms = self._due_ms.get(key)
            if queued_ms == due_ms == self._queued_ms.get(key):
                return queued_ms
            heappop(self._queue)
            if self._queued_ms.get(key) == queued_ms:
                del self._queued_ms[key]
                if due_ms is not None:
                    self._push(key, due_ms)
        return None

    def __contains__(self, key: DeadlineKey) -> bool:
        return key in self._due_ms

    def __len__(self) -> int:
        return len(self._due_ms)

    def check(self) -> None:
        entries = {(at_ms, key) for at_ms, _, key in self._queue}
        for key, due_ms in self._due_ms.items():
            assert self._queued_ms[key] <= due_ms, (key, "would be late")
            assert (self._queued_ms[key], key) in entries, (key, "has no entry")

    def _push(self, key: DeadlineKey, deadline_ms: int) -> None:
        self._entries_made += 1  # equal deadlines come in the order in which they were set
        self._queued_ms[key] = deadline_ms
        heappush(self._queue, (deadline_ms, self._entries_made, key))
