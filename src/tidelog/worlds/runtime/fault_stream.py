"""One direction of one connection under faults: what has to wait, waits in order.

As TCP shows trouble: nothing is lost alone and nothing overtakes. The head of the queue goes when
its time has come and no cut or hold is on its way; a lost frame is sent again after RESEND_MS, and
everything behind it waits. The stream decides and never acts: `passes` says whether something may
go right now, `put` makes it wait, `take` gives the next that may go.
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import Generic, TypeVar

from tidelog.worlds.runtime.fault_table import FaultTable, LinkDirection

RESEND_MS = 200
"""How long a stream stalls for one lost packet: Linux's shortest retransmission time."""

T = TypeVar("T")


class ItemKind(Enum):
    """What travels."""

    FRAME = "frame"
    CONNECT = "connect"
    """Needs an answer: a cut in either direction stops it."""
    OPENED = "opened"
    CLOSED = "closed"
    """The other side ended the connection. The last that comes."""


class Queued(Generic[T]):
    __slots__ = ("due_ms", "item", "kind", "put_ms", "size_bytes")

    def __init__(
        self, item: T, kind: ItemKind, *, put_ms: int, due_ms: int, size_bytes: int
    ) -> None:
        self.item = item
        self.kind = kind
        self.put_ms = put_ms
        self.due_ms = due_ms
        self.size_bytes = size_bytes


class FaultStream(Generic[T]):
    """Inputs: passes, put, take, on_table_changed. Only the head can go: order is by place."""

    __slots__ = ("_queue", "_table", "held_bytes", "is_stopped", "way")

    def __init__(self, table: FaultTable, way: LinkDirection) -> None:
        self.way = way
        self.is_stopped = False
        """Whoever takes from it asked for a pause."""
        self.held_bytes = 0
        self._table = table
        self._queue: deque[Queued[T]] = deque()

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def held_frames(self) -> int:
        return sum(1 for queued in self._queue if queued.kind is ItemKind.FRAME)

    def passes(self, kind: ItemKind) -> bool:
        """Whether it may go at once; if not, `put` it."""
        table = self._table
        if not table.rules and not self._queue:
            return not self.is_stopped
        is_waiting = self._queue or self.is_stopped
        return not (is_waiting or table.is_slow(self.way) or self._is_blocked(kind))

    def put(self, item: T, kind: ItemKind, now_ms: int, *, size_bytes: int = 0) -> None:
        """It waits for its turn."""
        due_ms = now_ms + self._table.delay_ms(self.way)
        if kind is ItemKind.FRAME:
            self._table.count_waiting(self.way)
        self.held_bytes += size_bytes
        self._queue.append(Queued(item, kind, put_ms=now_ms, due_ms=due_ms, size_bytes=size_bytes))
        if kind is ItemKind.CLOSED:
            self._drop_what_died()  # now: a hold that ends later must not bring it back

    def put_first(self, item: T, kind: ItemKind, now_ms: int) -> None:
        """It had gone, and goes again."""
        self._queue.appendleft(Queued(item, kind, put_ms=now_ms, due_ms=now_ms, size_bytes=0))

    def take(self, now_ms: int) -> T | None:
        """The next that may go now."""
        self._drop_what_died()
        if not self._queue or self.is_stopped:
            return None
        head = self._queue[0]
        if now_ms < head.due_ms or self._is_blocked(head.kind):
            return None
        if self._table.is_lost(self.way):
            head.due_ms = now_ms + RESEND_MS
            return None
        self._queue.popleft()
        self.held_bytes -= head.size_bytes
        return head.item

    def next_due_ms(self) -> int | None:
        """When to `take` next; None if only a change of rules, or of `is_stopped`, can help."""
        self._drop_what_died()
        if not self._queue or self.is_stopped or self._is_blocked(self._queue[0].kind):
            return None
        return self._queue[0].due_ms

    def clear(self) -> None:
        self._queue.clear()
        self.held_bytes = 0

    def on_table_changed(self) -> None:
        """What waits for a delay that is no longer there does not wait for it any longer."""
        delay_ms_max = self._table.delay_ms_max(self.way)
        for queued in self._queue:
            queued.due_ms = min(queued.due_ms, queued.put_ms + delay_ms_max)

    def _is_blocked(self, kind: ItemKind) -> bool:
        table = self._table
        if table.is_cut(self.way) or (kind is ItemKind.CONNECT and table.is_cut(self.way.back)):
            return True
        return kind is ItemKind.FRAME and table.is_held(self.way)

    def _drop_what_died(self) -> None:
        """Frames that are only held die with their sender; a cut keeps even its end from us."""
        queue = self._queue
        if len(queue) > 1 and queue[-1].kind is ItemKind.CLOSED and queue[0].kind is ItemKind.FRAME:
            table = self._table
            if table.is_held(self.way) and not table.is_cut(self.way):
                end = queue[-1]
                self.clear()
                queue.append(end)
                self.held_bytes = end.size_bytes
