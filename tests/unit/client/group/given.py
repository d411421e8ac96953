"""Members on a fake cluster whose groups are kept by the broker's own machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from tests.unit.client.fake_cluster import PORT, FakeCluster, once
from tests.unit.client.fake_fetch import Parked
from tests.unit.client.virtual import Host
from tests.unit.core.groups.given_consumers import CALLER, KnownTopics
from tidelog.client.group.config import RebalanceProtocol, group_config
from tidelog.client.group.consumer_group_member import ConsumerGroupMember
from tidelog.client.group.member import GroupMember, MembershipState
from tidelog.client.group.offset_commits import CommitOutcome
from tidelog.client.group.offset_requests import OffsetAndMetadata
from tidelog.core.coordinator.outcome import Outcome, ReplyTo
from tidelog.core.groups.classic_join import Joiner
from tidelog.core.groups.group_settings import ConsumerGroupSettings, GroupSettings
from tidelog.core.groups.group_shard import GroupShard, OffsetSettings
from tidelog.core.groups.offset_operations import commit_offsets, fetch_offsets, refused_commit
from tidelog.core.groups.offset_records import OffsetKey
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.messages import MESSAGES
from tidelog.core.wire.messages import api_09_offset_fetch as offset_fetch
from tidelog.core.wire.messages.api_10_find_coordinator import Coordinator, FindCoordinatorResponse
from tidelog.core.wire.schema import Message

TOPIC = "orders"
GROUP = "readers"
APIS = (8, 9, 10, 11, 12, 13, 14, 68)


class GroupCoordinatorStub:
    """One group's coordinator on one broker, which may move. Others say that they are not it."""

    def __init__(self, cluster: FakeCluster, *, node: int = 2) -> None:
        self.cluster = cluster
        self.node = node
        self.topics = KnownTopics()
        self.shard = _group_shard(self.topics, seed=5)
        self.shard.on_loaded(cluster.clock.now_ms)
        self.records: list[Any] = []
        self._waiting: dict[int, Callable[[Message], None]] = {}
        self._count = 0
        self._armed_ms: int | None = None
        for key in APIS:
            versions = MESSAGES[key][0].versions
            cluster.api_versions[key] = (versions[0], versions[-1])
        cluster.rules.append(self.answer)

    def answer(self, broker_id: int, request: Any) -> Message | Parked | None:
        if request.api_key not in APIS:
            return None
        if request.api_key == 10:
            return self._coordinator(request)
        if broker_id != self.node:
            return _refused(request, ErrorCode.NOT_COORDINATOR)
        return _Waiting(self, request)

    def _coordinator(self, request: Any) -> Message:
        return FindCoordinatorResponse(
            coordinators=[
                Coordinator(key=key, node_id=self.node, host=f"b{self.node}", port=PORT)
                for key in request.coordinator_keys
            ]
        )

    def know_topic(self, partitions: int) -> None:
        """The topic of the cluster, by its id, as a KIP-848 coordinator assigns it."""
        self.topics.create(TOPIC, partitions)
        topic_id = self.topics.topic_id(TOPIC)
        assert topic_id is not None
        self.cluster.topics[TOPIC] = topic_id

    def move(self, node: int) -> None:
        """What was not answered never will be; what is in the log stays."""
        self.node = node
        self._waiting.clear()
        loaded = _group_shard(self.topics, seed=6)
        for offset, record in enumerate(self.records):
            loaded.apply(record, offset=offset, timestamp_ms=self.cluster.clock.now_ms)
        self.shard = loaded
        self.settle(loaded.on_loaded(self.cluster.clock.now_ms))

    def submit(self, request: Any, reply: Callable[[Message], None]) -> None:
        self._count += 1
        self._waiting[self._count] = reply
        self.settle(self._operate(request, ReplyTo(self._count), self.cluster.clock.now_ms))

    def _operate(self, request: Any, reply_to: ReplyTo, now_ms: int) -> Outcome:
        if request.api_key == 11:
            joiner = Joiner.from_request(request, version=9, client_id="test", client_host="/here")
            return self.shard.classic.join(joiner, reply_to, now_ms)
        if request.api_key == 8:
            return commit_offsets(self.shard, request, version=9, reply_to=reply_to, now_ms=now_ms)
        if request.api_key == 9:
            return self._fetch(request, reply_to)
        if request.api_key == 68:
            return self.shard.consumer_heartbeat(request, CALLER, reply_to, now_ms)
        operations = {
            12: self.shard.heartbeat,
            13: self.shard.classic.leave,
            14: self.shard.sync,
        }
        operation: Any = operations[request.api_key]
        result: Outcome = operation(request, reply_to, now_ms)
        return result

    def _fetch(self, request: Any, reply_to: ReplyTo) -> Outcome:
        (wanted,) = request.groups
        found = fetch_offsets(self.shard, wanted, require_stable=True, reply_to=reply_to)
        ((_, group),) = found.replies
        assert isinstance(group, offset_fetch.OffsetFetchResponseGroup)
        answer = offset_fetch.OffsetFetchResponse(groups=[group])
        return Outcome(replies=[(reply_to, answer)])

    def settle(self, outcome: Outcome) -> None:
        for record in outcome.records:
            now_ms = self.cluster.clock.now_ms
            self.shard.apply(record, offset=len(self.records), timestamp_ms=now_ms)
            self.records.append(record)
        for reply_to, answer in outcome.replies:
            reply = self._waiting.pop(reply_to, None)  # type: ignore[call-overload]
            if reply is not None:
                assert isinstance(answer, Message)
                reply(answer)
        self.shard.check()
        self._arm()

    def _arm(self) -> None:
        due_ms = self.shard.next_deadline_ms()
        if due_ms is not None and due_ms != self._armed_ms:
            self._armed_ms = due_ms
            self.cluster.clock.at(due_ms, self._tick)

    def _tick(self) -> None:
        self._armed_ms = None
        due_ms = self.shard.next_deadline_ms()
        if due_ms is not None and due_ms <= self.cluster.clock.now_ms:
            self.settle(self.shard.on_timer(self.cluster.clock.now_ms))
        else:
            self._arm()


