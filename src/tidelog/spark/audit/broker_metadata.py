"""What brokers tell of a topic before it is read: its fences, its replicas and its rules.

An audit reads up to the high watermark. Where the leader has written more it waits a moment, so
that what was acknowledged by the leader alone is judged as committed or as lost, not as underway.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tidelog.client.admin.admin import Failed
from tidelog.client.admin.descriptions import describe_topic_configs
from tidelog.client.admin.offsets import (
    ListedOffset,
    high_watermark,
    last_stable_offset,
    list_offset,
    log_end_offset,
)
from tidelog.client.admin.question import Question
from tidelog.client.admin.topics import PartitionDescription, TopicDescription
from tidelog.client.shells.blocking_clients import Admin, RequestFailed
from tidelog.client.shells.topic_descriptions import describe_by_any_broker
from tidelog.core.formats.properties import topic_id_text
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.sentinels import EARLIEST_TIMESTAMP
from tidelog.spark.audit.audited_topic import AuditedPartition, AuditedTopic
from tidelog.spark.audit.errors import AuditRefused

SETTLE_S = 10.0
"""Maximum time that followers get to copy what the leader has."""
_PAUSE_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerTopic:
    """The topic as brokers tell of it; readers of commits stop at the last stable offset."""

    topic: AuditedTopic
    last_stable_offsets: dict[int, int]
    in_sync: dict[int, tuple[int, ...]]


def describe_topic(
    settings: Mapping[str, str], topic: str, *, timeout_s: float, settle_s: float = SETTLE_S
) -> BrokerTopic:
    """AuditRefused if nobody answers, if there is no such topic, or a partition has no leader."""
    try:
        with Admin(settings) as admin:
            return _ask(admin, topic, timeout_s, settle_s)
    except RequestFailed as error:
        raise AuditRefused(f"topic {topic}: {error}") from None


def _ask(admin: Admin, topic: str, timeout_s: float, settle_s: float) -> BrokerTopic:
    described = describe_by_any_broker(admin, [topic], timeout_s=timeout_s).topics[topic]
    _check(described, topic)
    partitions = {
        TopicPartition(topic, each.partition): each for each in described.partitions.values()
    }
    starts = _offsets(
        admin,
        {name: list_offset(name, EARLIEST_TIMESTAMP) for name in partitions},
        timeout_s=timeout_s,
    )
    log_ends = _offsets(
        admin,
        {
            name: log_end_offset(name, broker_id=each.leader_id)
            for name, each in partitions.items()
            if each.leader_id is not None
        },
        timeout_s=timeout_s,
    )
    ends = _settled(admin, log_ends, timeout_s=timeout_s, settle_s=settle_s)
    stable = _offsets(
        admin, {name: last_stable_offset(name) for name in partitions}, timeout_s=timeout_s
    )
    facts = {
        name.index: AuditedPartition(
            partition=name.index,
            log_start_offset=starts[name],
            end_offset=ends[name],
            log_end_offset=max(log_ends[name], ends[name]),
            high_watermark=ends[name],
            read_from=f"broker {each.leader_id}, its leader in leader epoch {each.leader_epoch}",
            replicas=tuple(sorted(each.replicas)),
        )
        for name, each in partitions.items()
    }
    audited = AuditedTopic(
        topic=topic,
        topic_id=_text_of(described.topic_id),
        is_compacted=_is_compacted(admin, topic, timeout_s),
        partitions=facts,
        notes=tuple(_notes(facts.values())),
    )
    return BrokerTopic(
        topic=audited,
        last_stable_offsets={name.index: min(stable[name], ends[name]) for name in partitions},
        in_sync={name.index: tuple(each.isr) for name, each in partitions.items()},
    )


def _check(described: TopicDescription, topic: str) -> None:
    if described.error != ErrorCode.NONE:
        raise AuditRefused(f"{described.error.name}: there is no topic {topic!r}")
    leaderless = [each.partition for each in described.partitions.values() if not _is_led(each)]
    if leaderless:
        names = ", ".join(f"{topic}-{index}" for index in leaderless)
        raise AuditRefused(f"nobody leads {names}: it cannot be read now; see --segments")


def _is_compacted(admin: Admin, topic: str, timeout_s: float) -> bool:
    configs = admin.ask(describe_topic_configs([topic]), timeout_s=timeout_s)[topic].configs
    policy = configs.get("cleanup.policy")
    return policy is not None and "compact" in (policy.value or "")


def _text_of(topic_id: bytes) -> str | None:
    """As journals have it; brokers before topic ids tell zeros."""
    return topic_id_text(topic_id) if any(topic_id) else None


def _is_led(partition: PartitionDescription) -> bool:
    return partition.leader_id is not None and partition.leader_id not in partition.offline


def _settled(
    admin: Admin, log_ends: dict[TopicPartition, int], *, timeout_s: float, settle_s: float
) -> dict[TopicPartition, int]:
    """The high watermarks, once they have reached what the leaders had, or after a while."""
    deadline_s = time.monotonic() + settle_s
    while True:
        ends = _offsets(
            admin, {name: high_watermark(name) for name in log_ends}, timeout_s=timeout_s
        )
        is_settled = all(ends[name] >= log_end for name, log_end in log_ends.items())
        if is_settled or time.monotonic() >= deadline_s:
            return ends
        time.sleep(_PAUSE_S)


def _offsets(
    admin: Admin, questions: dict[TopicPartition, Question[ListedOffset]], *, timeout_s: float
) -> dict[TopicPartition, int]:
    found = {}
    for name, answer in admin.ask_each(questions, timeout_s=timeout_s).items():
        if isinstance(answer, Failed):
            raise AuditRefused(f"{name}: {answer.reason}")
        if answer.error != ErrorCode.NONE or answer.offset is None:
            raise AuditRefused(f"{name}: {answer.error.name} instead of an offset")
        found[name] = answer.offset
    return found


def _notes(partitions: Iterable[AuditedPartition]) -> list[str]:
    return [
        f"partition {each.partition}: its leader has {each.log_end_offset - each.end_offset} "
        f"records from {each.end_offset} on that are not committed, so nobody may read them yet"
        for each in partitions
        if each.log_end_offset > each.end_offset
    ]
