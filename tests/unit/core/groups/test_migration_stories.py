"""Groups of both protocols through any history: no partition has two readers, in the end each one.

Members of either kind come, go, crash and fall silent; the group changes its kind with them, and
coordinators die in the middle of it.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from hypothesis.strategies import sampled_from

from tests.unit.core.groups.given_consumers import GROUP, Client, KnownTopics
from tests.unit.core.groups.given_migration import BothKindsUnderTest, ClassicClient
from tidelog.core.groups.classic_group import ClassicState
from tidelog.core.groups.consumer_group import ConsumerGroupState
from tidelog.core.groups.consumer_records import PartitionKey

NEW, OLD = ("a", "b"), ("x", "y", "z")


class MigrationStories(RuleBasedStateMachine):
    """Classic members are eager: they read nothing from a join to the next sync."""

    def __init__(self) -> None:
        super().__init__()
        topics = KnownTopics(t=4)
        self.world = BothKindsUnderTest(topics, session_timeout_ms=20_000)
        self.new: dict[str, Client] = {}
        self.old: dict[str, ClassicClient] = {}

    @rule(name=sampled_from(NEW))
    def new_member(self, name: str) -> None:
        if name not in self.new:
            self.new[name] = Client(self.world, f"{name}-{self.world.now_ms}")
        self.new[name].beat()

    @rule(name=sampled_from(OLD), static=sampled_from((False, True)))
    def old_member(self, name: str, *, static: bool) -> None:
        if name not in self.old:
            instance = f"i-{name}" if static else None
            self.old[name] = ClassicClient(self.world, instance=instance)
        self.old[name].step()

    @rule(name=sampled_from(OLD))
    def old_members_step(self, name: str) -> None:
        for client in self.old.values():
            client.step()

    @rule(name=sampled_from(NEW))
    def new_member_leaves(self, name: str) -> None:
        if name in self.new:
            self.new.pop(name).leave()

    @rule(name=sampled_from(OLD))
    def old_member_leaves(self, name: str) -> None:
        if name in self.old:
            client = self.old.pop(name)
            if client.member_id:
                self.world.remove(client.member_id)

    @rule(name=sampled_from(NEW + OLD))
    def crash(self, name: str) -> None:
        """Its process is gone, so it reads nothing."""
        self.new.pop(name, None)
        self.old.pop(name, None)

    @rule(duration_ms=sampled_from((1, 3_000, 9_000)))
    def wait(self, duration_ms: int) -> None:
        """Nobody is silent for a whole session without noticing: it stops reading."""
        self.world.pass_time(duration_ms)
        classic, consumer = (
            self.world.shard.classic.get(GROUP),
            self.world.shard.consumer.get(GROUP),
        )
        members = {*(classic.members if classic else ()), *(consumer.members if consumer else ())}
        for new in self.new.values():
            if new.member_id not in members:
                new.owned, new.member_epoch = set(), 0
        for old in self.old.values():
            if old.member_id not in members:
                old.owned.clear()

    @rule()
    def failover(self) -> None:
        """Whoever waits is sent to the successor, and asks it again."""
        self.world = self.world.successor()
        for new in self.new.values():
            new.world = self.world
        for old in self.old.values():
            old.world = self.world
            if old.waits is not None and old.waits.waits:
                old.waits, old.rejoins = None, True

    @invariant()
    def no_partition_has_two_readers(self) -> None:
        readers: dict[PartitionKey, str] = {}
        owned = {name: client.owned for name, client in self.new.items()}
        owned |= {name: client.owned for name, client in self.old.items()}
        for name, partitions in owned.items():
            for partition in partitions:
                assert partition not in readers, (partition, name, readers[partition])
                readers[partition] = name

    def teardown(self) -> None:
        """When all is quiet every partition has a reader, if there is one."""
        for _ in range(80):
            for new in self.new.values():
                new.beat()
            for old in self.old.values():
                old.step()
            self.world.pass_time(1_000)
            self.no_partition_has_two_readers()
        if not self.new and not self.old:
            return
        read = {partition for new in self.new.values() for partition in new.owned}
        read |= {partition for old in self.old.values() for partition in old.owned}
        assert read == self.world.topics.partitions("t"), self.world.shard
        if self.new:
            assert self.world.group().state is ConsumerGroupState.STABLE
        else:
            assert self.world.classic().state is ClassicState.STABLE


TestMigrationStories = MigrationStories.TestCase
TestMigrationStories.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
