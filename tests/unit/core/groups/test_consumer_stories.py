"""KIP-848 groups through any history: no partition has two readers, and in the end each has one."""

from __future__ import annotations

from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from hypothesis.strategies import integers, sampled_from

from tests.unit.core.groups.given_consumers import GROUP, Client, ConsumersUnderTest, KnownTopics
from tidelog.core.groups.consumer_group import ConsumerGroupState
from tidelog.core.groups.consumer_records import PartitionKey

NAMES = ("a", "b", "c", "d")
TOPICS = ("t", "u", "v")
SUBSCRIPTIONS: tuple[list[str], ...] = (["t"], ["t", "u"], ["u", "v"], ["t", "u", "v"], [])


class SlowClient(Client):
    """Obeys in a step of its own: until then it reads what it had."""

    def obey(self) -> None:
        """Later. What it had and still should have is all that it may keep reading meanwhile."""

    def catch_up(self) -> None:
        super().obey()


class ConsumerStories(RuleBasedStateMachine):
    """Members come, obey, fall silent, crash and return; topics and coordinators come and go."""

    def __init__(self) -> None:
        super().__init__()
        self.world = ConsumersUnderTest(KnownTopics(t=3, u=2), session_timeout_ms=20_000)
        self.clients: dict[str, SlowClient] = {}
        self.epochs = (0, 0)

    @initialize(assignor=sampled_from((None, "range", "uniform")))
    def begin(self, assignor: str | None) -> None:
        self.assignor = assignor

    @rule(name=sampled_from(NAMES), topics=sampled_from(SUBSCRIPTIONS), static=sampled_from((0, 1)))
    def join(self, name: str, topics: list[str], static: int) -> None:
        if name not in self.clients:
            instance = f"i-{name}" if static else None
            regex = None if topics else "[tv]"
            self.clients[name] = SlowClient(
                self.world, f"{name}-{self.world.now_ms}", topics, regex, instance, self.assignor
            )
        self.clients[name].beat()

    @rule(name=sampled_from(NAMES))
    def beat(self, name: str) -> None:
        if name in self.clients:
            self.clients[name].beat()

    @rule(name=sampled_from(NAMES))
    def obey(self, name: str) -> None:
        if name in self.clients:
            self.clients[name].catch_up()

    @rule(name=sampled_from(NAMES), member_epoch=sampled_from((-1, -2)))
    def leave(self, name: str, member_epoch: int) -> None:
        if name in self.clients:
            client = self.clients.pop(name)
            client.leave(-1 if client.instance_id is None else member_epoch)

    @rule(name=sampled_from(NAMES))
    def crash(self, name: str) -> None:
        """Its process is gone, so it reads nothing."""
        self.clients.pop(name, None)

    @rule(duration_ms=sampled_from((1, 5_000, 12_000)))
    def wait(self, duration_ms: int) -> None:
        """No client is silent for a whole session without noticing: it stops reading."""
        self.world.pass_time(duration_ms)
        members = self.world.shard.consumer.get(GROUP)
        for client in self.clients.values():
            if members is None or client.member_id not in members.members:
                client.owned, client.to_own, client.member_epoch = set(), None, 0

    @rule(topic=sampled_from(TOPICS), count=integers(1, 4))
    def create_or_grow(self, topic: str, count: int) -> None:
        known = self.world.topics
        if known.topic_id(topic) is None:
            known.create(topic, count)
        elif known.partitions_count(topic) < count:
            known.grow(topic, count)

    @rule(topic=sampled_from(TOPICS))
    def delete(self, topic: str) -> None:
        if self.world.topics.topic_id(topic) is not None:
            self.world.topics.delete(topic)

    @rule()
    def fail_over(self) -> None:
        """Another coordinator replays the log; what is in it must be the same."""
        old = self.world.shard.consumer.get(GROUP)
        self.world = self.world.successor()
        new = self.world.shard.consumer.get(GROUP)
        assert (old is None) == (new is None)
        if old is not None and new is not None:
            for name in ("group_epoch", "assignment_epoch", "members", "target", "regexes"):
                assert getattr(old, name) == getattr(new, name), name
        for client in self.clients.values():
            client.world = self.world

    @invariant()
    def nobody_shares_a_partition(self) -> None:
        readers: dict[PartitionKey, str] = {}
        for name, client in self.clients.items():
            for partition in client.owned:
                assert partition not in readers, (partition, name, readers[partition])
                readers[partition] = name

    @invariant()
    def epochs_do_not_go_back(self) -> None:
        group = self.world.shard.consumer.get(GROUP)
        if group is not None:
            now = (group.group_epoch, group.assignment_epoch)
            assert all(new >= old for new, old in zip(now, self.epochs, strict=True))
            self.epochs = now

    def teardown(self) -> None:
        """Quiet: everybody sends heartbeats and obeys; the dead are forgotten."""
        for _ in range(60):
            for client in self.clients.values():
                client.beat()
                client.catch_up()
            self.world.pass_time(1_000)
        group = self.world.shard.consumer.get(GROUP)
        if group is None or not self.clients:
            return
        assert group.state is ConsumerGroupState.STABLE
        wanted = {name for member in group.members.values() for name in group.subscriptions(member)}
        read = {partition for client in self.clients.values() for partition in client.owned}
        assert read == self.world.topics.partitions(*wanted)
        self.nobody_shares_a_partition()


ConsumerStories.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
test_consumer_stories = ConsumerStories.TestCase
