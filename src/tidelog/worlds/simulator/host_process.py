"""A process on a host: it handles one event after another, and sends at the end of a tick.

Broker processes (node_process.py) and clients (client_host.py) are both host processes. Events are
delivered in order, one per step of the world; while the process is paused they queue up. What a
machine sends is kept until the end of the tick, as the real runtime does. The end of a tick is a
step of its own, so several events may share a tick, and a crash may fall between an event and what
follows from it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from random import Random
from typing import Protocol

from tidelog.core.wire.frames import PartialFrameBudget
from tidelog.worlds.simulator.link import ANSWER_BYTES_MAX, OutgoingLink
from tidelog.worlds.simulator.network import Network
from tidelog.worlds.simulator.world import Scheduled, SimWorld

TICK_US_MAX = 40
BUDGET_BYTES_MAX = 4 * ANSWER_BYTES_MAX


class Machine(Protocol):
    """The events that a process passes to its machine, be it a node or a client."""

    def on_link_opened(self, link: int, now_ms: int) -> None: ...
    def on_link_closed(self, link: int, reason: str, now_ms: int) -> None: ...
    def on_answer(self, link: int, frame: memoryview, now_ms: int) -> None: ...
    def on_timer(self, now_ms: int) -> None: ...
    def end_of_tick(self, now_ms: int) -> None: ...


class HostProcess:
    """Network and timer of one machine: connect, send, disconnect and arm."""

    machine: Machine

    def __init__(self, *, world: SimWorld, network: Network, host: str, random: Random) -> None:
        self.world = world
        self.network = network
        self.host = host
        self.random = random
        self.budget = PartialFrameBudget(BUDGET_BYTES_MAX, request_bytes_max=ANSWER_BYTES_MAX)
        self.is_paused = False
        self.is_over = False
        self._links: dict[int, OutgoingLink] = {}
        self._talking: list[OutgoingLink] = []
        """Links with requests that leave at the end of the tick."""
        self._backlog: deque[Callable[[], None]] = deque()
        self._tick: Scheduled | None = None
        self._timer: Scheduled | None = None

    # What the machine asks for.

    def connect(self, link: int, host: str, port: int, purpose: str) -> None:
        """Hosts have names here, and one listener each: the port does not matter."""
        assert link not in self._links, f"link {link} is there already"
        self._links[link] = OutgoingLink(self, link, host, purpose)

    def send(self, link: int, parts: Sequence[bytes | bytearray | memoryview]) -> None:
        known = self._links.get(link)
        if known is None:
            return  # it has ended, and the machine will be informed
        if not known.unsent:
            self._talking.append(known)
        known.unsent.extend(parts)

    def disconnect(self, link: int) -> None:
        known = self._links.pop(link, None)
        if known is not None:
            known.drop()

    def arm(self, deadline_ms: int) -> None:
        deadline_us = max(deadline_ms * 1_000, self.world.now_us)
        if self._timer is not None and self._timer.is_pending:
            if self._timer.time_us <= deadline_us:
                return
            self._timer.cancel()
        self._timer = self.world.at(deadline_us, self._ring)

    # Events of the process.

    def deliver(self, event: Callable[[], None]) -> None:
        """Deliver something to the machine, now or when it is awake again."""
        if self.is_over:
            return
        if self.is_paused or self._backlog:
            self._backlog.append(event)
        else:
            self._run_event(event)

    def pause(self) -> None:
        self.is_paused = True

    def wake(self) -> None:
        self.is_paused = False
        self._drain()

    def end(self) -> None:
        """Nothing that was under way reaches the machine any more."""
        self.is_over = True
        for scheduled in (self._tick, self._timer):
            if scheduled is not None:
                scheduled.cancel()
        for link in self._links.values():
            link.forget()

    def flush(self) -> None:
        """The end of a tick: the machine finishes its work, then everything is sent."""
        self._tick = None
        if self.is_over:
            return
        self.machine.end_of_tick(self.world.now_ms)
        if not self._is_ending():
            self._send_all()

    # Events of links.

    def link_opened(self, link: int) -> None:
        self.machine.on_link_opened(link, self.world.now_ms)

    def link_answered(self, link: int, frame: memoryview) -> None:
        self.machine.on_answer(link, frame, self.world.now_ms)

    def link_closed(self, link: int, reason: str) -> None:
        if self._links.pop(link, None) is not None:
            self.machine.on_link_closed(link, reason, self.world.now_ms)

    # Inside.

    def _send_all(self) -> None:
        talking, self._talking = self._talking, []
        for link in talking:
            link.send_unsent()

    def _is_ending(self) -> bool:
        """Whether the process ended while it handled the event."""
        return self.is_over

    def _drain(self) -> None:
        """One waiting event per step, so that others may come between."""
        if self._backlog and not self.is_paused and not self.is_over:
            self._run_event(self._backlog.popleft())
            if self._backlog:
                self.world.after(0, self._drain)

    def _run_event(self, event: Callable[[], None]) -> None:
        event()
        if not self._is_ending() and self._tick is None:
            delay_us = int(self.random.random() * (TICK_US_MAX + 1))
            self._tick = self.world.after(delay_us, self._end_tick)

    def _end_tick(self) -> None:
        if self.is_paused:
            self._tick = None
            self.deliver(_nothing)  # a tick follows whatever is delivered after waking
        else:
            self.flush()

    def _ring(self) -> None:
        self.deliver(self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self.machine.on_timer(self.world.now_ms)


def _nothing() -> None:
    return
