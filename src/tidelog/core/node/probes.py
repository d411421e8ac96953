"""Probes: whether a process is dead, found out by knocking at its door.

A lost connection proves nothing: it may be a reset by something on the way. But an address that
refuses a connection twice, a moment apart, has no process behind it any more. Silence, on the
other hand, is never a proof: a host that is cut off refuses nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tidelog.core.wire.links import Link

if TYPE_CHECKING:
    from tidelog.core.node.node import Node

PAUSE_MS = 20
"""Between two knocks: a listener that is being opened anew gets the chance to be there."""
KNOCKS = 2
WAIT_MS = 1_000
"""Who has not answered a knock by then is silent."""

Then = Callable[[bool, int], None]
Address = tuple[str, int]


class Probes:
    """At most one probe per address; whoever asks meanwhile hears the same result."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._running: dict[Address, _Probe] = {}

    def probe(self, host: str, port: int, then: Then, *, now_ms: int) -> None:
        """Call `then(is_dead, now_ms)` once, some time after this call."""
        running = self._running.get((host, port))
        if running is None:
            running = self._running[host, port] = _Probe(self._node, (host, port), self._finish)
            running.thens.append(then)
            running.knock(now_ms)
        else:
            running.thens.append(then)

    def _finish(self, probe: _Probe, is_dead: bool, now_ms: int) -> None:
        del self._running[probe.address]
        for then in probe.thens:
            then(is_dead, now_ms)


class _Probe:
    """Knocks at one address until it is refused often enough, or opened, or silent."""

    def __init__(
        self, node: Node, address: Address, finish: Callable[[_Probe, bool, int], None]
    ) -> None:
        self._node = node
        self.address = address
        self.thens: list[Then] = []
        self._finish = finish
        self._refused = 0

    def knock(self, now_ms: int) -> None:
        link: Link
        host, port = self.address

        def on_opened(now_ms: int) -> None:
            alarm.cancel()
            link.close()
            self._finish(self, False, now_ms)

        def on_closed(reason: str, now_ms: int) -> None:
            alarm.cancel()
            self._on_closed(reason, now_ms)

        def on_silence(now_ms: int) -> None:
            link.close()
            self._finish(self, False, now_ms)

        alarm = self._node.alarms.at(now_ms + WAIT_MS, on_silence)
        link = self._node.links.open(host, port, "probe", on_closed=on_closed, on_opened=on_opened)

    def _on_closed(self, reason: str, now_ms: int) -> None:
        if reason != "refused":
            self._finish(self, False, now_ms)
            return
        self._refused += 1
        if self._refused >= KNOCKS:
            self._finish(self, True, now_ms)
        else:
            self._node.alarms.at(now_ms + PAUSE_MS, self.knock)
