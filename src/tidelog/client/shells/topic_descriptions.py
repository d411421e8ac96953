"""Describes topics: who leads, who is in sync, how far every replica is, which settings differ.

Several questions, each asked once for all topics. What no broker can say is None: a broker that is
down does not keep the rest from being described.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tidelog.client.admin.admin import Failed
from tidelog.client.admin.descriptions import (
    MetadataDescription,
    describe_metadata,
    describe_partition_page,
    describe_topic_configs,
    high_watermarks,
    log_end_offsets,
)
from tidelog.client.admin.offsets import ListedOffset
from tidelog.client.admin.question import Question, TheBroker
from tidelog.client.admin.reassignments import OngoingReassignment, list_reassignments
from tidelog.client.admin.topics import PartitionDescription, TopicDescription
from tidelog.client.shells.blocking_clients import Admin, NotSupported
from tidelog.core.model.config import ConfigSource
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition

SILENT_BROKER_S = 5.0
"""How long a live broker is waited for when the others have answered already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedPartition:
    """One partition; offsets only if they were asked for."""

    state: PartitionDescription
    high_watermark: int | None = None
    log_end_offsets: dict[int, int | None] = field(default_factory=dict)
    move: OngoingReassignment | None = None
    """Which replicas come and go, while a reassignment is under way."""

    @property
    def is_under_replicated(self) -> bool:
        return len(self.state.isr) < len(self.state.replicas)

    @property
    def is_unavailable(self) -> bool:
        """It has no leader, or the leader is offline."""
        return self.state.leader_id is None or self.state.leader_id in self.state.offline


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedTopic:
    """One topic; `configs` are the settings of its own."""

    name: str
    topic_id: bytes
    is_internal: bool
    configs: dict[str, str | None]
    partitions: tuple[DescribedPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedTopics:
    """The topics that exist, by name; those that could not be described, and why; the racks."""

    topics: dict[str, DescribedTopic]
    refused: dict[str, ErrorCode]
    racks: dict[int, str | None]


def describe_by_any_broker(
    admin: Admin, names: Sequence[str], *, timeout_s: float
) -> MetadataDescription:
    """These topics, each as some broker knows it. One that is new may not be known to all brokers
    yet, so it is missing only if no broker knows it."""
    metadata = admin.ask(describe_metadata(names), timeout_s=timeout_s)
    missing = [
        name
        for name, topic in metadata.topics.items()
        if topic.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    ]
    if missing and len(metadata.brokers) > 1:
        questions = {each: describe_metadata(missing, broker_id=each) for each in metadata.brokers}
        broker_timeout_s = min(timeout_s, SILENT_BROKER_S)
        for answer in admin.ask_each(questions, timeout_s=broker_timeout_s).values():
            if not isinstance(answer, Failed):
                metadata.topics.update(
                    (name, topic)
                    for name, topic in answer.topics.items()
                    if topic.error == ErrorCode.NONE
                )
    return metadata


def describe_topics(
    admin: Admin, names: Sequence[str] | None = None, *, with_offsets: bool, timeout_s: float
) -> DescribedTopics:
    """These topics, or all of them."""
    if names is None:
        metadata = admin.ask(describe_metadata(), timeout_s=timeout_s)
    else:
        metadata = describe_by_any_broker(admin, names, timeout_s=timeout_s)
    found = {name: each for name, each in metadata.topics.items() if each.error == ErrorCode.NONE}
    partitions = _with_eligible_leaders(admin, found, timeout_s=timeout_s)
    configs = _configs(admin, found, metadata.brokers, timeout_s=timeout_s)
    described = {name: DescribedPartition(state=each) for name, each in partitions.items()}
    if with_offsets:
        described = _with_offsets(admin, partitions, metadata.brokers, timeout_s=timeout_s)
    for name, move in _moves(admin, timeout_s=timeout_s).items():
        if name in described:
            described[name] = replace(described[name], move=move)
    topics = {
        name: DescribedTopic(
            name=name,
            topic_id=topic.topic_id,
            is_internal=topic.is_internal,
            configs=configs.get(name, {}),
            partitions=tuple(described[TopicPartition(name, each)] for each in topic.partitions),
        )
        for name, topic in sorted(found.items())
    }
    refused = {name: each.error for name, each in metadata.topics.items() if name not in found}
    racks = {each.id: each.rack for each in metadata.brokers.values()}
    return DescribedTopics(topics=topics, refused=refused, racks=racks)


def _with_eligible_leaders(
    admin: Admin, topics: Mapping[str, TopicDescription], *, timeout_s: float
) -> dict[TopicPartition, PartitionDescription]:
    """Adds eligible leaders; older brokers do not list them, then they stay None."""
    partitions = {
        TopicPartition(name, each.partition): each
        for name, topic in topics.items()
        for each in topic.partitions.values()
    }
    start_at: TopicPartition | None = None
    while topics:
        try:
            page = admin.ask(
                describe_partition_page(list(topics), start_at=start_at), timeout_s=timeout_s
            )
        except NotSupported:
            break
        for name, description in page.partitions.items():
            if name in partitions:
                partitions[name] = description
        if page.next_at is None or page.next_at == start_at:
            break
        start_at = page.next_at
    return partitions


def _moves(admin: Admin, *, timeout_s: float) -> dict[TopicPartition, OngoingReassignment]:
    """What is on the move; older brokers do not say."""
    try:
        return admin.ask(list_reassignments(), timeout_s=timeout_s)
    except NotSupported:
        return {}


def _configs(
    admin: Admin, names: Iterable[str], brokers: Iterable[int], *, timeout_s: float
) -> dict[str, dict[str, str | None]]:
    """A broker that does not know a topic yet must not make it look as if it had no settings."""
    names = list(names)
    if not names:
        return {}
    configs = admin.ask(describe_topic_configs(names), timeout_s=timeout_s)
    missing = [name for name in names if name in configs and configs[name].error != ErrorCode.NONE]
    if missing:
        question = describe_topic_configs(missing)
        questions = {each: question.to(TheBroker(each)) for each in brokers}
        broker_timeout_s = min(timeout_s, SILENT_BROKER_S)
        for answer in admin.ask_each(questions, timeout_s=broker_timeout_s).values():
            for name, each in {} if isinstance(answer, Failed) else answer.items():
                configs[name] = each if each.error == ErrorCode.NONE else configs[name]
    return {
        name: {
            key: config.value
            for key, config in sorted(each.configs.items())
            if config.source == ConfigSource.TOPIC
        }
        for name, each in configs.items()
    }


def _with_offsets(
    admin: Admin,
    partitions: Mapping[TopicPartition, PartitionDescription],
    brokers: Iterable[int],
    *,
    timeout_s: float,
) -> dict[TopicPartition, DescribedPartition]:
    """Every live broker is asked for what it leads and for what it holds, all at once."""
    questions: dict[tuple[str, int], Question[dict[TopicPartition, ListedOffset]]] = {}
    for broker_id in brokers:
        led = [name for name, each in partitions.items() if each.leader_id == broker_id]
        held = [name for name, each in partitions.items() if broker_id in each.replicas]
        if led:
            questions["led", broker_id] = high_watermarks(led, broker_id=broker_id)
        if held:
            questions["held", broker_id] = log_end_offsets(held, broker_id=broker_id)
    answers = admin.ask_each(questions, timeout_s=min(timeout_s, SILENT_BROKER_S))
    described = {
        name: DescribedPartition(state=each, log_end_offsets=dict.fromkeys(each.replicas))
        for name, each in partitions.items()
    }
    for (what, broker_id), answer in answers.items():
        for name, each in {} if isinstance(answer, Failed) else answer.items():
            if what == "led":
                described[name] = replace(described[name], high_watermark=each.offset)
            else:
                described[name].log_end_offsets[broker_id] = each.offset
    return described
