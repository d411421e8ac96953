"""A fault gate between a node and a server that only take notes, in a time that the test moves."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NoReturn, cast

from tidelog.core.model.trace import ListTrace
from tidelog.core.node.connections.connection import Connections
from tidelog.core.wire.headers import request_header
from tidelog.faults.rules import read_rules
from tidelog.worlds.runtime.clock import MonotonicClock
from tidelog.worlds.runtime.fault_gate import FaultGate
from tidelog.worlds.runtime.fault_table import FaultTable

PEERS = {"127.0.0.1:9091": 1, "127.0.0.1:9092": 2}
LINK, CALLER = 5, 8
METADATA = 3


class Time:
    """A clock and a loop whose timers fire when the test says so."""

    def __init__(self) -> None:
        self.at_ms = 1_000
        self._timers: list[tuple[int, Callable[[], None], Any]] = []

    def now_ms(self) -> int:
        return self.at_ms

    def wall_ms(self, now_ms: int) -> int:
        return now_ms + 1_000_000

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Any:
        handle = _Handle()
        self._timers.append((self.at_ms + round(delay_s * 1000), callback, handle))
        return handle

    def pass_ms(self, duration_ms: int) -> None:
        until_ms = self.at_ms + duration_ms
        while due := [timer for timer in self._timers if timer[0] <= until_ms]:
            timer = min(due, key=lambda timer: timer[0])
            self._timers.remove(timer)
            self.at_ms = max(self.at_ms, timer[0])
            if not timer[2].is_cancelled:
                timer[1]()
        self.at_ms = until_ms


class _Handle:
    is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class Notes:
    """Server and node in one: everything that reaches either is a line."""

    def __init__(self, time: Time) -> None:
        self.loop = time
        self._time = time
        self.server: list[tuple[Any, ...]] = []
        self.node: list[tuple[Any, ...]] = []
        self.connections = Connections(cast(Any, self))
        self.held_replicas: frozenset[Any] = frozenset()

    def begin_tick(self) -> int:
        return self._time.at_ms

    def fail(self, reason: BaseException | str) -> NoReturn:
        raise AssertionError(reason)

    def __getattr__(self, name: str) -> Callable[..., None]:
        lines = self.node if name.startswith("on_") or name == "end_of_tick" else self.server

        def note(*arguments: object) -> None:
            kept = arguments[:-1] if lines is self.node else arguments
            plain = [bytes(each) if isinstance(each, memoryview) else each for each in kept]
            lines.append((name, *plain))

        return note


class Stage:
    def __init__(self) -> None:
        self.time = Time()
        self.notes = Notes(self.time)
        self.trace = ListTrace()
        self.gate = FaultGate(
            server=cast(Any, self.notes),
            table=FaultTable(node_id=1, random=Random(1)),
            clock=cast(MonotonicClock, self.time),
            trace=self.trace,
        )
        self.gate.serve(cast(Any, self.notes))

    def rules(self, *rules: dict[str, Any]) -> None:
        named = [{"id": f"r{number}", **rule} for number, rule in enumerate(rules)]
        self.gate.replace(read_rules(named), PEERS)

    def link(self) -> None:
        """To node 2, open."""
        self.gate.connect(LINK, "127.0.0.1", 9092, "replica")
        self.gate.on_link_opened(LINK, self.time.at_ms)
        self.taken()
        self.told()

    def call(self, name: str | None, number: int = CALLER) -> None:
        """Somebody calls us and asks for metadata."""
        self.gate.on_connection_opened(number, "10.0.0.1", self.time.at_ms)
        self.request(name, number)
        self.taken()
        self.told()

    def request(self, name: str | None, number: int = CALLER, *, size_bytes: int = 0) -> bytes:
        frame = request_header(METADATA, 1, correlation_id=1, client_id=name) + bytes(size_bytes)
        self.gate.on_frame(number, memoryview(bytearray(frame)), self.time.at_ms)
        return frame

    def taken(self) -> list[tuple[Any, ...]]:
        """What the server was asked since the last time."""
        return _emptied(self.notes.server)

    def told(self) -> list[tuple[Any, ...]]:
        """What the node was told since the last time."""
        return _emptied(self.notes.node)


def _emptied(lines: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    taken = list(lines)
    lines.clear()
    return taken
