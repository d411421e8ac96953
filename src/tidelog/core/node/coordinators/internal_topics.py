"""Internal topics, made when somebody first asks for a coordinator.

Whoever asks waits for a bounded time instead of being refused: the topic is there within
milliseconds, and clients sleep for longer than that after a refusal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tidelog.core.metadata.image import ClusterImage
from tidelog.core.model.alarms import Alarms
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.topic_name import OFFSETS_TOPIC
from tidelog.core.node.controller.controller_channel import RETRY_MS, ControllerChannel
from tidelog.core.node.settings import NodeSettings
from tidelog.core.wire.links import NoAnswer
from tidelog.core.wire.messages.api_19_create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tidelog.core.wire.schema import Message

WAIT_MS_MAX = 2_000
"""How long a request waits for the topic and its leader. Kafka does not wait at all."""
_CREATE_VERSION = 7
_CREATE_WITHIN_MS = 30_000
_REPLICAS_FOR_MINIMUM_OF_TWO = 3

Look = Callable[[int, bool], bool]
"""Gets the time, and whether it is the last look; True when it has answered."""


class _Waiting(NamedTuple):
    look: Look
    deadline_ms: int


class InternalTopics:
    """Invariant: while somebody waits for a topic that does not exist, it is being made."""

    def __init__(
        self,
        *,
        settings: NodeSettings,
        image: ClusterImage,
        channel: ControllerChannel,
        alarms: Alarms,
    ) -> None:
        self._settings = settings
        self._image = image
        self._channel = channel
        self._alarms = alarms
        self._is_creating = False
        self.waiting: list[_Waiting] = []
        self.is_due = False
        """The metadata has changed: look again when the tick ends."""

    def wait(self, look: Look, now_ms: int) -> None:
        """Call `look` whenever the metadata has changed, until it answers, or time is over."""
        self.waiting.append(_Waiting(look, now_ms + WAIT_MS_MAX))
        self._alarms.at(now_ms + WAIT_MS_MAX, self.settle)
        if not self._is_creating:
            self._create(now_ms)

    def on_change(self) -> None:
        self.is_due = bool(self.waiting)

    def settle(self, now_ms: int) -> None:
        self.is_due = False
        waiting, self.waiting = self.waiting, []
        for each in waiting:
            if not each.look(now_ms, now_ms >= each.deadline_ms):
                self.waiting.append(each)

    # Creation

    def _create(self, now_ms: int) -> None:
        """Again and again while somebody waits for it."""
        self._is_creating = bool(self.waiting) and OFFSETS_TOPIC not in self._image.topics
        if self._is_creating:
            request = CreateTopicsRequest(
                topics=[self._offsets_topic()], timeout_ms=_CREATE_WITHIN_MS
            )
            self._channel.ask(request, _CREATE_VERSION, self._on_answer, now_ms=now_ms)

    def _on_answer(self, answer: Message | NoAnswer, now_ms: int) -> None:
        if isinstance(answer, CreateTopicsResponse):
            errors = {topic.error_code for topic in answer.topics}
            if errors <= {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}:
                self._is_creating = False  # the image will show it
                return
        self._alarms.at(now_ms + RETRY_MS, self._create)

    def _offsets_topic(self) -> CreatableTopic:
        replicas = self.replication_factor()
        isr_min = 2 if replicas >= _REPLICAS_FOR_MINIMUM_OF_TWO else 1
        configs = {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(self._settings.integer("offsets.topic.segment.bytes")),
            "min.insync.replicas": str(isr_min),
        }
        return CreatableTopic(
            name=OFFSETS_TOPIC,
            num_partitions=self._settings.integer("offsets.topic.num.partitions"),
            replication_factor=replicas,
            configs=[CreatableTopicConfig(name=name, value=configs[name]) for name in configs],
        )

    def replication_factor(self) -> int:
        """As configured; by default 3, or one per broker in a smaller cluster.

        The size of the cluster is who was ever registered or is a voter, not who is alive: a
        topic made while a broker is down would have too few replicas for ever.
        """
        name = "offsets.topic.replication.factor"
        factor = self._settings.integer(name)
        if name in self._settings.texts:
            return factor
        voters = len(self._settings.voters) if self._settings.is_controller else 0
        return max(1, min(factor, max(len(self._image.brokers), voters)))
