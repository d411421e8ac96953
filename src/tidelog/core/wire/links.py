"""Links: connections that this side opened, with each answer handed to its request.

A link is opened once and ends once; whoever owns it decides whether to open another. Answers come
in the order of the requests, as Kafka promises. A request that gets no answer in time ends its
link: whatever arrives later on it could not be told apart from other answers.

Where the two sides must know each other first, a link begins with an introduction; what was asked
meanwhile leaves after it, and a link whose introduction fails is over.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from struct import Struct
from typing import NamedTuple, Protocol

from tidelog.core.model.exceptions import TidelogError
from tidelog.core.wire.codec import decode, encode
from tidelog.core.wire.headers import read_response_header, request_header
from tidelog.core.wire.malformed import MalformedMessage
from tidelog.core.wire.messages import MESSAGES
from tidelog.core.wire.schema import Message

_SIZE = Struct(">i")
CORRELATION_IDS = 2**31
INTRODUCTION_MS_MAX = 5_000
NOT_INTRODUCED = "not introduced"
"""How the reason begins with which a link ends whose introduction failed."""


class Wires(Protocol):
    """What links ask of their world. Calls never block and never call back."""

    def connect(self, link: int, host: str, port: int, purpose: str) -> None:
        """Open a connection that is called `link` from now on; the purpose is for faults and logs.

        What follows is one `on_link_opened`, or `on_link_closed`: refused, reset or unreachable.
        """

    def send(self, link: int, parts: Sequence[bytes | bytearray | memoryview]) -> None:
        """Send one whole request, size included. Only on a link that has opened."""

    def disconnect(self, link: int) -> None:
        """Drop it, opened or not; no event of it follows."""


Outgoing = tuple[Message, int]
"""A request and its version."""


class IntroductionFailed(TidelogError):
    """The other side is not, or does not accept, whom it should."""


class Introduction(Protocol):
    """The first exchange on one link."""

    is_over: bool

    def begin(self) -> Sequence[Outgoing]: ...

    def on_answer(self, answer: Message) -> Sequence[Outgoing]:
        """What is sent next, if anything. Raises IntroductionFailed."""


class Introductions(Protocol):
    """Where the links of a node get theirs."""

    def introduction(self) -> Introduction: ...

    def on_refused(self, host: str, port: int, reason: str, now_ms: int) -> None: ...


class NoAnswer(NamedTuple):
    """A request will not be answered; whether it had an effect is unknown."""

    reason: str


OnAnswer = Callable[[Message | NoAnswer, int], None]
OnBody = Callable[[memoryview | NoAnswer, int], None]


class _InFlight(NamedTuple):
    """One request on its way; `api_key` and `version` say how to read its answer."""

    correlation_id: int
    api_key: int
    version: int
    deadline_ms: int
    then: OnBody


class Link:
    """Invariant: `_in_flight` has the requests without an answer, in the order they were sent."""

    __slots__ = (
        "_in_flight", "_introducing", "_introduction", "_links", "_unsent", "address", "id",
        "is_closed", "is_open", "on_closed", "on_opened", "purpose",
    )  # fmt: skip

    def __init__(
        self, links: Links, id_: int, address: tuple[str, int], purpose: str,
        introduction: Introduction | None,
    ) -> None:  # fmt: skip
        self._links = links
        self.id = id_
        self.address = address
        self.purpose = purpose
        self._introduction = introduction
        self._introducing: deque[_InFlight] = deque()
        self.is_open = False
        self.is_closed = False
        self.on_opened: Callable[[int], None] | None = None
        self.on_closed: Callable[[str, int], None] | None = None
        self._in_flight: deque[_InFlight] = deque()
        self._unsent: list[Sequence[bytes]] = []

    def ask(
        self, request: Message, version: int, then: OnAnswer, *, timeout_ms: int, now_ms: int
    ) -> None:
        """Call `then` once, with the answer or with NoAnswer. Never from inside this call."""
        answer_type = MESSAGES[request.api_key][1]

        def on_body(body: memoryview | NoAnswer, now_ms: int) -> None:
            if isinstance(body, NoAnswer):
                then(body, now_ms)
            else:
                then(decode(answer_type, body, version), now_ms)

        body = encode(request, version)
        self.ask_raw(request.api_key, version, body, on_body, timeout_ms=timeout_ms, now_ms=now_ms)

    def ask_raw(
        self,
        api_key: int,
        version: int,
        body: bytes,
        then: OnBody,
        *,
        timeout_ms: int,
        now_ms: int,
    ) -> None:
        """The same with an encoded body; the answer's body is valid only during the call."""
        correlation_id = self._send(api_key, version, body)
        deadline_ms = now_ms + timeout_ms
        self._in_flight.append(_InFlight(correlation_id, api_key, version, deadline_ms, then))
        self._links.lower_deadline(deadline_ms)

    def send_unanswered(self, api_key: int, version: int, body: bytes) -> None:
        """Send a request that is never answered (Produce with acks=0)."""
        self._send(api_key, version, body)

    def close(self) -> None:
        """Drop it; neither requests in flight nor the owner are called back."""
        if not self.is_closed:
            self._links.wires.disconnect(self.id)
            self._forget()
            self._in_flight.clear()

    @property
    def unanswered(self) -> int:
        return len(self._in_flight)

    def next_deadline_ms(self) -> int | None:
        waiting = (*self._introducing, *self._in_flight)
        return min((request.deadline_ms for request in waiting), default=None)

    def _send(self, api_key: int, version: int, body: bytes) -> int:
        assert not self.is_closed, "a closed link carries nothing"
        correlation_id, parts = self._request(api_key, version, body)
        if self.is_open:
            self._links.wires.send(self.id, parts)
        else:
            self._unsent.append(parts)
        return correlation_id

    def _request(self, api_key: int, version: int, body: bytes) -> tuple[int, Sequence[bytes]]:
        links = self._links
        correlation_id = links.next_correlation_id()
        header = request_header(
            api_key, version, correlation_id=correlation_id, client_id=links.client_id
        )
        return correlation_id, (_SIZE.pack(len(header) + len(body)) + header, body)

    # What the world says, through Links

    def opened(self, now_ms: int) -> None:
        """Connected; requests follow, after the introduction if there is one."""
        if self._introduction is None:
            self._become_open(now_ms)
        else:
            self._introduce(self._introduction.begin(), now_ms)

    def _introduce(self, requests: Sequence[Outgoing], now_ms: int) -> None:
        deadline_ms = now_ms + INTRODUCTION_MS_MAX
        for request, version in requests:
            key = request.api_key
            correlation_id, parts = self._request(key, version, encode(request, version))
            self._introducing.append(
                _InFlight(correlation_id, key, version, deadline_ms, _never_called)
            )
            self._links.wires.send(self.id, parts)
        self._links.lower_deadline(deadline_ms)

    def _on_introduction(
        self, introduction: Introduction, request: _InFlight, body: memoryview, now_ms: int
    ) -> None:
        answer = decode(MESSAGES[request.api_key][1], body, request.version)
        try:
            following = introduction.on_answer(answer)
        except IntroductionFailed as error:
            self._links.refused(self, str(error), now_ms)
            self.end(f"{NOT_INTRODUCED}: {error}", now_ms)
            return
        self._introduce(following, now_ms)
        if introduction.is_over:
            self._introduction = None
            self._become_open(now_ms)

    def _become_open(self, now_ms: int) -> None:
        self.is_open = True
        for parts in self._unsent:
            self._links.wires.send(self.id, parts)
        self._unsent.clear()
        if self.on_opened is not None:
            self.on_opened(now_ms)

    def answered(self, frame: memoryview, now_ms: int) -> None:
        try:
            request, body = self._match(frame)
        except MalformedMessage as bad:
            self.end(f"malformed answer: {bad}", now_ms)
            return
        if self._introduction is not None:
            self._introducing.popleft()
            try:
                self._on_introduction(self._introduction, request, body, now_ms)
            except MalformedMessage as bad:
                self.end(f"malformed answer: {bad}", now_ms)
            return
        self._in_flight.popleft()
        try:
            request.then(body, now_ms)
        except MalformedMessage as bad:
            request.then(NoAnswer(f"malformed answer: {bad}"), now_ms)
            self.end(f"malformed answer: {bad}", now_ms)

    def _match(self, frame: memoryview) -> tuple[_InFlight, memoryview]:
        waiting = self._in_flight if self._introduction is None else self._introducing
        if not waiting:
            raise MalformedMessage("no request waits for it")
        request = waiting[0]
        correlation_id, position = read_response_header(frame, request.api_key, request.version)
        if correlation_id != request.correlation_id:
            raise MalformedMessage(f"it answers {correlation_id}, not {request.correlation_id}")
        return request, frame[position:]

    def end(self, reason: str, now_ms: int) -> None:
        """It is over: every request in flight is called back with NoAnswer, then the owner."""
        if self.is_closed:
            return
        self._links.wires.disconnect(self.id)
        self.ended(reason, now_ms)

    def ended(self, reason: str, now_ms: int) -> None:
        self._forget()
        unanswered, self._in_flight = self._in_flight, deque()
        for each in unanswered:
            each.then(NoAnswer(reason), now_ms)
        if self.on_closed is not None:
            self.on_closed(reason, now_ms)

    def _forget(self) -> None:
        self.is_open = False
        self.is_closed = True
        self._unsent.clear()
        self._introducing.clear()
        self._links.forget(self.id)


