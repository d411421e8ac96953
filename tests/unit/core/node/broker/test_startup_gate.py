"""A broker that does not know the cluster yet lets its clients wait instead of telling them so."""

from __future__ import annotations

import pytest

from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.limits import STARTUP_GATE_REQUEST_BYTES
from tidelog.core.node.broker import startup_gate
from tidelog.core.wire.messages.api_03_metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tidelog.core.wire.messages.api_19_create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tidelog.core.wire.schema import Message
from tidelog.worlds.simulator.client import CallFailed, Outcome, WireClient
from tidelog.worlds.simulator.cluster import SimCluster
from tidelog.worlds.simulator.network import Network
from tidelog.worlds.simulator.world import SimWorld

VERSION = 12
CREATE_VERSION = 7


class Stage:
    """Three nodes and a topic on all of them."""

    def __init__(self) -> None:
        self.world = SimWorld(seed=3)
        self.network = Network(self.world)
        self.cluster = SimCluster(self.world, self.network)
        self.cluster.start_all()
        self.run_until_alive(3)
        created = self.ask(2, _creation(), CREATE_VERSION)
        assert isinstance(created, CreateTopicsResponse)
        assert created.topics[0].error_code == ErrorCode.NONE

    def run_until_alive(self, count: int) -> None:
        def know_each_other() -> bool:
            running = self.cluster.running.values()
            return all(len(node.image.alive_brokers()) == count for node in running)

        self.world.run_until(know_each_other, within_ms=20_000)

    def begin(self, node_id: int, request: Message, version: int = VERSION) -> list[Outcome]:
        """The list gets the outcome when it is there."""
        client = WireClient(
            world=self.world, network=self.network, name="client", server=f"node-{node_id}"
        )
        outcomes: list[Outcome] = []
        client.call(request, version, outcomes.append)
        return outcomes

    def ask(self, node_id: int, request: Message, version: int = VERSION) -> Outcome:
        outcomes = self.begin(node_id, request, version)
        self.world.run_until(lambda: bool(outcomes), within_ms=30_000)
        return outcomes[0]


def _creation() -> CreateTopicsRequest:
    assignment = CreatableReplicaAssignment(partition_index=0, broker_ids=[1, 2, 3])
    topic = CreatableTopic(
        name="orders", num_partitions=-1, replication_factor=-1, assignments=[assignment]
    )
    return CreateTopicsRequest(topics=[topic], timeout_ms=5_000)


def _question() -> MetadataRequest:
    return MetadataRequest(
        topics=[MetadataRequestTopic(name="orders")], allow_auto_topic_creation=False
    )


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_who_asks_a_broker_that_has_just_started_hears_of_the_cluster_as_it_is(
    stage: Stage,
) -> None:
    stage.cluster.kill(1)
    stage.run_until_alive(2)
    stage.cluster.start(1)

    answer = stage.ask(1, _question())

    assert isinstance(answer, MetadataResponse)
    assert answer.topics[0].error_code == ErrorCode.NONE
    assert answer.topics[0].partitions[0].leader_id == 2, "not itself, as before its end"


def test_without_a_majority_a_starting_broker_keeps_its_clients_waiting(stage: Stage) -> None:
    for node_id in (1, 2, 3):
        stage.cluster.kill(node_id)
    stage.cluster.start(1)
    waiting = stage.begin(1, _question())
    stage.world.run_for(2_000)
    assert waiting == []
    assert len(stage.cluster.node(1).startup_gate) == 1

    stage.cluster.start(2)
    stage.world.run_until(lambda: bool(waiting), within_ms=10_000)

    assert isinstance(waiting[0], MetadataResponse)
    assert waiting[0].topics[0].error_code == ErrorCode.NONE
    assert len(stage.cluster.node(1).startup_gate) == 0


def test_a_client_that_has_gone_is_not_answered(stage: Stage) -> None:
    stage.cluster.kill(1)
    stage.cluster.kill(2)
    stage.cluster.kill(3)
    stage.cluster.start(1)
    client = WireClient(world=stage.world, network=stage.network, name="client", server="node-1")
    outcomes: list[Outcome] = []
    client.call(_question(), VERSION, outcomes.append)
    stage.world.run_for(1_000)
    client.disconnect()
    stage.world.run_for(1_000)
    assert [type(outcome) for outcome in outcomes] == [CallFailed]

    stage.cluster.start(2)
    stage.world.run_until(lambda: not stage.cluster.node(1).startup_gate, within_ms=10_000)

    assert len(outcomes) == 1, "told nothing else"


class TestBound:
    """A starting broker keeps so many bytes of requests, and closes connections beyond."""

    @pytest.fixture
    def starting(self, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
        """Node 1 alone, without a majority, with room for three requests."""
        body_bytes = 40
        room = 3 * (STARTUP_GATE_REQUEST_BYTES + body_bytes)
        monkeypatch.setattr(startup_gate, "STARTUP_GATE_BYTES_MAX", room)
        for node_id in (1, 2, 3):
            stage.cluster.kill(node_id)
        stage.cluster.start(1)
        return stage

    def test_who_finds_it_full_is_disconnected_and_the_others_are_answered(
        self, starting: Stage
    ) -> None:
        waiting = [starting.begin(1, _question()) for _ in range(3)]
        starting.world.run_for(1_000)
        assert waiting == [[], [], []]
        gate = starting.cluster.node(1).startup_gate
        gate.check()

        refused = starting.begin(1, _question())
        starting.world.run_until(lambda: bool(refused), within_ms=1_000)

        assert isinstance(refused[0], CallFailed)
        assert len(gate) == 3
        starting.cluster.start(2)
        starting.world.run_until(lambda: all(waiting), within_ms=10_000)
        assert all(isinstance(outcomes[0], MetadataResponse) for outcomes in waiting)
        assert gate.size_bytes == 0

    def test_the_room_of_lost_connections_is_given_to_others(self, starting: Stage) -> None:
        clients = []
        for number in range(3):
            client = WireClient(
                world=starting.world,
                network=starting.network,
                name=f"client-{number}",
                server="node-1",
            )
            client.call(_question(), VERSION, lambda _: None)
            clients.append(client)
        starting.world.run_for(1_000)
        for client in clients:
            client.disconnect()
        starting.world.run_for(1_000)

        waiting = starting.begin(1, _question())
        starting.world.run_for(1_000)

        assert waiting == []
        gate = starting.cluster.node(1).startup_gate
        assert len(gate) == 1
        gate.check()
