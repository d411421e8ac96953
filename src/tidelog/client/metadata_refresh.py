"""When to ask for metadata, and which node.

It is asked for when something contradicts it, when it is old, and at once for a new topic. A
pause lies between two requests, longer each time as long as they bring nothing new. Any broker may
be asked: the one with the least to do. When none of them can be reached, the addresses that the
program gave are tried again.
"""

from __future__ import annotations

from random import Random

from tidelog.client.back_off import BackOff
from tidelog.client.cluster_metadata import STALE_METADATA, ClusterMetadata
from tidelog.client.config import ClientConfig
from tidelog.client.connections import NodeConnections, NodeKey
from tidelog.client.events import MetadataRefreshed, Rebootstrapped
from tidelog.client.node_choice import Node, least_loaded
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.trace import Trace
from tidelog.core.wire.links import NoAnswer
from tidelog.core.wire.messages.api_03_metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tidelog.core.wire.schema import Message

NULL_MEANS_ALL_FROM = 1


class MetadataRefresh:
    """Keeps one ClusterMetadata fresh enough."""

    def __init__(
        self,
        metadata: ClusterMetadata,
        connections: NodeConnections,
        config: ClientConfig,
        *,
        random: Random,
        trace: Trace,
    ) -> None:
        self._metadata = metadata
        self._connections = connections
        self._config = config
        self._random = random
        self._trace = trace
        self._back_off = BackOff(
            first_ms=config.retry_backoff_ms, most_ms=config.retry_backoff_max_ms, random=random
        )
        self._topics: dict[str, None] = {}
        self._is_sent = False
        self._is_requested = True
        self._has_new_topic = False
        self._failures = 0
        self._unchanged = 0
        """How many answers in a row brought nothing new."""
        self._allowed_at_ms = 0
        self._expires_at_ms = 0
        self._trying_since_ms: int | None = None

    # What machines ask for

    def add_topic(self, topic: str) -> None:
        """Ask about it from now on; at once, if it is new."""
        if topic not in self._topics:
            self._topics[topic] = None
            self.request_update_now()

    def request_update_now(self) -> None:
        """Without the pause: something is needed that was never asked for yet."""
        self._has_new_topic = True
        self._unchanged = 0
        self._allowed_at_ms = 0

    def request_update(self) -> None:
        """Something contradicts the metadata: ask again, after the pause."""
        self._is_requested = True

    # The machine

    def on_lost(self, key: NodeKey, now_ms: int) -> None:
        """A connection ended; perhaps its broker is not what we believe."""
        if self._is_due(now_ms):
            self._failed(now_ms)
        self.request_update()

    def run(self, now_ms: int) -> None:
        if not self._is_due(now_ms):
            return
        if self._trying_since_ms is None:
            self._trying_since_ms = now_ms
        elif now_ms - self._trying_since_ms > self._config.rebootstrap_trigger_ms:
            self._rebootstrap(now_ms)
        chosen = self._least_loaded(now_ms)
        if chosen is None and not self._is_any_ready():
            self._rebootstrap(now_ms)
            chosen = self._least_loaded(now_ms)
        if chosen is None:
            self._wait_for_any(now_ms)
        elif self._connections.is_usable(chosen[0]):
            self._send(chosen[0], now_ms)
        elif not self._is_any_soon_ready(now_ms):
            self._connections.make_usable(*chosen, now_ms)

    def next_deadline_ms(self) -> int | None:
        if self._is_sent:
            return None
        return self._due_at_ms()

    def _due_at_ms(self) -> int:
        wanted = self._is_requested or self._has_new_topic
        return max(0 if wanted else self._expires_at_ms, self._allowed_at_ms)

    def _is_due(self, now_ms: int) -> bool:
        return not self._is_sent and self._due_at_ms() <= now_ms

    # Which node to ask

    def _least_loaded(self, now_ms: int) -> Node | None:
        return least_loaded(self._metadata, self._connections, self._random, now_ms)

    def _is_any_ready(self) -> bool:
        return any(self._connections.is_ready(key) for key, _ in self._metadata.nodes())

    def _is_any_soon_ready(self, now_ms: int) -> bool:
        nodes = self._metadata.nodes()
        return any(self._connections.is_soon_ready(key, now_ms) for key, _ in nodes)

    def _wait_for_any(self, now_ms: int) -> None:
        for key, address in self._metadata.nodes():
            self._connections.make_usable(key, address, now_ms)

    def _rebootstrap(self, now_ms: int) -> None:
        if not self._config.rebootstraps or not self._metadata.brokers:
            return
        self._trace.emit(Rebootstrapped(brokers=tuple(sorted(self._metadata.brokers))))
        keys = [key for key, _ in self._metadata.nodes()]
        self._metadata.forget_brokers()
        self._trying_since_ms = now_ms
        for key in keys:
            self._connections.close(key, now_ms)
        self.request_update_now()

    # Requests and answers

    def _send(self, key: NodeKey, now_ms: int) -> None:
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=topic) for topic in self._topics],
            allow_auto_topic_creation=self._config.creates_topics,
        )
        version = self._connections.version(key, MetadataRequest)
        if version is None or version < NULL_MEANS_ALL_FROM:
            self._failed(now_ms)
            return
        self._is_sent = True
        self._has_new_topic = False
        self._is_requested = False
        self._connections.send(key, request, version, self._answered, now_ms=now_ms)

    def _answered(self, answer: Message | NoAnswer, now_ms: int) -> None:
        self._is_sent = False
        if not isinstance(answer, MetadataResponse) or not answer.brokers:
            self._failed(now_ms)
            return
        if answer.error_code == ErrorCode.REBOOTSTRAP_REQUIRED:
            self.request_update()
            self._rebootstrap(now_ms)
            return
        has_news = self._metadata.apply(answer)
        self._trying_since_ms = None
        self._failures = 0
        self._unchanged = 0 if has_news else self._unchanged + 1
        if not self._has_new_topic:
            self._allowed_at_ms = now_ms + self._back_off.pause_ms(max(0, self._unchanged - 1))
        self._expires_at_ms = now_ms + self._config.metadata_max_age_ms
        if self._has_stale_part():
            self.request_update()
        self._trace.emit(MetadataRefreshed(topics=len(answer.topics), has_news=has_news))

    def _has_stale_part(self) -> bool:
        for topic in self._metadata.topics.values():
            if topic.error in STALE_METADATA:
                return True
            if any(each.error in STALE_METADATA for each in topic.partitions.values()):
                return True
        return False

    def _failed(self, now_ms: int) -> None:
        self._is_requested = True
        self._allowed_at_ms = now_ms + self._back_off.pause_ms(self._failures)
        self._failures += 1
