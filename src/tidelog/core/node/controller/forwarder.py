"""Forwarding: what only the active controller may decide goes there, from whichever node was asked.

The client's bytes travel in an envelope and come back as the bytes of the answer, so the client
notices nothing. While there is no controller, or while it changes, the node tries again; a client
hears of an election only as waiting. On the controller itself the same request runs in place, and
is tried again elsewhere if the controller steps down before its decision is committed.
"""

from __future__ import annotations

from collections.abc import Callable

from tidelog.core.metadata.image import ClusterImage
from tidelog.core.model.alarms import Alarms
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.connections.forwarded_requests import EnvelopedRequest
from tidelog.core.node.connections.request import Handle, Request
from tidelog.core.node.controller.controller_channel import (
    RETRY_MS,
    ControllerChannel,
    ControllerLocation,
)
from tidelog.core.node.ports import EventClock
from tidelog.core.wire.codec import decode
from tidelog.core.wire.headers import read_response_header
from tidelog.core.wire.links import NoAnswer
from tidelog.core.wire.malformed import MalformedMessage
from tidelog.core.wire.messages import MESSAGES
from tidelog.core.wire.messages.api_19_create_topics import CreateTopicsResponse
from tidelog.core.wire.messages.api_58_envelope import EnvelopeRequest, EnvelopeResponse
from tidelog.core.wire.schema import Message

GIVE_UP_MS = 30_000
"""After this time without a controller the client's connection is dropped, as clients do, too."""
IMAGE_WAIT_MS_MAX = 2_000
CREATE_TOPICS = 19
ENVELOPE_VERSION = 0

Decided = Callable[[bytes | None, int], None]
"""Gets the whole answer, or None when this node is not the controller (any more)."""


class Forwarder:
    """Requests on their way to a decision. `deciding` are those that run here, as controller."""

    def __init__(
        self,
        *,
        controller: ControllerLocation,
        channel: ControllerChannel,
        image: ClusterImage,
        alarms: Alarms,
        clock: EventClock,
        handle: Handle,
    ) -> None:
        self._controller = controller
        self._channel = channel
        self._image = image
        self.alarms = alarms
        self._clock = clock
        self._handle = handle
        self._deciding: dict[EnvelopedRequest, Decided] = {}
        self.waiting_for_image: list[_WaitsForImage] = []

    # For a client of this node

    def forward(self, request: Request, frame: memoryview, now_ms: int) -> None:
        """Get it decided; `frame` is the whole request without its size. Nonsense goes nowhere."""
        request.decode(MESSAGES[request.api_key][0])
        _Forwarded(self, request, bytes(frame), now_ms + GIVE_UP_MS).attempt(now_ms)

    def attempt(self, frame: bytes, decided: Decided, now_ms: int) -> None:
        if self._controller.is_active:
            self.decide(memoryview(frame), decided, now_ms)
            return

        def on_answer(answer: Message | NoAnswer, now_ms: int) -> None:
            if not isinstance(answer, EnvelopeResponse) or answer.response_data is None:
                decided(None, now_ms)
            else:
                decided(bytes(answer.response_data), now_ms)

        envelope = EnvelopeRequest(request_data=frame, request_principal=None)
        self._channel.ask(envelope, ENVELOPE_VERSION, on_answer, now_ms=now_ms)

    # On the controller

    def decide(self, frame: memoryview, decided: Decided, now_ms: int) -> None:
        """Run it here; without an answer before the end of our rule it must be tried again."""

        def then(answer: bytes | None) -> None:
            self._deciding.pop(request, None)
            decided(answer, self._clock.now_ms)

        request = EnvelopedRequest(frame, then)
        self._deciding[request] = decided
        try:
            self._handle(request, now_ms)
        except MalformedMessage:
            self._deciding.pop(request, None)
            raise
        request.body = None

    def on_activated(self, now_ms: int) -> None:
        """Requests that wait try again by themselves."""

    def on_resigned(self, now_ms: int) -> None:
        deciding, self._deciding = self._deciding, {}
        for request, decided in deciding.items():
            request.abandon()
            decided(None, now_ms)

    # Answers that the node must be able to stand by

    def wait_for_image(self, topics: list[str], then: Callable[[], None], now_ms: int) -> None:
        """Call `then` when our own image has these topics, so that the client finds them here."""
        waiting = _WaitsForImage(self._image, topics, then)
        if waiting.is_there():
            then()
        else:
            self.waiting_for_image.append(waiting)
            self.alarms.at(now_ms + IMAGE_WAIT_MS_MAX, waiting.give_up)

    def end_of_tick(self) -> None:
        self.waiting_for_image = [w for w in self.waiting_for_image if not w.look()]


class _Forwarded:
    """One client's request until it is answered."""

    def __init__(
        self, forwarder: Forwarder, request: Request, frame: bytes, give_up_ms: int
    ) -> None:
        self._forwarder = forwarder
        self._request = request
        self._frame = frame
        self._give_up_ms = give_up_ms

    def attempt(self, now_ms: int) -> None:
        connection = self._request.connection
        assert connection is not None
        if connection.is_failed:
            return
        if now_ms >= self._give_up_ms:
            self._request.close("there is no controller to decide this request")
            return
        self._forwarder.attempt(self._frame, self._on_decided, now_ms)

    def _on_decided(self, answer: bytes | None, now_ms: int) -> None:
        if answer is None:
            self._forwarder.alarms.at(now_ms + RETRY_MS, self.attempt)
            return
        created = _created_topics(self._request, answer)
        if created:
            self._forwarder.wait_for_image(created, lambda: self._answer(answer), now_ms)
        else:
            self._answer(answer)

    def _answer(self, answer: bytes) -> None:
        self._request.answer_parts([answer])


def _created_topics(request: Request, answer: bytes) -> list[str]:
    if request.api_key != CREATE_TOPICS:
        return []
    view = memoryview(answer)
    _, position = read_response_header(view, request.api_key, request.version)
    response = decode(CreateTopicsResponse, view, request.version, position)
    return [topic.name for topic in response.topics if topic.error_code == ErrorCode.NONE]


class _WaitsForImage:
    """One answer that waits until our own metadata shows what it speaks of."""

    def __init__(self, image: ClusterImage, topics: list[str], then: Callable[[], None]) -> None:
        self._image = image
        self._topics = topics
        self._then: Callable[[], None] | None = then

    def is_there(self) -> bool:
        return all(topic in self._image.topics for topic in self._topics)

    def look(self) -> bool:
        """True when it is over."""
        if self._then is not None and self.is_there():
            self.give_up(0)
        return self._then is None

    def give_up(self, now_ms: int) -> None:
        then, self._then = self._then, None
        if then is not None:
            then()
