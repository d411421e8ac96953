"""Clients that ask about a broker that has just died hear what helps them, and not of the past."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.broker.recent_departures import HELD_MS, LISTED_MS
from tidelog.core.wire.messages.api_03_metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tidelog.core.wire.messages.api_10_find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
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

SESSION_MS = 9_000


class Stage:
    """Three nodes; broker 1 leads `orders`, broker 2 leads `other`, and all hold copies."""

    def __init__(self, *, detection: str = "connection") -> None:
        self.world = SimWorld(seed=3)
        self.network = Network(self.world)
        settings = {"tidelog.failure.detection": detection}
        self.cluster = SimCluster(self.world, self.network, settings=settings)
        self.cluster.start_all()
        self.run_until(lambda: self.alive() == 3)
        for topic, replicas in (("orders", [1, 2, 3]), ("other", [2, 3, 1])):
            created = self.ask(2, _creation(topic, replicas), 7)
            assert isinstance(created, CreateTopicsResponse)
            assert created.topics[0].error_code == ErrorCode.NONE
        self.world.run_for(1_000)

    def alive(self) -> int:
        return min(len(node.image.alive_brokers()) for node in self.cluster.running.values())

    def run_until(self, condition: Callable[[], bool]) -> None:
        self.world.run_until(condition, within_ms=30_000)

    def begin(self, node_id: int, request: Message, version: int = 12) -> list[Outcome]:
        """The list gets the outcome when it is there."""
        outcomes: list[Outcome] = []
        self.client(node_id).call(request, version, outcomes.append)
        return outcomes

    def client(self, node_id: int) -> WireClient:
        return WireClient(
            world=self.world, network=self.network, name="client", server=f"node-{node_id}"
        )

    def ask(self, node_id: int, request: Message, version: int = 12) -> Outcome:
        outcomes = self.begin(node_id, request, version)
        self.run_until(lambda: bool(outcomes))
        return outcomes[0]

    def listed(self, node_id: int) -> list[int]:
        answer = self.ask(node_id, MetadataRequest(topics=[]))
        assert isinstance(answer, MetadataResponse)
        return [broker.node_id for broker in answer.brokers]

    def coordinators(self, *groups: str) -> list[int]:
        """As broker 2 has it."""
        answer = self.ask(2, FindCoordinatorRequest(coordinator_keys=list(groups)), 4)
        assert isinstance(answer, FindCoordinatorResponse)
        return [each.node_id for each in answer.coordinators]

    def lose_leader(self, *killed: int) -> None:
        """Until a survivor has seen its connection to broker 1 end."""
        for node_id in killed:
            self.cluster.kill(node_id)
        self.run_until(
            lambda: self.cluster.node(2).recent_departures.missed(self.world.now_ms) == {1}
        )


def _creation(name: str, replicas: list[int]) -> CreateTopicsRequest:
    assignment = CreatableReplicaAssignment(partition_index=0, broker_ids=replicas)
    topic = CreatableTopic(
        name=name, num_partitions=-1, replication_factor=-1, assignments=[assignment]
    )
    return CreateTopicsRequest(topics=[topic], timeout_ms=5_000)


def _question(*topics: str) -> MetadataRequest:
    return MetadataRequest(
        topics=[MetadataRequestTopic(name=topic) for topic in topics],
        allow_auto_topic_creation=False,
    )


def _leaders(outcome: Outcome) -> list[int]:
    assert isinstance(outcome, MetadataResponse)
    return [topic.partitions[0].leader_id for topic in outcome.topics]


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_who_asks_before_the_election_hears_of_the_new_leader(stage: Stage) -> None:
    stage.lose_leader(1)
    assert stage.cluster.node(2).image.topics["orders"].partitions[0].leader == 1

    assert _leaders(stage.ask(2, _question("orders"))) == [2]


def test_who_asks_for_a_coordinator_before_the_election_hears_of_the_next(stage: Stage) -> None:
    """Told of the dead one, librdkafka asks again half a second later; others do not wait."""
    names = [f"group-{number}" for number in range(20)]
    homes = dict(zip(names, stage.coordinators(*names), strict=True))
    lost, other = (next(name for name in names if homes[name] == node) for node in (1, 2))
    stage.world.run_for(1_000)
    stage.lose_leader(1)
    began_ms = stage.world.now_ms

    assert stage.coordinators(other) == [2]
    assert stage.cluster.node(2).recent_departures.missed(stage.world.now_ms) == {1}
    assert stage.coordinators(other, lost)[1] in (2, 3)
    assert stage.world.now_ms - began_ms < HELD_MS


def test_all_topics_are_a_question_about_the_lost_leader_as_well(stage: Stage) -> None:
    stage.lose_leader(1)

    assert _leaders(stage.ask(2, MetadataRequest(topics=None))) == [2, 2]


def test_questions_about_others_do_not_wait(stage: Stage) -> None:
    stage.lose_leader(1)
    began_ms = stage.world.now_ms
    for question in (_question("other"), _question("nowhere"), MetadataRequest(topics=[])):
        stage.ask(2, question)

    assert stage.cluster.node(2).image.topics["orders"].partitions[0].leader == 1
    assert stage.world.now_ms - began_ms < HELD_MS


def test_nobody_waits_for_long_when_nothing_is_decided(stage: Stage) -> None:
    """Without a majority there is no election; the past is all that there is to tell."""
    stage.lose_leader(1, 3)
    began_ms = stage.world.now_ms

    answer = stage.ask(2, _question("orders"))

    assert _leaders(answer) == [1]
    assert HELD_MS / 2 < stage.world.now_ms - began_ms < 2 * HELD_MS
    began_ms = stage.world.now_ms
    assert _leaders(stage.ask(2, _question("orders"))) == [1]
    assert stage.world.now_ms - began_ms < HELD_MS / 2, "once is enough"


def test_a_client_that_goes_while_it_waits_is_forgotten(stage: Stage) -> None:
    stage.lose_leader(1, 3)
    client = stage.client(2)
    outcomes: list[Outcome] = []
    client.call(_question("orders"), 12, outcomes.append)
    stage.world.run_for(HELD_MS // 5)
    client.disconnect()
    stage.world.run_for(4 * HELD_MS)

    assert [type(outcome) for outcome in outcomes] == [CallFailed]


def test_a_broker_that_was_fenced_a_moment_ago_is_still_listed(stage: Stage) -> None:
    """librdkafka drops a broker that is not listed, and while it does so it forgets what the same
    answer says about the leaders of that broker's partitions, until its next look around."""
    stage.cluster.kill(1)
    stage.run_until(lambda: stage.alive() == 2)
    assert stage.listed(2) == [1, 2, 3]

    stage.world.run_for(LISTED_MS)
    assert stage.listed(2) == [2, 3]


