"""The group coordinator of a node: which groups are here, and the way of a request to its group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Generic, TypeVar, cast

from tidelog.core.coordinator.hosted_shard import CoordinatorPort
from tidelog.core.coordinator.key_hash import partition_of
from tidelog.core.coordinator.outcome import Outcome, ReplyTo
from tidelog.core.coordinator.runtime import CoordinatorRuntime
from tidelog.core.groups.group_settings import ConsumerGroupSettings, GroupSettings, MigrationPolicy
from tidelog.core.groups.group_shard import GroupShard, OffsetSettings
from tidelog.core.metadata.changes import Change, PartitionChanged, PartitionCreated, TopicDeleted
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.model.alarms import Alarms
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.group_config import (
    ASSIGNMENT_INTERVAL,
    GROUP_BOUNDS,
    HEARTBEAT_INTERVAL,
    SESSION_TIMEOUT,
    group_values,
)
from tidelog.core.model.limits import KIB
from tidelog.core.model.topic_name import OFFSETS_TOPIC
from tidelog.core.model.trace import Trace
from tidelog.core.node.connections.request import Request
from tidelog.core.node.coordinators.image_topics import ImageTopics
from tidelog.core.node.coordinators.partition_log import PartitionLog
from tidelog.core.node.replicas.hosted_partitions import HostedPartitions
from tidelog.core.node.settings import NodeSettings
from tidelog.core.storage.log import Log
from tidelog.core.wire.schema import Message

READ_BYTES_MAX = 256 * KIB
"""Of one turn while loading, whatever `offsets.load.buffer.size` allows."""
_MINUTE_MS = 60_000

Part = TypeVar("Part")
GroupOperation = Callable[[GroupShard, ReplyTo, int], Outcome]


@dataclass(frozen=True, slots=True)
class GroupCall(Generic[Part]):
    """One question to one group."""

    group_id: str
    operation: GroupOperation
    refuse: Callable[[ErrorCode], Part]


class _Caller:
    """Where an answer goes; one object for each question."""

    __slots__ = ("answer", "refuse")

    def __init__(self, answer: Callable[[Any], None], refuse: Callable[[ErrorCode], None]) -> None:
        self.answer = answer
        self.refuse = refuse


class _Parts(Generic[Part]):
    """The answers of several shards to one request, until all are there."""

    def __init__(
        self, count: int, combine: Callable[[list[Part]], Message], request: Request
    ) -> None:
        self._parts: list[Part | None] = [None] * count
        self._left = count
        self._combine = combine
        self._request = request
        if not count:
            request.answer(combine([]))

    def caller(self, at: int, refuse: Callable[[ErrorCode], Part]) -> _Caller:
        def take(part: object) -> None:
            self._parts[at] = cast("Part", part)
            self._left -= 1
            if not self._left:
                self._request.answer(self._combine(cast("list[Part]", self._parts)))

        return _Caller(take, lambda error: take(refuse(error)))


def _for_group(
    operation: Callable[[GroupShard, str, ReplyTo, int], Outcome], group_id: str
) -> GroupOperation:
    return lambda shard, reply_to, now_ms: operation(shard, group_id, reply_to, now_ms)


def _for_name(
    refuse: Callable[[str, ErrorCode], Part], group_id: str
) -> Callable[[ErrorCode], Part]:
    return lambda error: refuse(group_id, error)


class GroupCoordinator:
    """Inputs: submit and its plural forms, on_change. State: a runtime over one topic."""

    def __init__(
        self,
        *,
        settings: NodeSettings,
        image: ClusterImage,
        partitions: HostedPartitions,
        on_log_failed: Callable[[Log], None],
        alarms: Alarms,
        wall_ms: Callable[[int], int],
        trace: Trace,
        random: Random,
    ) -> None:
        self._node_settings = settings
        self._image = image
        self._partitions = partitions
        self._on_log_failed = on_log_failed
        self._wall_ms = wall_ms
        self._random = random
        self._topics = ImageTopics(image)
        value = settings.integer
        self.settings = GroupSettings(
            session_timeout_min_ms=value("group.min.session.timeout.ms"),
            session_timeout_max_ms=value("group.max.session.timeout.ms"),
            initial_rebalance_delay_ms=value("group.initial.rebalance.delay.ms"),
            size_max=value("group.max.size"),
        )
        self.runtime: CoordinatorRuntime[GroupShard] = CoordinatorRuntime(
            topic=OFFSETS_TOPIC,
            make_shard=self._make_shard,
            port=CoordinatorPort(
                answer=lambda reply_to, answer: cast("_Caller", reply_to).answer(answer),
                refuse=lambda reply_to, error: cast("_Caller", reply_to).refuse(error),
                alarms=alarms,
                wall_ms=wall_ms,
                trace=trace,
                commit_timeout_ms=value("offsets.commit.timeout.ms"),
                compression=value("offsets.topic.compression.codec"),
                read_bytes_max=min(READ_BYTES_MAX, value("offsets.load.buffer.size")),
            ),
        )

    def _consumer_settings(self, group_id: str) -> ConsumerGroupSettings:
        """As they are now: a group may have its own, and they may be changed while it lives."""
        value = self._node_settings.integer
        own = group_values(self._image.group_config(group_id))
        session_ms, heartbeat_ms, assignment_ms = (
            own[name] if name in own else value(GROUP_BOUNDS[name].synonym)
            for name in (SESSION_TIMEOUT, HEARTBEAT_INTERVAL, ASSIGNMENT_INTERVAL)
        )
        return ConsumerGroupSettings(
            session_timeout_ms=session_ms,
            heartbeat_interval_ms=heartbeat_ms,
            size_max=value("group.consumer.max.size"),
            assignment_interval_ms=assignment_ms,
            migration_policy=MigrationPolicy(
                self._node_settings.text("group.consumer.migration.policy").lower()
            ),
        )

    def _make_shard(self, index: int) -> GroupShard:
        value = self._node_settings.integer
        return GroupShard(
            settings=self.settings,
            consumer_settings=self._consumer_settings,
            topics=self._topics,
            offset_settings=OffsetSettings(
                metadata_characters_max=value("offset.metadata.max.bytes"),
                retention_ms=value("offsets.retention.minutes") * _MINUTE_MS,
                retention_check_interval_ms=value("offsets.retention.check.interval.ms"),
            ),
            random=self._random,
            wall_ms=self._wall_ms,
        )

    # Requests

    def partition_of(self, group_id: str) -> int:
        """By the topic's number of partitions, or what it will have."""
        topic = self._image.topics.get(OFFSETS_TOPIC)
        if topic is None:
            return partition_of(
                group_id, self._node_settings.integer("offsets.topic.num.partitions")
            )
        return partition_of(group_id, len(topic.partitions))

    def submit(
        self,
        request: Request,
        group_id: str,
        operation: GroupOperation,
        *,
        refuse: Callable[[ErrorCode], Message],
        now_ms: int,
    ) -> None:
        """Let the group's shard decide; its answer, or the refusal, goes to the client."""
        caller = _Caller(request.answer, lambda error: request.answer(refuse(error)))
        self.runtime.submit(self.partition_of(group_id), operation, ReplyTo(caller), now_ms)

    def submit_many(
        self,
        request: Request,
        group_ids: Sequence[str],
        operation: Callable[[GroupShard, str, ReplyTo, int], Outcome],
        *,
        refuse: Callable[[str, ErrorCode], Part],
        combine: Callable[[list[Part]], Message],
        now_ms: int,
    ) -> None:
        """Each group's shard decides for itself; the client gets one answer, in their order."""
        calls = [
            GroupCall(group_id, _for_group(operation, group_id), _for_name(refuse, group_id))
            for group_id in group_ids
        ]
        self.submit_calls(request, calls, combine=combine, now_ms=now_ms)

    def submit_calls(
        self,
        request: Request,
        calls: Sequence[GroupCall[Part]],
        *,
        combine: Callable[[list[Part]], Message],
        now_ms: int,
    ) -> None:
        """The same with an operation for each; a group may be there twice."""
        parts = _Parts(len(calls), combine, request)
        for at, call in enumerate(calls):
            self.runtime.submit(
                self.partition_of(call.group_id),
                call.operation,
                ReplyTo(parts.caller(at, call.refuse)),
                now_ms,
            )

    def submit_everywhere(
        self,
        request: Request,
        operation: GroupOperation,
        *,
        refuse: Callable[[ErrorCode], Part],
        combine: Callable[[list[Part]], Message],
        now_ms: int,
    ) -> None:
        """The same for every partition that is coordinated here."""
        indexes = sorted(self.runtime.hosted)
        parts = _Parts(len(indexes), combine, request)
        for at, index in enumerate(indexes):
            self.runtime.submit(index, operation, ReplyTo(parts.caller(at, refuse)), now_ms)

    # Leadership

    def on_change(self, change: Change, now_ms: int) -> None:
        """One committed record, which the partitions have followed already."""
        self._topics.on_change(change)
        if isinstance(change, PartitionCreated | PartitionChanged):
            if change.topic == OFFSETS_TOPIC:
                self._consider(change.index, now_ms)
        elif isinstance(change, TopicDeleted):
            if change.topic == OFFSETS_TOPIC:
                for index in list(self.runtime.hosted):
                    self.runtime.resign(index, "the topic is deleted")
            else:
                topic, topic_id = change.topic, change.topic_id
                self.runtime.perform_everywhere(
                    lambda shard, _now_ms: shard.on_topic_deleted(topic, topic_id), now_ms
                )

    def _consider(self, index: int, now_ms: int) -> None:
        partition = self._partitions.find(OFFSETS_TOPIC, index)
        if partition is None or partition.leadership is None or partition.log.failed is not None:
            self.runtime.resign(index, "this node does not lead it")
            return
        log = PartitionLog(
            partition, touch=self._partitions.touch, on_log_failed=self._on_log_failed
        )
        self.runtime.lead(index, log, leader_epoch=partition.leader_epoch, now_ms=now_ms)

    def check(self) -> None:
        self.runtime.check()
