"""A held replica: a fault that starves one copy of one partition and disturbs nothing else."""

from __future__ import annotations

from tests.unit.core.node.brokers import LAG_MS, TOPIC, Brokers
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition


def hold(cluster: Brokers, *, leader: int, replica: int) -> None:
    cluster.nodes[leader].held_replicas = frozenset({(replica, TopicPartition(TOPIC, 0))})


def test_a_held_replica_gets_nothing_leaves_the_set_and_returns_when_it_is_let_go() -> None:
    cluster = Brokers(1, 2, 3)
    hold(cluster, leader=1, replica=3)
    asked = cluster.produce(1, "one", timeout_ms=60_000)
    assert (cluster.end(2), cluster.end(3)) == (1, 0)
    assert not asked.is_answered

    cluster.pass_time(2 * LAG_MS)
    assert cluster.partition(1).isr == (1, 2)
    assert asked.code == ErrorCode.NONE
    assert cluster.end(3) == 0

    cluster.nodes[1].held_replicas = frozenset()
    cluster.pass_time(LAG_MS)
    assert cluster.partition(1).isr == (1, 2, 3)
    assert cluster.data(3) == cluster.data(1)


def test_a_hold_of_another_partition_disturbs_nobody() -> None:
    cluster = Brokers(1, 2)
    cluster.nodes[1].held_replicas = frozenset({(2, TopicPartition(TOPIC, 7))})
    asked = cluster.produce(1, "one")
    assert asked.code == ErrorCode.NONE
    assert cluster.end(2) == 1
