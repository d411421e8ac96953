"""One connection per broker: opened when needed, its versions asked for, retried after a pause.

A connection is ready once the broker has listed the versions it speaks. When it ends, the link
fails whatever waits for an answer, and the next attempt waits for the back-off. Brokers are known
by their id, the addresses that a program gave by their text.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from random import Random
from typing import NamedTuple

from tidelog.client.back_off import BackOff
from tidelog.client.config import Address, ClientConfig
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.codec import MalformedMessage, decode, encode
from tidelog.core.wire.links import Link, Links, NoAnswer, OnAnswer
from tidelog.core.wire.messages.api_18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from tidelog.core.wire.schema import Message

NodeKey = int | str
PURPOSE = "client"
PREPARING_TIMEOUT_MS = 1_000
"""How long a connection may take to open before another node is asked instead."""
SOFTWARE_NAME = "tidelog"
SOFTWARE_VERSION = "1"
_NEWEST_API_VERSIONS = 4
"""Version 5 would cost a second request at every Kafka before 4.4."""
_OLDEST_API_VERSIONS = 0


class FinalizedFeatures(NamedTuple):
    """The levels on which a cluster has agreed, and how new that is."""

    features_epoch: int
    levels: dict[str, int]


class NodeConnection:
    """The state of the connection to one node."""

    __slots__ = (
        "address",
        "setup_until_ms",
        "failures",
        "last_attempt_ms",
        "last_end",
        "link",
        "may_connect_at_ms",
        "setup_failures",
        "versions",
    )

    def __init__(self, address: Address) -> None:
        self.address = address
        self.link: Link | None = None
        self.versions: dict[int, tuple[int, int]] | None = None
        self.failures = 0
        self.setup_failures = 0
        self.may_connect_at_ms: int | None = None
        self.last_attempt_ms: int | None = None
        self.last_end: str | None = None
        """Why it ended the last time; None again when it is ready."""
        self.setup_until_ms: int | None = None
        """While it is not open: when to give up."""

    @property
    def is_ready(self) -> bool:
        return self.versions is not None


class NodeConnections:
    """All connections of one client."""

    def __init__(
        self,
        links: Links,
        config: ClientConfig,
        *,
        random: Random,
        on_lost: Callable[[NodeKey, int], None],
    ) -> None:
        self._links = links
        self._config = config
        self._on_lost = on_lost
        self._known: dict[NodeKey, NodeConnection] = {}
        self._wake_at_ms: int | None = None
        self._features = FinalizedFeatures(-1, {})
        """The newest that any broker has named; it outlives its connection."""
        self._reconnect = BackOff(
            first_ms=config.reconnect_backoff_ms,
            most_ms=config.reconnect_backoff_max_ms,
            random=random,
        )
        self._setup = BackOff(
            first_ms=config.connection_setup_timeout_ms,
            most_ms=config.connection_setup_timeout_max_ms,
            random=random,
        )

    # Which nodes can be asked

    def is_usable(self, key: NodeKey) -> bool:
        """Ready, and not too much is unanswered."""
        known = self._known.get(key)
        return (
            known is not None
            and known.is_ready
            and known.link is not None
            and known.link.unanswered < self._config.in_flight_max
        )

    def is_ready(self, key: NodeKey) -> bool:
        known = self._known.get(key)
        return known is not None and known.is_ready

    def is_soon_ready(self, key: NodeKey, now_ms: int) -> bool:
        """On its way, and not for long yet; we wake up when it has been long."""
        known = self._known.get(key)
        if known is None or known.link is None or known.is_ready:
            return False
        assert known.last_attempt_ms is not None
        given_up_at_ms = known.last_attempt_ms + PREPARING_TIMEOUT_MS
        if given_up_at_ms <= now_ms:
            return False
        self._wake_by(given_up_at_ms)
        return True

    def may_connect(self, key: NodeKey, now_ms: int) -> bool:
        known = self._known.get(key)
        if known is None:
            return True
        return known.link is None and (known.may_connect_at_ms or 0) <= now_ms

    def unanswered(self, key: NodeKey) -> int:
        known = self._known.get(key)
        return known.link.unanswered if known is not None and known.link is not None else 0

    def last_attempt_ms(self, key: NodeKey) -> int | None:
        known = self._known.get(key)
        return known.last_attempt_ms if known is not None else None

    def make_usable(self, key: NodeKey, address: Address, now_ms: int) -> bool:
        """True: usable now. False: a connection was begun, or time must pass; we wake up for it."""
        if self.is_usable(key):
            return True
        known = self._known.get(key)
        if known is not None and known.link is not None:
            return False
        if self.may_connect(key, now_ms):
            self._connect(key, address, now_ms)
        elif known is not None:
            self._wake_by(known.may_connect_at_ms)
        return False

    def version(
        self, key: NodeKey, request: type[Message], *, at_most: int | None = None
    ) -> int | None:
        """The newest version that both sides speak; None if there is none."""
        known = self._known[key]
        assert known.versions is not None
        theirs = known.versions.get(request.api_key)
        if theirs is None:
            return None
        newest = min(request.versions[-1], theirs[1])
        if at_most is not None:
            newest = min(newest, at_most)
        return newest if newest >= max(request.versions[0], theirs[0]) else None

    def feature_level(self, name: str) -> int:
        """The level of a feature that the cluster has finalized; 0 if it has none."""
        return self._features.levels.get(name, 0)

    def failures(self) -> list[tuple[Address, str]]:
        """The addresses that were tried and are not ready, and why."""
        return [
            (known.address, known.last_end or "no answer")
            for known in self._known.values()
            if not known.is_ready
        ]

    # Sending

    def send(
        self,
        key: NodeKey,
        request: Message,
        version: int,
        then: OnAnswer,
        *,
        now_ms: int,
        timeout_ms: int | None = None,
    ) -> None:
        link = self._open_link(key)
        if timeout_ms is None:
            timeout_ms = self._config.request_timeout_ms
        link.ask(request, version, then, timeout_ms=timeout_ms, now_ms=now_ms)

    def send_unanswered(self, key: NodeKey, request: Message, version: int) -> None:
        """A request that is never answered."""
        self._open_link(key).send_unanswered(request.api_key, version, encode(request, version))

    def _open_link(self, key: NodeKey) -> Link:
        known = self._known[key]
        assert known.is_ready and known.link is not None, "only ready connections are used"
        return known.link

    # Time

    def begin_pass(self) -> None:
        """Forget the wake-up time: whoever still has to wait will ask for one again."""
        self._wake_at_ms = None

    def expire(self, now_ms: int) -> None:
        """Give up connections that do not open."""
        for known in self._known.values():
            if known.setup_until_ms is not None and known.setup_until_ms <= now_ms:
                assert known.link is not None
                known.link.end("connection timed out", now_ms)

    def deadlines_ms(self) -> Iterable[int | None]:
        return (*(known.setup_until_ms for known in self._known.values()), self._wake_at_ms)

    def close(self, key: NodeKey, now_ms: int) -> None:
        """End it as if the other side had; whatever waits on it fails."""
        known = self._known.get(key)
        if known is not None and known.link is not None:
            known.link.end("closed by this client", now_ms)

    def _wake_by(self, at_ms: int | None) -> None:
        if at_ms is not None and (self._wake_at_ms is None or at_ms < self._wake_at_ms):
            self._wake_at_ms = at_ms

    # From nothing to ready, and back

    def _connect(self, key: NodeKey, address: Address, now_ms: int) -> None:
        known = self._known.get(key)
        if known is None or known.address != address:
            known = self._known[key] = NodeConnection(address)
        connection = known
        connection.last_attempt_ms = now_ms
        connection.setup_until_ms = now_ms + self._setup.pause_ms(connection.setup_failures)
        connection.link = self._links.open(
            address.host,
            address.port,
            PURPOSE,
            on_opened=lambda now_ms: self._opened(connection, now_ms),
            on_closed=lambda reason, now_ms: self._closed(key, connection, reason, now_ms),
        )

    def _opened(self, connection: NodeConnection, now_ms: int) -> None:
        connection.setup_until_ms = None
        connection.setup_failures = 0
        self._request_versions(connection, _NEWEST_API_VERSIONS, now_ms)

    def _request_versions(self, connection: NodeConnection, version: int, now_ms: int) -> None:
        assert connection.link is not None
        request = ApiVersionsRequest(
            client_software_name=SOFTWARE_NAME, client_software_version=SOFTWARE_VERSION
        )
        connection.link.ask_raw(
            ApiVersionsRequest.api_key,
            version,
            encode(request, version),
            lambda body, now_ms: self._on_versions(connection, version, body, now_ms),
            timeout_ms=self._config.request_timeout_ms,
            now_ms=now_ms,
        )

    def _on_versions(
        self, connection: NodeConnection, version: int, body: memoryview | NoAnswer, now_ms: int
    ) -> None:
        if isinstance(body, NoAnswer):
            return
        if len(body) < 2:
            raise MalformedMessage("an answer without an error code")
        (error_code,) = struct.unpack_from(">h", body)
        if error_code == ErrorCode.UNSUPPORTED_VERSION and version > _OLDEST_API_VERSIONS:
            self._request_versions(connection, _OLDEST_API_VERSIONS, now_ms)
            return
        if error_code != ErrorCode.NONE:
            raise MalformedMessage(f"no versions but error {error_code}")
        answer = decode(ApiVersionsResponse, body, version)
        connection.versions = {
            each.api_key: (each.min_version, each.max_version) for each in answer.api_keys
        }
        if answer.finalized_features_epoch > self._features.features_epoch:
            levels = {each.name: each.max_version_level for each in answer.finalized_features}
            self._features = FinalizedFeatures(answer.finalized_features_epoch, levels)
        connection.failures = 0
        connection.last_end = None

    def _closed(self, key: NodeKey, connection: NodeConnection, reason: str, now_ms: int) -> None:
        connection.last_end = reason
        if connection.setup_until_ms is not None:
            connection.setup_failures += 1
        connection.setup_until_ms = None
        connection.link = None
        connection.versions = None
        connection.may_connect_at_ms = now_ms + self._reconnect.pause_ms(connection.failures)
        connection.failures += 1
        self._on_lost(key, now_ms)
