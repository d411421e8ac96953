"""What waits at the fault gate, and the timer that releases it.

Acts that may not happen yet stand in their streams; `release` carries out those whose turn it is.
Everything happens inside a tick of the server, so that what was sent leaves at its end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NoReturn, Protocol

from tidelog.core.node.ports import Outbox
from tidelog.worlds.runtime.clock import MonotonicClock
from tidelog.worlds.runtime.fault_stream import FaultStream, ItemKind

TIMER_MS_MAX = 3_600_000
"""Longest timer: some event loops refuse one of years."""

Act = Callable[[int], None]
"""Something to send or to deliver, at the given time."""
Acts = FaultStream[Act]


class GatedServer(Outbox, Protocol):
    """The server as the gate uses it."""

    loop: asyncio.AbstractEventLoop
    fail: Callable[[BaseException | str], NoReturn]

    def begin_tick(self) -> int: ...
    def hold_reading(self, connection: int) -> None: ...
    def allow_reading(self, connection: int) -> None: ...


class FaultScheduler:
    """Invariant: every stream that is not empty is in `streams`."""

    def __init__(
        self, server: GatedServer, clock: MonotonicClock, on_wake: Callable[[], None]
    ) -> None:
        """`on_wake` is called when time alone may have changed something."""
        self.streams: dict[Acts, None] = {}
        self._server = server
        self._clock = clock
        self._on_wake = on_wake
        self._timer: asyncio.TimerHandle | None = None
        self._due_ms = 0
        self._is_stopped = False

    @property
    def held_frames(self) -> int:
        return sum(stream.held_frames for stream in self.streams)

    def pass_on(self, stream: Acts, act: Act, kind: ItemKind, now_ms: int) -> None:
        """At once, or when its turn comes."""
        if stream.passes(kind):
            act(now_ms)
        else:
            self.put(stream, act, kind)

    def put(self, stream: Acts, act: Act, kind: ItemKind, *, size_bytes: int = 0) -> None:
        stream.put(act, kind, self._server.begin_tick(), size_bytes=size_bytes)
        self.streams[stream] = None
        self.wake_at(stream.next_due_ms())

    def put_first(self, stream: Acts, act: Act, kind: ItemKind) -> None:
        """It had happened, and has to happen again."""
        stream.put_first(act, kind, self._server.begin_tick())
        self.streams[stream] = None

    def forget(self, stream: Acts) -> None:
        stream.clear()
        self.streams.pop(stream, None)

    def release(self, now_ms: int) -> None:
        """Carry out everything whose turn it is."""
        for stream in list(self.streams):
            while (act := stream.take(now_ms)) is not None:
                act(now_ms)
            if not stream:
                self.streams.pop(stream, None)
        self.wake_at(*(stream.next_due_ms() for stream in self.streams))

    def wake_at(self, *times_ms: int | None) -> None:
        """Wake at the earliest of these times, if no earlier one is set."""
        due_ms = min((each for each in times_ms if each is not None), default=None)
        if due_ms is None or self._is_stopped:
            return
        if self._timer is not None:
            if self._due_ms <= due_ms:
                return
            self._timer.cancel()
        self._due_ms = due_ms
        delay_ms = min(max(0, due_ms - self._clock.now_ms()), TIMER_MS_MAX)
        self._timer = self._server.loop.call_later(delay_ms / 1000, self._on_timer)

    def stop(self) -> None:
        """The node has stopped: nothing is delivered or sent any more."""
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
        self.streams.clear()

    def _on_timer(self) -> None:
        self._timer = None
        try:
            self._on_wake()
        except Exception as error:
            self._server.fail(error)
