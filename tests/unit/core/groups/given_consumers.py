"""A coordinator partition of KIP-848 groups with a clock and topics, and members that are clients.

Records are applied at once, as the runtime does, and kept, so that a successor can replay them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tidelog.core.coordinator.outcome import Outcome, ReplyTo
from tidelog.core.coordinator.record import CoordinatorRecord
from tidelog.core.groups.consumer_group import ConsumerGroup
from tidelog.core.groups.consumer_records import PartitionKey, by_topic
from tidelog.core.groups.group_settings import ConsumerGroupSettings, GroupSettings
from tidelog.core.groups.group_shard import GroupShard, OffsetSettings
from tidelog.core.groups.member_call import HeartbeatCaller
from tidelog.core.model.ids import TopicId
from tidelog.core.wire.messages.api_68_consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatTopicPartitions,
)

GROUP = "g"
WALL_START_MS = 1_700_000_000_000
CALLER = HeartbeatCaller(client_id="client", client_host="/127.0.0.1")
REBALANCE_MS = 60_000


def wall_ms(now_ms: int) -> int:
    return WALL_START_MS + now_ms


class KnownTopics:
    """Topics with their numbers of partitions; each creation has another id."""

    def __init__(self, **counts: int) -> None:
        self.version = 0
        self.created_version = 0
        self._topics: dict[str, tuple[TopicId, int]] = {}
        for name, count in counts.items():
            self.create(name, count)

    def create(self, name: str, count: int) -> None:
        self.version += 1
        self.created_version += 1
        self._topics[name] = (TopicId(self.created_version.to_bytes(16, "big")), count)

    def grow(self, name: str, count: int) -> None:
        self.version += 1
        self._topics[name] = (self._topics[name][0], count)

    def delete(self, name: str) -> None:
        self.version += 1
        del self._topics[name]

    def names(self) -> Iterable[str]:
        return self._topics

    def topic_id(self, name: str) -> TopicId | None:
        return self._topics[name][0] if name in self._topics else None

    def partitions_count(self, name: str) -> int:
        return self._topics[name][1]

    def name(self, topic_id: TopicId) -> str | None:
        return next((name for name, it in self._topics.items() if it[0] == topic_id), None)

    def partitions(self, *names: str) -> set[PartitionKey]:
        """All of these topics that exist."""
        return {
            (self._topics[name][0], index)
            for name in names
            if name in self._topics
            for index in range(self._topics[name][1])
        }


class ConsumersUnderTest:
    """Every event ends with `check`; every record is applied and kept."""

    def __init__(
        self,
        topics: KnownTopics | None = None,
        log: list[CoordinatorRecord] | None = None,
        *,
        now_ms: int = 0,
        seed: int = 7,
        **settings: Any,
    ) -> None:
        self.topics = topics or KnownTopics(t=4)
        self.given: dict[str, Any] = {"assignment_interval_ms": 0, **settings}
        self.shard = GroupShard(
            settings=GroupSettings(),
            consumer_settings=lambda _group_id: ConsumerGroupSettings(**self.given),
            offset_settings=OffsetSettings(),
            topics=self.topics,
            random=Random(seed),
            wall_ms=wall_ms,
        )
        self.now_ms = now_ms
        self.log: list[CoordinatorRecord] = []
        self.apply(log or [])
        self.take(self.shard.on_loaded(now_ms))

    def apply(self, records: Iterable[CoordinatorRecord]) -> None:
        for record in records:
            self.shard.apply(record, offset=len(self.log), timestamp_ms=wall_ms(self.now_ms))
            self.log.append(record)

    def take(self, outcome: Outcome) -> list[Any]:
        """The answers; all of them are for the one who called."""
        self.apply(outcome.records)
        self.shard.check()
        return [answer for _, answer in outcome.replies]

    def group(self, group_id: str = GROUP) -> ConsumerGroup:
        group = self.shard.consumer.get(group_id)
        assert group is not None
        return group

    def beat(
        self, member_id: str = "a", member_epoch: int = 0, **fields: Any
    ) -> ConsumerGroupHeartbeatResponse:
        """A raw heartbeat; a join says all that it must unless fields say otherwise."""
        given: dict[str, Any] = {
            "group_id": GROUP,
            "member_id": member_id,
            "member_epoch": member_epoch,
        }
        if member_epoch == 0:
            given |= {
                "rebalance_timeout_ms": REBALANCE_MS,
                "subscribed_topic_names": ["t"],
                "topic_partitions": [],
            }
        request = ConsumerGroupHeartbeatRequest(**{**given, **fields})
        outcome = self.shard.consumer_heartbeat(request, CALLER, ReplyTo("r"), self.now_ms)
        (answer,) = self.take(outcome)
        assert isinstance(answer, ConsumerGroupHeartbeatResponse)
        return answer

    def pass_time(self, duration_ms: int) -> None:
        """With everything that becomes due on the way."""
        end_ms = self.now_ms + duration_ms
        while (due_ms := self.shard.next_deadline_ms()) is not None and due_ms <= end_ms:
            self.now_ms = max(self.now_ms, due_ms)
            self.take(self.shard.on_timer(self.now_ms))
        self.now_ms = end_ms

    def successor(self) -> ConsumersUnderTest:
        """Another coordinator that begins with the same log."""
        return ConsumersUnderTest(self.topics, self.log, now_ms=self.now_ms, **self.given)


def as_topics(
    partitions: Iterable[PartitionKey],
) -> list[ConsumerGroupHeartbeatTopicPartitions]:
    return [
        ConsumerGroupHeartbeatTopicPartitions(topic_id=topic_id, partitions=indexes)
        for topic_id, indexes in by_topic(partitions).items()
    ]


@dataclass
class Client:
    """A member that does what it is told: it gives back first, and says so when it has."""

    world: ConsumersUnderTest
    member_id: str
    topics: list[str] = field(default_factory=lambda: ["t"])
    regex: str | None = None
    instance_id: str | None = None
    assignor: str | None = None
    member_epoch: int = 0
    owned: set[PartitionKey] = field(default_factory=set)
    to_own: set[PartitionKey] | None = None

    def beat(self) -> int:
        """One heartbeat with all that the client knows; the error code."""
        fields: dict[str, Any] = {"topic_partitions": as_topics(self.owned)}
        if self.member_epoch == 0:
            self.owned.clear()
            fields = {
                "topic_partitions": [],
                "subscribed_topic_names": self.topics,
                "server_assignor": self.assignor,
            }
            if self.regex is not None:
                fields["subscribed_topic_regex"] = self.regex
        answer = self.world.beat(
            self.member_id, self.member_epoch, instance_id=self.instance_id, **fields
        )
        if answer.error_code:
            self.owned.clear()
            self.member_epoch, self.to_own = 0, None
        else:
            assert answer.member_epoch >= self.member_epoch, "an epoch went back"
            self.member_epoch = answer.member_epoch
            if answer.assignment is not None:
                self.to_own = {
                    (TopicId(bytes(topic.topic_id)), index)
                    for topic in answer.assignment.topic_partitions
                    for index in topic.partitions
                }
                self.obey()
        return answer.error_code

    def obey(self) -> None:
        """Give back, and take what is new."""
        if self.to_own is not None:
            self.owned = set(self.to_own)
            self.to_own = None

    def leave(self, member_epoch: int = -1) -> ConsumerGroupHeartbeatResponse:
        self.member_epoch, self.owned = 0, set()
        return self.world.beat(self.member_id, member_epoch, instance_id=self.instance_id)


def settle(*clients: Client, rounds: int = 10) -> None:
    """Everybody sends heartbeats until nothing should change any more."""
    for _ in range(rounds):
        for client in clients:
            client.beat()
            client.world.pass_time(1_000)
