"""Who is in a cluster, by a table: any one broker, and any one rack of several, may die."""

from __future__ import annotations

import pytest

from tidelog.cluster.errors import ClusterUsageError
from tidelog.cluster.layout import ClusterPlan, NodePlan, check_nodes, node_settings, plan_nodes


def voters(nodes: tuple[NodePlan, ...]) -> list[int]:
    return [node.id for node in nodes if node.is_controller]


@pytest.mark.parametrize(
    ("brokers", "racks", "expected"),
    [
        (1, (), [1]),
        (2, (), [1, 2, 3]),
        (3, (), [1, 2, 3]),
        (4, (), [1, 2, 3]),
        (5, (), [1, 2, 3, 4, 5]),
        (9, (), [1, 2, 3, 4, 5]),
        (3, ("a",), [1, 2, 3]),
        (2, ("a", "b"), [1, 2, 3]),
        (3, ("a", "b"), [1, 2, 4]),
        (4, ("a", "b"), [1, 2, 3, 4, 5]),
        (7, ("a", "b"), [1, 2, 3, 4, 8]),
        (3, ("a", "b", "c"), [1, 2, 3]),
        (6, ("a", "b", "c"), [1, 2, 3, 4, 5]),
    ],
)
def test_who_votes(brokers: int, racks: tuple[str, ...], expected: list[int]) -> None:
    nodes = plan_nodes(brokers=brokers, racks=racks)
    assert voters(nodes) == expected
    assert [node.id for node in nodes if node.is_broker] == list(range(1, brokers + 1))
    assert len(expected) % 2 == 1


@pytest.mark.parametrize("brokers", range(2, 13))
@pytest.mark.parametrize("racks", [(), ("a", "b"), ("a", "b", "c"), ("a", "b", "c", "d")])
def test_any_broker_and_any_rack_may_die(brokers: int, racks: tuple[str, ...]) -> None:
    racks = racks[:brokers]
    nodes = plan_nodes(brokers=brokers, racks=racks)
    deaths = [{node.id} for node in nodes]
    deaths += [{node.id for node in nodes if node.rack == rack} for rack in racks]
    for dead in deaths:
        left = [each for each in voters(nodes) if each not in dead]
        assert 2 * len(left) > len(voters(nodes)), dead


def test_brokers_are_dealt_to_racks_in_turn_and_a_tiebreaker_stands_in_none() -> None:
    nodes = plan_nodes(brokers=4, racks=("a", "b"))
    assert [node.rack for node in nodes] == ["a", "b", "a", "b", None]
    assert nodes[-1].roles == ("controller",)


def test_controllers_of_their_own_free_brokers_from_voting() -> None:
    nodes = plan_nodes(brokers=2, controllers=3)
    assert [node.roles for node in nodes] == [("broker",)] * 2 + [("controller",)] * 3


@pytest.mark.parametrize(
    ("wish", "complaint"),
    [
        ({"brokers": 0}, "from 1 to 100"),
        ({"brokers": 101}, "from 1 to 100"),
        ({"brokers": 3, "controllers": -1}, "controllers"),
        ({"brokers": 1, "racks": ("a", "b")}, "need at least as many brokers"),
        ({"brokers": 3, "racks": ("a", "a")}, "twice"),
        ({"brokers": 3, "racks": ("",)}, "no name for a rack"),
        ({"brokers": 3, "racks": ("1",)}, "no name for a rack"),
        ({"brokers": 3, "racks": ("a b",)}, "no name for a rack"),
        ({"brokers": 3, "racks": ("controller",)}, "no name for a rack"),
        ({"brokers": 3, "racks": "ab"}, "not the text"),
    ],
)
def test_what_cannot_be_is_refused(wish: dict[str, object], complaint: str) -> None:
    with pytest.raises(ClusterUsageError, match=complaint):
        plan_nodes(**wish)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("nodes", "complaint"),
    [
        ([NodePlan(id=1), NodePlan(id=1)], "different"),
        ([NodePlan(id=1, roles=("controller",))], "at least one broker"),
        ([NodePlan(id=1, roles=("broker",))], "at least one controller"),
    ],
)
def test_nodes_planned_by_hand_are_checked(nodes: list[NodePlan], complaint: str) -> None:
    with pytest.raises(ClusterUsageError, match=complaint):
        check_nodes(nodes)


def test_the_settings_of_a_node_come_from_the_plan_and_the_later_ones_count() -> None:
    nodes = (
        NodePlan(id=1, port=9092, rack="a", settings={"log.retention.hours": 2}),
        NodePlan(id=2, port=9093, roles=("broker",)),
        NodePlan(id=7, port=9094, roles=("controller",)),
    )
    plan = ClusterPlan(
        cluster_id="one",
        nodes=nodes,
        profile="documents",
        settings={"log.retention.hours": 1, "broker.session.timeout.ms": 7_000},
    )
    settings = node_settings(plan, nodes[0], data="data", secret_file="secret")
    assert settings["controller.quorum.voters"] == "1@127.0.0.1:9092,7@127.0.0.1:9094"
    assert settings["broker.rack"] == "a"
    assert settings["log.retention.hours"] == 2
    assert settings["broker.session.timeout.ms"] == 7_000
    assert settings["broker.heartbeat.interval.ms"] == "3000"
    assert settings["default.replication.factor"] == 2
    assert "broker.rack" not in node_settings(plan, nodes[1], data="data", secret_file="secret")
    assert settings["tidelog.cluster.secret.file"] == "secret"
    assert plan.bootstrap_servers == "127.0.0.1:9092,127.0.0.1:9093"
    assert plan.racks == {"a": (1,)}
