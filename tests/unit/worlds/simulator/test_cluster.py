"""A simulated cluster gives every node its place, its voters and its faults by number."""

from __future__ import annotations

from tidelog.worlds.simulator.cluster import SimCluster, SimNodeLayout
from tidelog.worlds.simulator.network import Network
from tidelog.worlds.simulator.network_events import LinkCut, LinkHealed
from tidelog.worlds.simulator.world import SimWorld

RACKS = (
    SimNodeLayout(1, rack="a"),
    SimNodeLayout(2, rack="b"),
    SimNodeLayout(3, roles=("controller",)),
    SimNodeLayout(4, rack="a", roles=("broker",)),
)


def cluster_of(*nodes: SimNodeLayout, **settings: str) -> SimCluster:
    world = SimWorld(seed=1)
    return SimCluster(
        world,
        Network(world),
        nodes=nodes,
        settings={name.replace("_", "."): text for name, text in settings.items()},
        node_settings={2: {"message.max.bytes": "2000"}},
    )


def test_voters_are_the_nodes_with_the_controller_role() -> None:
    cluster = cluster_of(*RACKS)
    texts = [cluster.texts(node_id) for node_id in cluster.node_ids]
    voters = "1@node-1:9092,2@node-2:9092,3@node-3:9092"
    assert {each["controller.quorum.voters"] for each in texts} == {voters}
    assert [each["process.roles"] for each in texts] == [
        *("broker,controller", "broker,controller", "controller", "broker")
    ]
    assert [each.get("broker.rack") for each in texts] == ["a", "b", None, "a"]
    assert cluster.bootstrap_servers == "node-1:9092,node-2:9092,node-4:9092"


def test_a_nodes_own_settings_stand_above_those_of_all() -> None:
    cluster = cluster_of(*RACKS, message_max_bytes="1000")
    assert cluster.texts(1)["message.max.bytes"] == "1000"
    assert cluster.texts(2)["message.max.bytes"] == "2000"
    cluster.configure(1, {"message.max.bytes": "3000"})
    assert cluster.texts(1)["message.max.bytes"] == "3000"


def test_an_isolated_node_is_cut_off_both_ways_and_from_the_hosts_one_names() -> None:
    cluster = cluster_of(*RACKS)
    cluster.isolate(3, also_from=["client-1"])
    cuts = [entry.event for entry in cluster.world.trace.entries]
    others = ("node-1", "node-2", "node-4", "client-1")
    assert set(cuts) == {LinkCut("node-3", other) for other in others} | {
        LinkCut(other, "node-3") for other in others
    }

    cluster.heal(3, 1)
    healed = [entry.event for entry in cluster.world.trace.entries][len(cuts) :]
    assert set(healed) == {LinkHealed("node-3", "node-1"), LinkHealed("node-1", "node-3")}


def test_a_single_node_starts_and_stops() -> None:
    cluster = cluster_of(SimNodeLayout(1))
    cluster.start_all()
    assert cluster.node(1).settings.node_id == 1
    assert list(cluster.running) == [1]
    cluster.world.run_for(1_000)

    cluster.stop(1)

    assert cluster.running == {}


def alive(cluster: SimCluster, node_id: int) -> list[int]:
    """The brokers that a node takes for alive."""
    return [broker.broker_id for broker in cluster.node(node_id).image.alive_brokers()]


def formed(cluster: SimCluster) -> bool:
    brokers = [node.node_id for node in cluster.layout.values() if "broker" in node.roles]
    return all(alive(cluster, node_id) == brokers for node_id in cluster.running)


def test_nodes_of_all_roles_form_a_cluster_within_a_second() -> None:
    cluster = cluster_of(*RACKS)
    cluster.start_all()
    cluster.world.run_until(lambda: formed(cluster), within_ms=1_000)
    assert alive(cluster, 3) == [1, 2, 4]


def test_a_node_that_stops_hands_over_and_the_others_know_at_once() -> None:
    cluster = cluster_of(*RACKS)
    cluster.start_all()
    cluster.world.run_until(lambda: formed(cluster), within_ms=1_000)

    cluster.stop(2)

    cluster.world.run_until(lambda: alive(cluster, 4) == [1, 4], within_ms=100)
    assert sorted(cluster.running) == [1, 3, 4]


def test_a_killed_node_is_known_to_be_dead_long_before_its_session_ends() -> None:
    cluster = cluster_of(*RACKS)
    cluster.start_all()
    cluster.world.run_until(lambda: formed(cluster), within_ms=1_000)

    cluster.kill(4)

    cluster.world.run_until(lambda: alive(cluster, 1) == [1, 2], within_ms=1_000)
