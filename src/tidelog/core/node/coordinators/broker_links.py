"""Links to other brokers for what coordinators ask: one per broker, opened when it is needed.

A broker asks itself without a link. Every question is answered once, by the broker or with
NoAnswer; whether to ask again is up to the caller.
"""

from __future__ import annotations

from tidelog.core.metadata.changes import (
    BrokerChanged,
    BrokerRegistered,
    BrokerUnregistered,
    Change,
)
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.model.alarms import Alarms
from tidelog.core.node.connections.forwarded_requests import LocalRequest
from tidelog.core.node.connections.request import Handle
from tidelog.core.node.metadata import cluster_view
from tidelog.core.node.ports import EventClock
from tidelog.core.wire.links import Link, Links, NoAnswer, OnAnswer
from tidelog.core.wire.schema import Message

TIMEOUT_MS = 30_000
"""Kafka's `request.timeout.ms` of brokers."""


class BrokerLinks:
    """Invariant: a link leads to the address that its broker had when it was opened."""

    def __init__(
        self,
        *,
        node_id: int,
        image: ClusterImage,
        links: Links,
        alarms: Alarms,
        clock: EventClock,
        handle: Handle,
    ) -> None:
        self._node_id = node_id
        self._image = image
        self._links = links
        self._alarms = alarms
        self._clock = clock
        self._handle = handle
        self._by_broker: dict[int, Link] = {}

    def ask(
        self, broker_id: int, request: Message, version: int, then: OnAnswer, now_ms: int
    ) -> None:
        """`then` may be called before this returns when the broker is this one."""
        if broker_id == self._node_id:
            own = LocalRequest(request, version, lambda answer: then(answer, self._clock.now_ms))
            self._handle(own, now_ms)
            return
        link = self._link_to(broker_id)
        if link is None:
            reason = f"broker {broker_id} is not registered"
            self._alarms.at(now_ms, lambda now_ms: then(NoAnswer(reason), now_ms))
            return
        link.ask(request, version, then, timeout_ms=TIMEOUT_MS, now_ms=now_ms)

    def _link_to(self, broker_id: int) -> Link | None:
        address = cluster_view.address_of(self._image, broker_id)
        link = self._by_broker.get(broker_id)
        if link is not None and (link.is_closed or link.address != address):
            del self._by_broker[broker_id]
            link = None
        if link is None and address is not None:
            link = self._by_broker[broker_id] = self._links.open(*address, "coordinator")
        return link

    def on_change(self, change: Change, now_ms: int) -> None:
        """A broker that is lost may be silent for long: whoever waits for it hears so now.

        So is one whose power failed and came back before anybody missed it: its next process
        registers, and knows nothing of what the one before was asked.
        """
        is_lost = isinstance(change, BrokerUnregistered | BrokerRegistered) or (
            isinstance(change, BrokerChanged) and change.is_fenced
        )
        if is_lost:
            assert isinstance(change, BrokerUnregistered | BrokerRegistered | BrokerChanged)
            link = self._by_broker.pop(change.broker_id, None)
            if link is not None and not link.is_closed:
                self._alarms.at(now_ms, lambda now_ms: link.end("the broker is lost", now_ms))
