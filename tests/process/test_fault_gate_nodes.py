"""Faults between the nodes of a cluster: replication, the controller's eye, and one partition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from uuid import uuid4

import pytest

from tests.process.cluster import UNHURRIED, PartitionView, ProcessCluster
from tests.process.gates import named
from tests.process.waiting import wait_until
from tests.process.wire import batch_of

CONTROLLER, ONE, OTHER = 1, 2, 3
ROLES = ("controller", "broker", "broker")
SETTINGS = {**UNHURRIED, "replica.lag.time.max.ms": 2_000, "tidelog.log.level": "debug"}


class Stage:
    """A controller that is on nobody's side, two brokers, and a topic of its own for each test."""

    def __init__(self, cluster: ProcessCluster) -> None:
        self.cluster = cluster
        self.topic = f"orders-{uuid4().hex[:8]}"
        cluster.injector.gates.replace([])
        cluster.create_topic(self.topic, partitions=2)
        self.leader = ONE  # to be asked until we know better
        self.leader = self.leader_of(0)
        self.follower = ONE + OTHER - self.leader

    def leader_of(self, partition: int) -> int:
        standing = self.standing(partition)
        assert standing is not None
        return standing.leader

    def standing(self, partition: int = 0, *, via: int | None = None) -> PartitionView | None:
        return self.cluster.partition_view(self.topic, partition, via=via or self.leader)

    def produce(self, partition: int = 0, *, acks: int = 1) -> None:
        with self.cluster.wire(self.leader_of(partition)) as wire:
            answer = wire.produce(self.topic, batch_of(b"x"), partition=partition, acks=acks)
            assert answer.error_code == 0

    def wait_for_isr(self, *isr: int, partition: int = 0) -> None:
        def has_it() -> bool:
            standing = self.standing(partition)
            return standing is not None and set(standing.isr) == set(isr)

        wait_until(has_it, f"the in-sync set {isr}")

    def copied(self) -> int:
        """How many records of the first partition the follower has on its disk."""
        directory = self.cluster.nodes[self.follower].data_path / f"{self.topic}-0"
        size_bytes = sum(path.stat().st_size for path in directory.glob("*.log"))
        return size_bytes // len(batch_of(b"x"))

    def faults(self, *rules: Mapping[str, object]) -> None:
        self.cluster.injector.gates.replace(named(rules))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessCluster]:
    directory = tmp_path_factory.mktemp("gates")
    with ProcessCluster(
        directory=directory, roles=ROLES, settings=SETTINGS, faults=True
    ) as cluster:
        yield cluster


@pytest.fixture
def stage(shared: ProcessCluster) -> Stage:
    return Stage(shared)


@pytest.mark.parametrize("direction", ["both", "requests", "answers"])
def test_a_follower_that_is_cut_off_leaves_the_set_and_returns(
    stage: Stage, direction: str
) -> None:
    """The follower dials: what it sends are requests, what it gets are answers.

    A fetch that waits at the leader when the cut comes, or is on its way to it, is still answered,
    once: long before the follower has been silent for so long that it is left out.
    """
    requests = {"what": "cut", "from": stage.follower, "to": stage.leader}
    answers = {"what": "cut", "from": stage.leader, "to": stage.follower}
    rules = {"both": [requests, answers], "requests": [requests], "answers": [answers]}
    stage.faults(*rules[direction])
    stage.produce()
    stage.wait_for_isr(stage.leader)
    stage.produce()
    stage.produce()
    assert stage.copied() <= (1 if direction == "requests" else 0)
    assert stage.cluster.known_brokers(stage.leader) == [ONE, OTHER], "nobody is fenced"

    stage.faults()

    stage.wait_for_isr(ONE, OTHER)
    assert stage.copied() == 3


def test_a_hold_of_one_purpose_lets_all_others_through(stage: Stage) -> None:
    stage.faults({"what": "hold", "from": "*", "to": stage.follower, "purpose": "replica"})
    stage.produce()
    stage.wait_for_isr(stage.leader)
    name = f"{stage.topic}-more"
    with stage.cluster.wire(stage.leader) as wire:
        assert wire.create_topic_answer(name).error_code == 0
    wait_until(
        lambda: stage.cluster.partition_view(name, 0, via=stage.follower) is not None,
        "metadata to reach the broker that gets no records",
    )
    assert stage.copied() == 0

    stage.faults()

    stage.wait_for_isr(ONE, OTHER)


def test_a_held_replica_lacks_one_partition_and_nothing_else(stage: Stage) -> None:
    replica = {"replica": stage.follower, "topic": stage.topic, "partition": 0}
    stage.faults({"what": "hold-replica", **replica})
    stage.produce()
    stage.wait_for_isr(stage.leader)
    assert stage.copied() == 0
    stage.produce(1, acks=-1)
    stage.wait_for_isr(ONE, OTHER, partition=1)

    stage.faults()

    stage.wait_for_isr(ONE, OTHER)
    assert stage.copied() == 1


def test_replication_is_late_behind_a_slow_and_lossy_way_but_in_order(stage: Stage) -> None:
    way = {"from": stage.leader, "to": stage.follower}
    back = {"from": stage.follower, "to": stage.leader}
    stage.faults(
        {"what": "delay", **way, "delay_ms": 50, "jitter_ms": 50},
        {"what": "drop", **back, "chance": 0.3},
    )
    for _ in range(10):
        stage.produce(acks=1)
    wait_until(lambda: stage.copied() == 10, "all copies")
    assert stage.cluster.injector.gates.list(stage.follower)["injected"]["r1"] > 0


def test_a_restarted_node_finds_its_faults_before_it_dials(stage: Stage) -> None:
    stage.faults({"what": "cut", "from": stage.follower, "to": stage.leader})
    stage.cluster.kill(stage.follower)
    stage.wait_for_isr(stage.leader)
    stage.produce()
    stage.cluster.rejoin(stage.follower)
    rules = stage.cluster.injector.gates.list(stage.follower)["rules"]
    assert [rule["what"] for rule in rules] == ["cut"]
    assert stage.copied() == 0

    stage.faults()

    stage.wait_for_isr(ONE, OTHER)
    assert stage.copied() == 1


def test_a_death_behind_a_cut_is_silence_until_the_cut_heals(stage: Stage) -> None:
    """The controller must not hear that the connection ended, nor that its knocks are refused."""
    leader, survivor = stage.leader, stage.follower
    stage.faults(
        {"what": "cut", "from": CONTROLLER, "to": leader},
        {"what": "cut", "from": leader, "to": CONTROLLER},
    )
    refusals = stage.cluster.log_text(survivor).count("reason=refused")
    stage.cluster.kill(leader)
    wait_until(
        lambda: stage.cluster.log_text(survivor).count("reason=refused") >= refusals + 3,
        "the survivor, which is not cut off, to find nobody there",
    )
    standing = stage.standing(via=survivor)
    assert standing is not None and standing.leader == leader

    stage.faults()

    def has_moved() -> bool:
        standing = stage.standing(via=survivor)
        return standing is not None and standing.leader == survivor

    wait_until(has_moved, "the survivor to lead")
    log = stage.cluster.log_text(CONTROLLER)
    assert log.rindex("BrokerFenced") > log.rindex("FaultsChanged")
    stage.cluster.rejoin(leader)
