"""A node's links and alarms alone, for tests of what is built on them."""

from __future__ import annotations

from collections.abc import Sequence

from tidelog.core.model.alarms import Alarms
from tidelog.core.model.trace import ListTrace
from tidelog.core.wire.links import Links


class Wires:
    """Remembers what was asked of the world; the test plays the world."""

    def __init__(self) -> None:
        self.connected: list[tuple[int, str, int, str]] = []
        self.sent: list[tuple[int, bytes]] = []
        self.dropped: list[int] = []

    def connect(self, link: int, host: str, port: int, purpose: str) -> None:
        self.connected.append((link, host, port, purpose))

    def send(self, link: int, parts: Sequence[bytes | bytearray | memoryview]) -> None:
        self.sent.append((link, b"".join(bytes(part) for part in parts)))

    def disconnect(self, link: int) -> None:
        self.dropped.append(link)


class LoneLinks:
    """What a Node offers to Probes and the like."""

    def __init__(self) -> None:
        self.wires = Wires()
        self.links = Links(self.wires, client_id="node-1")
        self.alarms = Alarms()
        self.trace = ListTrace()
        self.now_ms = 0

    def pass_to(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self.links.expire(now_ms)
        self.alarms.run(now_ms)
