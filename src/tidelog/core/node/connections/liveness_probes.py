"""Liveness probes: whether the process behind an address is dead.

A lost connection proves nothing: it may be a reset by something on the way. But an address that
refuses a connection twice, a moment apart, has no process behind it any more. Silence, on the
other hand, is never a proof: a host that is cut off refuses nothing. Nor is an open port: the
system closes the files of a killed process one by one, and its listener may be the last of them. So
a probe asks something, and only who answers is alive; a connection that is closed is tried again.
"""

from __future__ import annotations

from collections.abc import Callable

from tidelog.core.model.alarms import Alarms
from tidelog.core.wire.links import Links, NoAnswer

PAUSE_MS = 20
"""Between two attempts: a listener that is being opened anew gets the chance to be there."""
REFUSALS = 2
WAIT_MS = 1_000
"""Who has neither answered nor refused by then is silent."""
_API_VERSIONS, _VERSION = 18, 0
"""The request: every version of every broker knows it, and it says nothing."""
_CLOSED = ("closed", "reset")

Then = Callable[[bool, int], None]
Address = tuple[str, int]


class LivenessProbes:
    """At most one probe per address; whoever asks meanwhile hears the same result."""

    def __init__(self, *, alarms: Alarms, links: Links) -> None:
        self._alarms = alarms
        self._links = links
        self._running: dict[Address, _Probe] = {}

    def probe(self, host: str, port: int, then: Then, *, now_ms: int) -> None:
        """Call `then(is_dead, now_ms)` once, some time after this call."""
        running = self._running.get((host, port))
        if running is None:
            running = _Probe(
                self._alarms,
                self._links,
                (host, port),
                self._finish,
                deadline_ms=now_ms + WAIT_MS,
            )
            self._running[host, port] = running
            running.thens.append(then)
            running.attempt(now_ms)
        else:
            running.thens.append(then)

    def _finish(self, probe: _Probe, is_dead: bool, now_ms: int) -> None:
        del self._running[probe.address]
        for then in probe.thens:
            then(is_dead, now_ms)


class _Probe:
    """Connects to one address until it is refused often enough, or answered, or out of time."""

    def __init__(
        self,
        alarms: Alarms,
        links: Links,
        address: Address,
        finish: Callable[[_Probe, bool, int], None],
        *,
        deadline_ms: int,
    ) -> None:
        self._alarms = alarms
        self._links = links
        self.address = address
        self.thens: list[Then] = []
        self._finish = finish
        self._deadline_ms = deadline_ms
        self._refused = 0

    def attempt(self, now_ms: int) -> None:
        host, port = self.address
        link = self._links.open(host, port, "probe", is_introduced=False)

        def then(answer: memoryview | NoAnswer, now_ms: int) -> None:
            link.close()
            if isinstance(answer, NoAnswer):
                self._on_no_answer(answer.reason, now_ms)
            else:
                self._finish(self, False, now_ms)

        timeout_ms = max(PAUSE_MS, self._deadline_ms - now_ms)
        link.ask_raw(_API_VERSIONS, _VERSION, b"", then, timeout_ms=timeout_ms, now_ms=now_ms)

    def _on_no_answer(self, reason: str, now_ms: int) -> None:
        self._refused += reason == "refused"
        if self._refused >= REFUSALS:
            self._finish(self, True, now_ms)
        elif reason == "refused" or (reason in _CLOSED and now_ms < self._deadline_ms):
            self._alarms.at(now_ms + PAUSE_MS, self.attempt)
        else:
            self._finish(self, False, now_ms)
