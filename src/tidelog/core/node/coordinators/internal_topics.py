"""Internal topics, made when somebody first asks for a coordinator.

Whoever asks waits for a bounded time instead of being refused: the topic is there within
milliseconds, and clients sleep for longer than that after a refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from tidelog.core.metadata.image import ClusterImage
from tidelog.core.model.alarms import Alarms
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.topic_name import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
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


class TopicSettings(NamedTuple):
    """The names of the settings by which an internal topic is made, and its fixed ones."""

    partitions: str
    replication_factor: str
    segment_bytes: str
    min_insync_replicas: str
    compression: str
    configs: Mapping[str, str]


SETTINGS = {
    OFFSETS_TOPIC: TopicSettings(
        partitions="offsets.topic.num.partitions",
        replication_factor="offsets.topic.replication.factor",
        segment_bytes="offsets.topic.segment.bytes",
        min_insync_replicas="",
        compression="producer",
        configs={},
    ),
    TRANSACTIONS_TOPIC: TopicSettings(
        partitions="transaction.state.log.num.partitions",
        replication_factor="transaction.state.log.replication.factor",
        segment_bytes="transaction.state.log.segment.bytes",
        min_insync_replicas="transaction.state.log.min.isr",
        compression="uncompressed",
        configs={"unclean.leader.election.enable": "false"},
    ),
}


class _Waiting(NamedTuple):
    topic: str
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
        self._creating: set[str] = set()
        self.waiting: list[_Waiting] = []
        self.is_due = False
        """The metadata has changed: look again when the tick ends."""

    def wait(self, topic: str, look: Look, now_ms: int) -> None:
        """Call `look` whenever the metadata has changed, until it answers, or time is over."""
        self.waiting.append(_Waiting(topic, look, now_ms + WAIT_MS_MAX))
        self._alarms.at(now_ms + WAIT_MS_MAX, self.settle)
        if topic not in self._creating:
            self._create(topic, now_ms)

    def on_change(self) -> None:
        self.is_due = bool(self.waiting)

    def settle(self, now_ms: int) -> None:
        self.is_due = False
        waiting, self.waiting = self.waiting, []
        for each in waiting:
            if not each.look(now_ms, now_ms >= each.deadline_ms):
                self.waiting.append(each)

    # Creation

    def _create(self, topic: str, now_ms: int) -> None:
        """Again and again while somebody waits for it."""
        is_wanted = any(each.topic == topic for each in self.waiting)
        if not is_wanted or topic in self._image.topics:
            self._creating.discard(topic)
            return
        self._creating.add(topic)
        request = CreateTopicsRequest(topics=[self._creatable(topic)], timeout_ms=_CREATE_WITHIN_MS)
        self._channel.ask(
            request,
            _CREATE_VERSION,
            lambda answer, now_ms: self._on_answer(topic, answer, now_ms),
            now_ms=now_ms,
        )

    def _on_answer(self, topic: str, answer: Message | NoAnswer, now_ms: int) -> None:
        if isinstance(answer, CreateTopicsResponse):
            errors = {each.error_code for each in answer.topics}
            if errors <= {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}:
                self._creating.discard(topic)  # the image will show it
                return
        self._alarms.at(now_ms + RETRY_MS, lambda now_ms: self._create(topic, now_ms))

    def _creatable(self, topic: str) -> CreatableTopic:
        names = SETTINGS[topic]
        value = self._settings.integer
        replicas = self.replication_factor(topic)
        isr_min = 2 if replicas >= _REPLICAS_FOR_MINIMUM_OF_TWO else 1
        if names.min_insync_replicas in self._settings.texts:
            isr_min = value(names.min_insync_replicas)
        configs = {
            "cleanup.policy": "compact",
            "compression.type": names.compression,
            "segment.bytes": str(value(names.segment_bytes)),
            "min.insync.replicas": str(isr_min),
            **names.configs,
        }
        return CreatableTopic(
            name=topic,
            num_partitions=value(names.partitions),
            replication_factor=replicas,
            configs=[CreatableTopicConfig(name=name, value=configs[name]) for name in configs],
        )

    def replication_factor(self, topic: str) -> int:
        """As configured; by default 3, or one per broker in a smaller cluster.

        The size of the cluster is who was ever registered or is a voter, not who is alive: a
        topic made while a broker is down would have too few replicas for ever.
        """
        name = SETTINGS[topic].replication_factor
        factor = self._settings.integer(name)
        if name in self._settings.texts:
            return factor
        voters = len(self._settings.voters) if self._settings.is_controller else 0
        return max(1, min(factor, max(len(self._image.brokers), voters)))