def test_a_broker_that_registers_again_is_listed_when_it_is_let_in(stage: Stage) -> None:
    stage.cluster.kill(1)
    stage.run_until(lambda: stage.alive() == 2)
    former = stage.cluster.node(2).image.brokers[1].broker_epoch
    stage.cluster.start(1)
    stage.run_until(lambda: stage.cluster.node(2).image.brokers[1].broker_epoch != former)

    broker = stage.cluster.node(2).image.brokers[1]
    recent_departures = stage.cluster.node(2).recent_departures
    listed = [each.broker_id for each in recent_departures.listed(stage.world.now_ms)]
    assert (1 in listed) is not broker.is_fenced
    stage.run_until(lambda: stage.alive() == 3)
    assert stage.listed(1) == stage.listed(2) == [1, 2, 3]


def test_when_only_silence_counts_nobody_waits_and_the_fenced_are_not_listed() -> None:
    """As Kafka does it: the session decides, so there is nothing to wait for."""
    stage = Stage(detection="session")
    stage.cluster.kill(1)
    stage.world.run_for(100)
    began_ms = stage.world.now_ms
    assert _leaders(stage.ask(2, _question("orders"))) == [1]
    assert stage.world.now_ms - began_ms < HELD_MS / 2

    stage.run_until(lambda: stage.alive() == 2)
    assert stage.listed(2) == [2, 3]
