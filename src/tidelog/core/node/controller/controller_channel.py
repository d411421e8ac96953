"""The way to the active controller, wherever it is: this node itself, or one link to another.

Every request is answered once: by the controller, or with NoAnswer when none is known, or when it
is lost or silent. Whether and when to ask again is up to the caller, because only the caller knows
whether the request still makes sense.
"""

from __future__ import annotations

from typing import Protocol

from tidelog.core.model.alarms import Alarms
from tidelog.core.node.connections.forwarded_requests import LocalRequest
from tidelog.core.node.connections.request import Handle
from tidelog.core.node.ports import EventClock
from tidelog.core.wire.links import Link, Links, NoAnswer, OnAnswer
from tidelog.core.wire.schema import Message

TIMEOUT_MS = 5_000
RETRY_MS = 50
"""How soon callers may try again when there was no answer."""


class ControllerLocation(Protocol):
    """Where the active controller is, as far as this node knows."""

    @property
    def is_active(self) -> bool:
        """It is this node itself."""

    def leader_address(self) -> tuple[str, int] | None:
        """Of another node; None if it is unknown, or this one."""


class ControllerChannel:
    """Invariant: the link, if any, leads to the controller that was known when it was opened."""

    def __init__(
        self,
        *,
        controller: ControllerLocation,
        alarms: Alarms,
        links: Links,
        clock: EventClock,
        handle: Handle,
    ) -> None:
        self._controller = controller
        self._alarms = alarms
        self._links = links
        self._clock = clock
        self._handle = handle
        self._link: Link | None = None
        self._address: tuple[str, int] | None = None

    def ask(
        self,
        request: Message,
        version: int,
        then: OnAnswer,
        *,
        now_ms: int,
        timeout_ms: int = TIMEOUT_MS,
    ) -> None:
        """`then` may be called before this returns when the controller is this node."""
        if self._controller.is_active:
            self._ask_here(request, version, then, now_ms)
            return
        link = self._link_to_controller(now_ms)
        if link is None:
            self._alarms.at(now_ms, lambda now_ms: then(NoAnswer("no controller"), now_ms))
            return
        link.ask(request, version, then, timeout_ms=timeout_ms, now_ms=now_ms)

    def _ask_here(self, request: Message, version: int, then: OnAnswer, now_ms: int) -> None:
        own = LocalRequest(request, version, lambda answer: then(answer, self._clock.now_ms))
        self._handle(own, now_ms)

    def _link_to_controller(self, now_ms: int) -> Link | None:
        address = self._controller.leader_address()
        if address != self._address or (self._link is not None and self._link.is_closed):
            self.close(now_ms)
        if address is not None and self._link is None:
            self._address = address
            host, port = address
            self._link = self._links.open(host, port, "controller")
        return self._link

    def on_leader_found(self, now_ms: int) -> None:
        """A former controller may be silent for long; whoever waits for it asks the new one."""
        self._alarms.at(now_ms, self._leave_former)

    def _leave_former(self, now_ms: int) -> None:
        if self._address != self._controller.leader_address():
            self.close(now_ms)

    def close(self, now_ms: int) -> None:
        """Whoever waits for an answer of the former controller hears that there is none."""
        link, self._link, self._address = self._link, None, None
        if link is not None and not link.is_closed:
            link.end("another controller", now_ms)
