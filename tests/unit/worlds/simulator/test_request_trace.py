"""The request trace: what a node was asked and answered, seen from outside."""

from __future__ import annotations

from tidelog.core.wire.messages.api_60_describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from tidelog.worlds.simulator.client import Outcome, WireClient
from tidelog.worlds.simulator.cluster import SimNodeLayout
from tidelog.worlds.simulator.network import Network
from tidelog.worlds.simulator.request_trace import TracedCluster
from tidelog.worlds.simulator.world import SimWorld


def test_a_request_is_noted_with_who_asked_and_what_was_answered() -> None:
    world = SimWorld(seed=1)
    network = Network(world)
    cluster = TracedCluster(world, network, nodes=[SimNodeLayout(1)], settings={})
    cluster.start_all()
    told: list[Outcome] = []
    client = WireClient(world=world, network=network, name="asker", server="node-1")
    client.call(DescribeClusterRequest(), 1, told.append)
    world.run_until(lambda: bool(told), within_ms=1_000)

    (exchange,) = cluster.traces[1].exchanges
    assert (exchange.peer, exchange.api_key, exchange.version) == ("asker", 60, 1)
    assert exchange.request == DescribeClusterRequest()
    assert exchange.answer == told[0]
    assert isinstance(exchange.answer, DescribeClusterResponse)
    assert exchange.answered_us is not None
    assert exchange.answered_us >= exchange.at_us


def test_a_paused_process_hears_nothing_until_it_is_awake() -> None:
    world = SimWorld(seed=1)
    network = Network(world)
    cluster = TracedCluster(world, network, nodes=[SimNodeLayout(1)], settings={})
    cluster.start_all()
    cluster.pause(1)
    client = WireClient(world=world, network=network, name="asker", server="node-1")
    client.call(DescribeClusterRequest(), 1, lambda _: None)
    world.run_for(100)
    assert cluster.traces[1].exchanges == []
    cluster.wake(1)
    world.run_until(lambda: bool(cluster.traces[1].exchanges), within_ms=1_000)
    assert cluster.traces[1].exchanges[0].peer == "asker"
