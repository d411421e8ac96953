"""The coordinator of one internal topic on a node: the way of a request to its partition's shard.

Groups and transactions have one each. A key (a group, a transactional id) belongs to a partition of
the topic by its hash, and the partition's leader is its coordinator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from tidelog.core.coordinator.hosted_shard import CoordinatorPort, Operation, Shard
from tidelog.core.coordinator.key_hash import partition_of
from tidelog.core.coordinator.outcome import Outcome, ReplyTo
from tidelog.core.coordinator.runtime import CoordinatorRuntime
from tidelog.core.metadata.changes import Change, PartitionChanged, PartitionCreated, TopicDeleted
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.model.alarms import Alarms
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.limits import KIB
from tidelog.core.model.trace import Trace
from tidelog.core.node.connections.request import Request
from tidelog.core.node.coordinators.partition_log import PartitionLog
from tidelog.core.node.replicas.hosted_partitions import HostedPartitions
from tidelog.core.node.settings import NodeSettings
from tidelog.core.storage.log import Log
from tidelog.core.wire.schema import Message

READ_BYTES_MAX = 256 * KIB
"""Of one turn while loading, whatever the setting allows."""

Part = TypeVar("Part")


@dataclass(frozen=True, slots=True)
class CoordinatorCall(Generic[Shard, Part]):
    """One question about one key."""

    key: str
    operation: Operation[Shard]
    refuse: Callable[[ErrorCode], Part]


class Caller:
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

    def caller(self, at: int, refuse: Callable[[ErrorCode], Part]) -> Caller:
        def take(part: object) -> None:
            self._parts[at] = cast("Part", part)
            self._left -= 1
            if not self._left:
                self._request.answer(self._combine(cast("list[Part]", self._parts)))

        return Caller(take, lambda error: take(refuse(error)))


def _for_key(
    operation: Callable[[Shard, str, ReplyTo, int], Outcome], key: str
) -> Operation[Shard]:
    return lambda shard, reply_to, now_ms: operation(shard, key, reply_to, now_ms)


def _refusal_of(refuse: Callable[[str, ErrorCode], Part], key: str) -> Callable[[ErrorCode], Part]:
    return lambda error: refuse(key, error)


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorParts:
    """What the coordinators of a node use of it."""

    settings: NodeSettings
    image: ClusterImage
    partitions: HostedPartitions
    on_log_failed: Callable[[Log], None]
    alarms: Alarms
    wall_ms: Callable[[int], int]
    trace: Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalTopic:
    """A topic with a coordinator, and the names of its settings."""

    name: str
    partitions_setting: str
    load_bytes_setting: str
    commit_timeout_ms: int
    compression: int = 0


class TopicCoordinator(Generic[Shard]):
    """Inputs: submit and its plural forms, on_change. State: a runtime over one topic."""

    def __init__(
        self,
        parts: CoordinatorParts,
        topic: InternalTopic,
        make_shard: Callable[[int], Shard],
        on_committed: Callable[[int, int, object], None] | None = None,
    ) -> None:
        self._parts = parts
        self._topic = topic
        self.runtime: CoordinatorRuntime[Shard] = CoordinatorRuntime(
            topic=topic.name,
            make_shard=make_shard,
            on_committed=on_committed,
            port=CoordinatorPort(
                answer=lambda reply_to, answer: cast("Caller", reply_to).answer(answer),
                refuse=lambda reply_to, error: cast("Caller", reply_to).refuse(error),
                alarms=parts.alarms,
                wall_ms=parts.wall_ms,
                trace=parts.trace,
                commit_timeout_ms=topic.commit_timeout_ms,
                compression=topic.compression,
                read_bytes_max=min(
                    READ_BYTES_MAX, parts.settings.integer(topic.load_bytes_setting)
                ),
            ),
        )

    # Requests

    def partition_of(self, key: str) -> int:
        """By the topic's number of partitions, or what it will have."""
        topic = self._parts.image.topics.get(self._topic.name)
        if topic is None:
            return partition_of(key, self._parts.settings.integer(self._topic.partitions_setting))
        return partition_of(key, len(topic.partitions))

    def ask(self, key: str, operation: Operation[Shard], caller: Caller, now_ms: int) -> None:
        """Let the key's shard decide; the caller hears its answer, or a refusal."""
        self.runtime.submit(self.partition_of(key), operation, ReplyTo(caller), now_ms)

    def submit(
        self,
        request: Request,
        key: str,
        operation: Operation[Shard],
        *,
        refuse: Callable[[ErrorCode], Message],
        now_ms: int,
    ) -> None:
        """Let the key's shard decide; its answer, or the refusal, goes to the client."""
        caller = Caller(request.answer, lambda error: request.answer(refuse(error)))
        self.ask(key, operation, caller, now_ms)

    def submit_many(
        self,
        request: Request,
        keys: Sequence[str],
        operation: Callable[[Shard, str, ReplyTo, int], Outcome],
        *,
        refuse: Callable[[str, ErrorCode], Part],
        combine: Callable[[list[Part]], Message],
        now_ms: int,
    ) -> None:
        """Each key's shard decides for itself; the client gets one answer, in their order."""
        calls = [
            CoordinatorCall(key, _for_key(operation, key), _refusal_of(refuse, key)) for key in keys
        ]
        self.submit_calls(request, calls, combine=combine, now_ms=now_ms)

    def submit_calls(
        self,
        request: Request,
        calls: Sequence[CoordinatorCall[Shard, Part]],
        *,
        combine: Callable[[list[Part]], Message],
        now_ms: int,
    ) -> None:
        """The same with an operation for each; a key may be there twice."""
        parts = _Parts(len(calls), combine, request)
        for at, call in enumerate(calls):
            self.ask(call.key, call.operation, parts.caller(at, call.refuse), now_ms)

    def submit_everywhere(
        self,
        request: Request,
        operation: Operation[Shard],
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
        if isinstance(change, PartitionCreated | PartitionChanged):
            if change.topic == self._topic.name:
                self._consider(change.index, now_ms)
        elif isinstance(change, TopicDeleted) and change.topic == self._topic.name:
            for index in list(self.runtime.hosted):
                self.runtime.resign(index, "the topic is deleted")

    def _consider(self, index: int, now_ms: int) -> None:
        partitions = self._parts.partitions
        partition = partitions.find(self._topic.name, index)
        if partition is None or partition.leadership is None or partition.log.failed is not None:
            self.runtime.resign(index, "this node does not lead it")
            return
        log = PartitionLog(
            partition, touch=partitions.touch, on_log_failed=self._parts.on_log_failed
        )
        self.runtime.lead(index, log, leader_epoch=partition.leader_epoch, now_ms=now_ms)

    def check(self) -> None:
        self.runtime.check()