def _group_shard(topics: KnownTopics, *, seed: int) -> GroupShard:
    """Empty, as a coordinator has it before it loads."""
    return GroupShard(
        settings=GroupSettings(initial_rebalance_delay_ms=0),
        consumer_settings=lambda _group_id: ConsumerGroupSettings(),
        offset_settings=OffsetSettings(),
        topics=topics,
        random=Random(seed),
        wall_ms=lambda now_ms: now_ms,
    )


class _Waiting(Parked):
    """An answer that comes when the group has decided."""

    def __init__(self, coordinator: GroupCoordinatorStub, request: Any) -> None:
        self._coordinator = coordinator
        self._call = request

    def wait(self, cluster: Any, broker: Any, reply: Callable[[Message], None]) -> None:
        self._coordinator.submit(self._call, reply)


class MemberProgram:
    """One member and what it was told; it commits `position` of what is revoked."""

    def __init__(self, cluster: FakeCluster, *, seed: int = 1, **settings: Any) -> None:
        given = {name.replace("_", "."): value for name, value in settings.items()}
        config = group_config({"bootstrap.servers": cluster.bootstrap, "group.id": GROUP, **given})
        self.clock = cluster.clock
        self.host = Host(cluster, config.consumer.client, seed=seed)
        self.told: list[tuple[str, tuple[int, ...]]] = []
        self.committed: dict[int, int | None] = {}
        self.outcomes: list[CommitOutcome] = []
        self.commit_at_revocation: int | None = None
        is_classic = config.protocol is RebalanceProtocol.CLASSIC
        kind = GroupMember if is_classic else ConsumerGroupMember
        self.member: GroupMember | ConsumerGroupMember = kind(
            self.host.client, config, [TOPIC], self
        )
        self.host.do(lambda now_ms: None)

    def on_assigned(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | None], now_ms: int
    ) -> None:
        self.told.append(("assigned", tuple(each.index for each in offsets)))
        self.committed |= {
            name.index: None if each is None else each.offset for name, each in offsets.items()
        }

    def on_revoked(self, partitions: Sequence[TopicPartition], now_ms: int) -> None:
        self.told.append(("revoked", tuple(each.index for each in partitions)))
        if self.commit_at_revocation is not None:
            offset = OffsetAndMetadata(self.commit_at_revocation)
            offsets = dict.fromkeys(partitions, offset)
            self.member.commit(offsets, self._on_outcome, now_ms=now_ms)

    def on_lost(self, partitions: Sequence[TopicPartition], now_ms: int) -> None:
        self.told.append(("lost", tuple(each.index for each in partitions)))

    def _on_outcome(self, outcome: CommitOutcome, now_ms: int) -> None:
        self.outcomes.append(outcome)

    def commit(self, index: int, offset: int) -> None:
        offsets = {TopicPartition(TOPIC, index): OffsetAndMetadata(offset)}
        self.host.do(lambda now_ms: self.member.commit(offsets, self._on_outcome, now_ms=now_ms))

    def leave(self) -> None:
        self.host.do(self.member.leave)

    def die(self) -> None:
        """Without a word: its connections end."""
        self.host.client.close()

    @property
    def owned(self) -> list[int]:
        return [each.index for each in self.member.owned]

    @property
    def is_stable(self) -> bool:
        return self.member.state == MembershipState.STABLE

    def until_stable(self) -> None:
        self.clock.run_until(lambda: self.is_stable, within_ms=120_000)