def _never_called(body: memoryview | NoAnswer, now_ms: int) -> None:
    raise AssertionError("answers of an introduction go to the introduction")


class Links:
    """All links of one node or client. Inputs: on_link_*, on_answer, expire."""

    def __init__(
        self, wires: Wires, *, client_id: str, introductions: Introductions | None = None
    ) -> None:
        self.wires = wires
        self._introductions = introductions
        self.client_id = client_id
        self._links: dict[int, Link] = {}
        self._opened_count = 0
        self._correlation_id = 0
        self.next_deadline_ms: int | None = None
        """When to call `expire` next; it may be too early, never too late."""

    def open(
        self,
        host: str,
        port: int,
        purpose: str,
        *,
        on_closed: Callable[[str, int], None] | None = None,
        on_opened: Callable[[int], None] | None = None,
        is_introduced: bool = True,
    ) -> Link:
        """A new link; requests may be given to it at once, and leave when it has opened.

        Without an introduction it is good for what strangers may ask as well.
        """
        self._opened_count += 1
        introductions = self._introductions if is_introduced else None
        introduction = None if introductions is None else introductions.introduction()
        link = Link(self, self._opened_count, (host, port), purpose, introduction)
        link.on_closed = on_closed
        link.on_opened = on_opened
        self._links[link.id] = link
        self.wires.connect(link.id, host, port, purpose)
        return link

    def close_all(self) -> None:
        for link in list(self._links.values()):
            link.close()

    def on_link_opened(self, link: int, now_ms: int) -> None:
        known = self._links.get(link)
        if known is not None:
            known.opened(now_ms)

    def on_link_closed(self, link: int, reason: str, now_ms: int) -> None:
        """The reason is one of "refused", "closed", "reset", "unreachable"."""
        known = self._links.get(link)
        if known is not None:
            known.ended(reason, now_ms)

    def on_answer(self, link: int, frame: memoryview, now_ms: int) -> None:
        known = self._links.get(link)
        if known is not None:
            known.answered(frame, now_ms)

    def expire(self, now_ms: int) -> None:
        """End every link that has a request whose time is up."""
        if self.next_deadline_ms is None or now_ms < self.next_deadline_ms:
            return
        for link in list(self._links.values()):
            deadline_ms = link.next_deadline_ms()
            if deadline_ms is not None and deadline_ms <= now_ms:
                link.end("timed out", now_ms)
        deadlines = (link.next_deadline_ms() for link in self._links.values())
        self.next_deadline_ms = min((each for each in deadlines if each is not None), default=None)

    # For the links

    def next_correlation_id(self) -> int:
        self._correlation_id = (self._correlation_id + 1) % CORRELATION_IDS
        return self._correlation_id

    def refused(self, link: Link, reason: str, now_ms: int) -> None:
        assert self._introductions is not None
        self._introductions.on_refused(*link.address, reason, now_ms)

    def lower_deadline(self, deadline_ms: int) -> None:
        if self.next_deadline_ms is None or deadline_ms < self.next_deadline_ms:
            self.next_deadline_ms = deadline_ms

    def forget(self, link: int) -> None:
        self._links.pop(link, None)
