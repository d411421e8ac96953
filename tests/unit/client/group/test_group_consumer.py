"""A consumer in a group: begins where the group is, and commits what it gave."""

from __future__ import annotations

from typing import Any

from tests.unit.client.fake_cluster import FakeCluster
from tests.unit.client.group.given import GROUP, TOPIC, GroupCoordinatorStub, group_cluster
from tests.unit.client.virtual import Host
from tidelog.client.group.config import group_config
from tidelog.client.group.group_consumer import GroupConsumerMachine
from tidelog.client.group.member import MembershipState
from tidelog.core.groups.offset_records import OffsetKey


class GroupReader:
    """One of them, that polls only when a test says so."""

    def __init__(self, cluster: FakeCluster, *, seed: int = 1) -> None:
        config = group_config(
            {
                "bootstrap.servers": cluster.bootstrap,
                "group.id": GROUP,
                "auto.offset.reset": "earliest",
            }
        )
        self.clock = cluster.clock
        self.host = Host(cluster, config.consumer.client, seed=seed)
        self.machine = GroupConsumerMachine(self.host.client, config, [TOPIC])
        self.host.do(lambda now_ms: None)

    def poll(self, **more: Any) -> list[bytes | None]:
        """The next records, however long they take."""
        taken: list[Any] = []

        def has_some() -> bool:
            taken.extend(self.host.do(lambda now_ms: self.machine.poll(now_ms, **more)))
            return bool(taken)

        self.clock.run_until(has_some, within_ms=60_000)
        return [each.value for each in taken]

    def commit(self) -> None:
        self.host.do(self.machine.commit_positions)
        self.clock.run_until(lambda: self.machine.member.pending_commits == 0)

    def leave(self, *, commits: bool = True) -> None:
        self.host.do(lambda now_ms: self.machine.leave(now_ms, commits=commits))
        self.clock.run_until(lambda: self.machine.member.state == MembershipState.LEFT)


def given(*values: str) -> tuple[FakeCluster, GroupCoordinatorStub]:
    cluster, coordinator = group_cluster(partitions=1)
    cluster[f"{TOPIC}-0"].write(*values)
    return cluster, coordinator


def committed(coordinator: GroupCoordinatorStub) -> int | None:
    found = coordinator.shard.offsets.get(OffsetKey(GROUP, TOPIC, 0))
    return None if found is None else found.offset


def test_the_next_one_goes_on_where_the_first_was() -> None:
    cluster, coordinator = given("a", "b", "c")
    first = GroupReader(cluster)
    assert first.poll(records_max=2) == [b"a", b"b"]
    first.commit()
    assert committed(coordinator) == 2
    first.leave()

    assert GroupReader(cluster, seed=2).poll() == [b"c"]


def test_leaving_commits_what_was_given() -> None:
    cluster, coordinator = given("a", "b")
    reader = GroupReader(cluster)
    reader.poll(records_max=1)
    reader.leave()

    assert committed(coordinator) == 1


def test_who_has_not_finished_leaves_without_a_commit() -> None:
    cluster, coordinator = given("a", "b")
    reader = GroupReader(cluster)
    reader.poll(records_max=1)
    reader.leave(commits=False)

    assert committed(coordinator) is None
    assert GroupReader(cluster, seed=2).poll(records_max=1) == [b"a"]


def test_a_rebalance_commits_and_reads_on_without_repeats() -> None:
    cluster, coordinator = given("a", "b", "c")
    first = GroupReader(cluster)
    assert first.poll(records_max=1) == [b"a"]
    second = GroupReader(cluster, seed=2)
    first.clock.run_until(lambda: (first.machine.rebalances, second.machine.rebalances) == (2, 1))
    assert committed(coordinator) == 1
    reader = first if first.machine.assignment else second

    assert reader.poll() == [b"b", b"c"]


def test_nothing_is_committed_twice() -> None:
    cluster, coordinator = given("a")
    reader = GroupReader(cluster)
    reader.poll()
    reader.commit()
    before = len(coordinator.records)
    reader.commit()

    assert len(coordinator.records) == before