class Stage:
    """A cluster with a topic of four partitions, and members that come and go."""

    def __init__(self) -> None:
        self.cluster: FakeCluster
        self.coordinator: GroupCoordinatorStub
        self.cluster, self.coordinator = group_cluster()
        self.clock = self.cluster.clock
        self.members: list[MemberProgram] = []

    def join(self, **settings: Any) -> MemberProgram:
        made = MemberProgram(self.cluster, seed=len(self.members) + 1, **settings)
        self.members.append(made)
        return made

    def first(self, **settings: Any) -> MemberProgram:
        """Joined, with everything."""
        made = self.join(**settings)
        made.until_stable()
        assert made.owned == [0, 1, 2, 3]
        return made

    def rule(self, rule: Any) -> None:
        """Asked before the coordinator."""
        self.cluster.rules.insert(0, rule)

    def refuse_once(self, api_key: int, error: ErrorCode) -> None:
        self.rule(once(refuse(api_key, error)))

    def committed(self, index: int) -> int | None:
        found = self.coordinator.shard.offsets.get(OffsetKey(GROUP, TOPIC, index))
        return None if found is None else found.offset


def group_cluster(*, partitions: int = 4) -> tuple[FakeCluster, GroupCoordinatorStub]:
    cluster = FakeCluster()
    cluster.create(TOPIC, partitions=partitions)
    coordinator = GroupCoordinatorStub(cluster)
    coordinator.know_topic(partitions)
    return cluster, coordinator


def refuse(api_key: int, error: ErrorCode) -> Callable[[int, Any], Message | None]:
    """A rule: requests of this API are refused."""

    def rule(broker_id: int, request: Any) -> Message | None:
        return _refused(request, error) if request.api_key == api_key else None

    return rule


def _refused(request: Any, error: ErrorCode) -> Message:
    if request.api_key == 8:
        return refused_commit(request, error)
    if request.api_key == 9:
        group = offset_fetch.OffsetFetchResponseGroup(
            group_id=request.groups[0].group_id, error_code=error
        )
        return offset_fetch.OffsetFetchResponse(groups=[group])
    answer: Any = MESSAGES[request.api_key][1]()
    answer.error_code = error
    if request.api_key == 11:
        answer.protocol_name = None
    assert isinstance(answer, Message)
    return answer
