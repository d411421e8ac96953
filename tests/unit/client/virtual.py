"""Virtual time for client machines: a heap of events, and hosts that pass them on."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from tidelog.client.client import Client
from tidelog.client.config import ClientConfig
from tidelog.core.model.trace import ListTrace

CONNECT_MS = 1
TRAVEL_MS = 1


class Clock:
    """Time jumps from event to event; those of one instant run in the order they were asked for."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0

    def at(self, time_ms: int, act: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._heap, (max(time_ms, self.now_ms), self._count, act))

    def after(self, delay_ms: int, act: Callable[[], None]) -> None:
        self.at(self.now_ms + delay_ms, act)

    def run_for(self, duration_ms: int) -> None:
        end_ms = self.now_ms + duration_ms
        steps = 0
        while self._heap and self._heap[0][0] <= end_ms:
            time_ms, _, act = heapq.heappop(self._heap)
            self.now_ms = time_ms
            act()
            steps += 1
            assert steps < 200_000, "the machine spins"
        self.now_ms = end_ms

    def run_until(self, reached: Callable[[], Any], *, within_ms: int = 600_000) -> None:
        end_ms = self.now_ms + within_ms
        while not reached():
            assert self._heap and self._heap[0][0] <= end_ms, f"not reached in {within_ms} ms"
            time_ms, _, act = heapq.heappop(self._heap)
            self.now_ms = time_ms
            act()


class Host:
    """Runs one client over a fake cluster: its wires, its timer, its ticks."""

    def __init__(self, cluster: Any, config: ClientConfig, *, seed: int = 1) -> None:
        self.clock: Clock = cluster.clock
        self.trace = ListTrace()
        self._cluster = cluster
        self._sockets: dict[int, Any] = {}
        self.client = Client(self, config, random=Random(seed), trace=self.trace)

    @property
    def now_ms(self) -> int:
        return self.clock.now_ms

    def do(self, act: Callable[[int], Any]) -> Any:
        """A program's turn."""
        result = act(self.now_ms)
        self.client.end_of_tick(self.now_ms)
        return result

    # The port

    def connect(self, link: int, host: str, port: int, purpose: str) -> None:
        assert purpose == "client"
        self._sockets[link] = self._cluster.connect(self, link, host, port)

    def send(self, link: int, parts: Sequence[bytes | bytearray | memoryview]) -> None:
        self._sockets[link].send(b"".join(parts))

    def disconnect(self, link: int) -> None:
        self._sockets.pop(link).drop()

    def arm(self, deadline_ms: int) -> None:
        assert deadline_ms > self.now_ms, "a timer for the past"
        self.clock.at(deadline_ms, self._tick)

    def _tick(self) -> None:
        self.client.on_timer(self.now_ms)
        self.client.end_of_tick(self.now_ms)

    # What the fake cluster says

    def opened(self, link: int) -> None:
        if link in self._sockets:
            self.client.on_link_opened(link, self.now_ms)
            self.client.end_of_tick(self.now_ms)

    def closed(self, link: int, reason: str) -> None:
        if self._sockets.pop(link, None) is not None:
            self.client.on_link_closed(link, reason, self.now_ms)
            self.client.end_of_tick(self.now_ms)

    def answered(self, link: int, frame: bytes) -> None:
        if link in self._sockets:
            scratch = bytearray(frame)
            self.client.on_answer(link, memoryview(scratch), self.now_ms)
            scratch[:] = bytes(len(scratch))  # a frame is valid only during the call
            self.client.end_of_tick(self.now_ms)
