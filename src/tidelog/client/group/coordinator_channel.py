"""Requests to one coordinator: looked up, asked, and looked up again when it moves.

It is that of a group or of a transactional id.

The coordinator has a connection of its own: a JoinGroup may wait for minutes, and answers come in
the order of the requests, so that it would hold up the fetches to the same broker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tidelog.client.back_off import BackOff
from tidelog.client.client import Client
from tidelog.client.config import Address
from tidelog.core.model.errors import RETRIABLE, ErrorCode
from tidelog.core.wire.links import NoAnswer
from tidelog.core.wire.messages.api_10_find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from tidelog.core.wire.schema import Message

GROUP_KEY_TYPE = 0
TRANSACTION_KEY_TYPE = 1
UNREACHABLE_MS = 500
"""How long a coordinator may be unreachable before it is looked up again."""
_BATCHED_FROM = 4
COORDINATOR_MOVED = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
COORDINATOR_ERRORS = COORDINATOR_MOVED | {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.REQUEST_TIMED_OUT,
}
"""Errors that say nothing about the request: it is sent again."""


class CoordinatorChannel:
    """Whoever uses it calls `run` in its own turns."""

    def __init__(
        self,
        client: Client,
        coordinator_key: str,
        *,
        key_type: int = GROUP_KEY_TYPE,
        connection_name: str = "group",
    ) -> None:
        self._client = client
        self._coordinator_key = coordinator_key
        self._key_type = key_type
        self._connection_name = connection_name
        self._back_off = BackOff(
            first_ms=client.config.retry_backoff_ms,
            most_ms=client.config.retry_backoff_max_ms,
            random=client.random,
        )
        self._is_sent = False
        self._failures = 0
        self._retry_at_ms = 0
        self._doubt_at_ms: int | None = None
        self._address: Address | None = None
        self.node_id: int | None = None
        """Where the coordinator is believed to be."""
        self.refusal: ErrorCode | None = None
        """The cluster names no coordinator, and another try would not help."""
        self.reason: str | None = None
        """Why the last lookup failed."""

    @property
    def key(self) -> str:
        return f"{self._connection_name}-{self.node_id}"

    def is_usable(self, now_ms: int) -> bool:
        """Whether it can be asked now; if not, what is needed for that is under way."""
        if self.refusal is not None:
            return False
        if self.node_id is None or self._address is None:
            self._look_up(now_ms)
            return False
        if self._client.connections.make_usable(self.key, self._address, now_ms):
            self._doubt_at_ms = None
            return True
        if self._doubt_at_ms is None:
            self._doubt_at_ms = now_ms + UNREACHABLE_MS
        elif now_ms >= self._doubt_at_ms:
            self.forget()
            self._look_up(now_ms)
        return False

    def is_ready(self) -> bool:
        """Whether there is a connection to it."""
        return self._client.connections.is_ready(self.key)

    def version(self, kind: type[Message]) -> int | None:
        """In which it would be sent; only while ready."""
        return self._client.connections.version(self.key, kind)

    def send(
        self,
        request: Message,
        then: Callable[[Message | NoAnswer, int], None],
        *,
        now_ms: int,
        timeout_ms: int | None = None,
        versions: range | None = None,
    ) -> bool:
        """Only while usable. False: the broker speaks none of these versions."""
        connections = self._client.connections
        at_most = None if versions is None else versions[-1]
        version = connections.version(self.key, type(request), at_most=at_most)
        if version is None or (versions is not None and version < versions[0]):
            return False
        sent_to = self.node_id

        def answered(answer: Message | NoAnswer, now_ms: int) -> None:
            if isinstance(answer, NoAnswer) and self.node_id == sent_to:
                self.forget()
            then(answer, now_ms)

        connections.send(self.key, request, version, answered, now_ms=now_ms, timeout_ms=timeout_ms)
        return True

    def forget(self) -> None:
        """It may be elsewhere."""
        self.node_id = self._address = self._doubt_at_ms = None

    def disconnect(self, now_ms: int) -> None:
        """Whatever it still works on is not waited for."""
        if self.node_id is not None:
            self._client.connections.close(self.key, now_ms)

    def deadlines_ms(self) -> Iterable[int | None]:
        yield self._doubt_at_ms
        if not self._is_sent and self.node_id is None:
            yield self._retry_at_ms

    def _look_up(self, now_ms: int) -> None:
        if self._is_sent or now_ms < self._retry_at_ms:
            return
        node = self._client.usable_node(now_ms)
        if node is None:
            return
        version = self._client.connections.version(node, FindCoordinatorRequest)
        if version is None or version < _BATCHED_FROM:
            self.refusal = ErrorCode.UNSUPPORTED_VERSION
            return
        self._is_sent = True
        request = FindCoordinatorRequest(
            key_type=self._key_type, coordinator_keys=[self._coordinator_key]
        )
        self._client.connections.send(node, request, version, self._found, now_ms=now_ms)

    def _found(self, answer: Message | NoAnswer, now_ms: int) -> None:
        self._is_sent = False
        error = ErrorCode.NETWORK_EXCEPTION
        if isinstance(answer, FindCoordinatorResponse) and answer.coordinators:
            found = answer.coordinators[0]
            error = ErrorCode.from_wire(found.error_code)
            if error == ErrorCode.NONE:
                self.node_id, self._address = found.node_id, Address(found.host, found.port)
                self._failures = 0
                self.reason = None
                return
        self.reason = error.name
        if error in RETRIABLE:
            self._retry_at_ms = now_ms + self._back_off.pause_ms(self._failures)
            self._failures += 1
        else:
            self.refusal = error
