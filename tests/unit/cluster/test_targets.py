"""Whom a fault is meant for: words become nodes, and nonsense a clear sentence."""

from __future__ import annotations

import pytest

from tidelog.cluster.errors import ClusterError, ClusterUsageError
from tidelog.cluster.targets import Target, parse_partition, resolve, resolve_all, resolve_host


class Scene:
    """Four brokers in two racks, a tiebreaker, and one topic."""

    node_ids = (1, 2, 3, 4, 5)
    racks = {"a": (1, 3), "b": (2, 4)}  # noqa: RUF012
    dead = frozenset({1})

    def leader(self, topic: str, partition: int) -> int | None:
        return {("orders-new", 0): 2, ("orders-new", 1): None}[topic, partition]

    def followers(self, topic: str, partition: int) -> tuple[int, ...]:
        return {("orders-new", 0): (1, 3), ("orders-new", 1): ()}[topic, partition]

    def controller(self) -> int | None:
        return 5

    def is_running(self, node_id: int) -> bool:
        return node_id not in self.dead


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (2, (2,)),
        ("2", (2,)),
        ("rack:a", (1, 3)),
        ("b", (2, 4)),
        ("leader:orders-new-0", (2,)),
        ("follower:orders-new-0", (3,)),
        ("followers:orders-new-0", (1, 3)),
        ("controller", (5,)),
        ("all", (1, 2, 3, 4, 5)),
    ],
)
def test_a_target_is_somebody(target: Target, expected: tuple[int, ...]) -> None:
    assert resolve(target, Scene()) == expected


@pytest.mark.parametrize(
    ("target", "kind", "complaint"),
    [
        (9, ClusterUsageError, "no node 9; the nodes are 1, 2, 3, 4, 5"),
        ("rack:c", ClusterUsageError, "no rack 'c'; the racks are a, b"),
        ("nobody", ClusterUsageError, "unknown target 'nobody'"),
        ("leader:orders", ClusterUsageError, "like orders-0"),
        ("leader:-0", ClusterUsageError, "like orders-0"),
        ("leader:orders-new-1", ClusterError, "has no leader now"),
        ("follower:orders-new-1", ClusterError, "has no follower"),
        ("clients", ClusterUsageError, "unknown target"),
        ("", ClusterUsageError, "unknown target"),
    ],
)
def test_nobody_is_told_so(target: Target, kind: type[ClusterError], complaint: str) -> None:
    with pytest.raises(kind, match=complaint):
        resolve(target, Scene())


def test_without_a_controller_that_is_said() -> None:
    class Headless(Scene):
        def controller(self) -> int | None:
            return None

    with pytest.raises(ClusterError, match="no active controller"):
        resolve("controller", Headless())


def test_several_targets_are_each_node_once_in_their_order() -> None:
    assert resolve_all((4, "rack:a", "leader:orders-new-0", 1), Scene()) == (4, 1, 3, 2)
    with pytest.raises(ClusterUsageError, match="no target given"):
        resolve_all((), Scene())


@pytest.mark.parametrize("host", ["clients", "client:shop", "*"])
def test_an_end_of_a_link_may_be_outside(host: str) -> None:
    assert resolve_host(host, Scene()) == (host,)


def test_an_end_of_a_link_may_be_a_target_but_no_nameless_client() -> None:
    assert resolve_host("rack:a", Scene()) == (1, 3)
    with pytest.raises(ClusterUsageError):
        resolve_host("client:", Scene())


def test_the_topic_is_everything_before_the_last_dash() -> None:
    name = parse_partition("a-b-c-12")
    assert (name.topic, name.partition, str(name)) == ("a-b-c", 12, "a-b-c-12")
