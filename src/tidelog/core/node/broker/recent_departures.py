"""Brokers that went away a moment ago, as clients should hear of it.

A client that loses its leader asks at once who leads now, sooner than the controller can have
decided. Told the past, it comes back only with its next look around: up to a second later in
librdkafka. So while our own connection to a leader has just ended, questions about what it leads
wait for the decision, HELD_MS at most.

A client also drops a broker that is no longer listed, and while librdkafka does so it forgets what
the same answer said about that broker's partitions. So who was fenced a moment ago is listed on for
LISTED_MS. Kafka lists a dead broker for longer than that, because it notices later.

With `tidelog.failure.detection=session` there is nothing to wait for, and all is as in Kafka.
"""

from __future__ import annotations

from collections.abc import Callable

from tidelog.core.metadata.changes import BrokerChanged, BrokerRegistered
from tidelog.core.metadata.cluster import RegisteredBroker
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.model.alarms import Alarms
from tidelog.core.node.connections.request import Request

HELD_MS = 500
"""Maximum duration of an election, if the controller died as well."""
LISTED_MS = 2_000

Then = Callable[[int], None]


class RecentDepartures:
    """Invariant: whoever waits has an alarm set, and is looked at again when it rings."""

    def __init__(self, *, image: ClusterImage, alarms: Alarms, detects_by_connection: bool) -> None:
        self._image = image
        self._alarms = alarms
        self._is_enabled = detects_by_connection
        self._lost_ms: dict[int, int] = {}
        self._fenced_ms: dict[int, int] = {}
        self._waiting: list[tuple[Request, Then]] = []
        self.is_due = False
        """Somebody waits, and something was decided: look again when the tick ends."""

    # What happens

    def on_connection_lost(self, broker_id: int, now_ms: int) -> None:
        """A connection with that broker, which was open, has ended."""
        if self._is_enabled:
            self._lost_ms[broker_id] = now_ms

    def on_change(self, change: object, now_ms: int) -> None:
        if not isinstance(change, BrokerChanged | BrokerRegistered):
            return
        self._lost_ms.pop(change.broker_id, None)
        self._fenced_ms.pop(change.broker_id, None)
        if change.is_fenced and isinstance(change, BrokerChanged) and self._is_enabled:
            self._fenced_ms[change.broker_id] = now_ms
        self.is_due = bool(self._waiting)

    # What Metadata asks

    def missed(self, now_ms: int) -> set[int]:
        """The brokers whose connection ended a moment ago and about whom nothing is decided."""
        if not self._lost_ms:
            return set()
        self._lost_ms = _not_older(self._lost_ms, HELD_MS, now_ms)
        return set(self._lost_ms)

    def wait(self, request: Request, then: Then, now_ms: int) -> None:
        """Call `then` when something was decided, or it takes too long; it may wait again."""
        self._waiting.append((request, then))
        self._alarms.at(now_ms + HELD_MS, self.settle)

    def settle(self, now_ms: int) -> None:
        self.is_due = False
        waiting, self._waiting = self._waiting, []
        for request, then in waiting:
            if request.connection is not None and not request.connection.is_failed:
                then(now_ms)

    def listed(self, now_ms: int) -> list[RegisteredBroker]:
        """The brokers that clients get to see, by id."""
        image = self._image
        if not self._fenced_ms:
            return image.alive_brokers()
        self._fenced_ms = _not_older(self._fenced_ms, LISTED_MS, now_ms)
        return [
            broker
            for broker_id, broker in sorted(image.brokers.items())
            if not broker.is_fenced or broker_id in self._fenced_ms
        ]


def _not_older(moments_ms: dict[int, int], age_ms: int, now_ms: int) -> dict[int, int]:
    return {each: at_ms for each, at_ms in moments_ms.items() if now_ms - at_ms < age_ms}
