"""A leader that stood still asks first: has its session ended while it was paused?

A process may be stopped (SIGSTOP, a suspended machine, a long stall of the disk) for longer than
its broker session. Then the controller has fenced it and others lead, while requests of clients
wait in its sockets. Kafka's leader answers those with acks=1 before it hears of its end, and the
records are lost:

  1. Leader 1 is stopped. Its session ends; 2 leads in the next leader epoch.
  2. A client that has not heard of it writes to 1. The bytes wait in the socket of 1.
  3. 1 goes on, appends the record, and says ok. It hears of leader 2 and truncates.

So this part watches the time between two events of the node. After a gap that a session may not
have outlived, nothing is acknowledged as a leader until

  - a heartbeat that was sent after the gap was answered, and this broker is not fenced; and
  - the metadata was read up to date after that answer: the controller may have fenced us and let
    us in again with this very heartbeat, and whatever it took away was committed before.

A controller on this node cannot answer for itself, since it may be deposed: it commits a record
first (`ActiveController.on_paused`), for which it needs a majority. A node that is the only voter
need not ask: nobody decided anything while it stood still. Silence of the controller alone is no
reason to ask: a leader that is awake goes on without it, as in Kafka.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tidelog.core.model.alarms import Alarms
from tidelog.core.model.trace import Trace
from tidelog.core.node.settings import NodeSettings

NEVER_MS = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerPaused:
    """The node stood still for so long that its session may have ended."""

    gap_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadershipConfirmed:
    """The controller was heard since, and the metadata is up to date: leaders go on."""

    after_ms: int


class MetadataReads(Protocol):
    """How far this node's reading of the metadata is."""

    @property
    def is_active(self) -> bool:
        """The controller is this node itself: its image has all that is committed."""

    @property
    def requests_sent(self) -> int:
        """How many requests for metadata have left so far."""


def pause_ms_max(settings: NodeSettings) -> int | None:
    """The longest gap between two events that a session surely outlives; None: any does.

    The newest heartbeat that the controller knows may be an interval old when the gap begins, and
    the next one needs its time on the way; who has not been heard for longer than that has lost
    its controller before.
    """
    if settings.is_sole_voter:
        return None
    session_ms = settings.integer("broker.session.timeout.ms")
    interval_ms = settings.integer("broker.heartbeat.interval.ms")
    return max(session_ms - 2 * interval_ms, session_ms // 4)


class SessionWatch:
    """Invariant: a broker that was paused is not confirmed by anything sent before the pause."""

    def __init__(
        self, *, settings: NodeSettings, metadata: MetadataReads, alarms: Alarms, trace: Trace
    ) -> None:
        self._pause_ms_max = pause_ms_max(settings)
        self._is_broker = settings.is_broker
        self._metadata = metadata
        self._alarms = alarms
        self._trace = trace
        self.is_confirmed = True
        """May acknowledge as a leader."""
        self.late_ms = NEVER_MS
        """An event at this time or later comes after a pause."""
        self._event_ms = 0
        self._resumed_ms = 0
        self._requests_before: int | None = None
        """A heartbeat was answered; requests for metadata that had left by then do not count."""

    def start(self, now_ms: int) -> None:
        self.on_event(now_ms)
        if self._pause_ms_max is not None:
            self._alarms.at(now_ms, self._look_again)

    def on_event(self, now_ms: int) -> None:
        """The node is awake: at the end of each of its ticks."""
        self._event_ms = now_ms
        if self._pause_ms_max is not None:
            self.late_ms = now_ms + self._pause_ms_max

    def on_paused(self, now_ms: int) -> None:
        """This event came late."""
        self._trace.emit(BrokerPaused(gap_ms=now_ms - self._event_ms))
        self._resumed_ms = now_ms
        self._requests_before = None
        self.is_confirmed = not self._is_broker
        self.on_event(now_ms)

    def on_heartbeat_answered(self, *, sent_ms: int, now_ms: int) -> None:
        """The controller knows this broker, and has not fenced it."""
        if self.is_confirmed or sent_ms < self._resumed_ms:
            return
        if self._metadata.is_active:
            self._confirm(now_ms)
        elif self._requests_before is None:
            self._requests_before = self._metadata.requests_sent

    def on_metadata_read(self, request: int, now_ms: int) -> None:
        """The answer to this request left nothing to read that was committed by then."""
        if self._requests_before is not None and request > self._requests_before:
            self._confirm(now_ms)

    def _confirm(self, now_ms: int) -> None:
        self._requests_before = None
        self.is_confirmed = True
        self._trace.emit(LeadershipConfirmed(after_ms=now_ms - self._resumed_ms))

    def _look_again(self, now_ms: int) -> None:
        """An event of our own, so that a node without work is not taken for one that is paused."""
        assert self._pause_ms_max is not None
        self._alarms.at(now_ms + max(1, self._pause_ms_max // 4), self._look_again)

    def check(self) -> None:
        assert self._requests_before is None or not self.is_confirmed
