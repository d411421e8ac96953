"""Our own group member on real brokers: beside librdkafka's, and when its coordinator dies."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import confluent_kafka
import pytest

from tests.process.client_verbs import CommandLine
from tests.process.cluster import ProcessCluster
from tests.process.waiting import PATIENCE_S
from tidelog.client.shells.blocking_clients import Producer
from tidelog.client.shells.group_consumer import GroupConsumer
from tidelog.core.coordinator.key_hash import partition_of
from tidelog.core.model.topic_name import OFFSETS_TOPIC

TOPIC, GROUP, PARTITIONS = "orders", "readers", 4
SETTINGS = {"group.initial.rebalance.delay.ms": 0, "offsets.topic.num.partitions": 3}


def make(cluster: ProcessCluster) -> dict[str, str]:
    """A topic, and the settings of whoever reads it."""
    create = ("topic", "create", TOPIC, "--partitions", str(PARTITIONS))
    CommandLine(cluster.bootstrap_servers).ok(*create, "--replication-factor", "3")
    return {
        "bootstrap.servers": cluster.bootstrap_servers,
        "group.id": GROUP,
        "auto.offset.reset": "earliest",
    }


def produce(cluster: ProcessCluster, value: bytes) -> None:
    """One record into each partition."""
    with Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:
        for index in range(PARTITIONS):
            producer.send(TOPIC, value, partition=index).result(PATIENCE_S)


def turn_until(step: Callable[[], None], reached: Callable[[], bool]) -> None:
    """Members live only while they are polled."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not reached():
        assert time.monotonic() < deadline_s, "it did not come to that"
        step()


def test_a_killed_coordinator_costs_no_rebalance_and_no_record(tmp_path: Path) -> None:
    with ProcessCluster(directory=tmp_path, settings=SETTINGS) as cluster:
        settings = make(cluster)
        produce(cluster, b"before")
        values: list[bytes | None] = []
        with GroupConsumer(settings, [TOPIC]) as member:

            def step() -> None:
                values.extend(each.value for each in member.poll(0.2))
                member.commit()

            turn_until(step, lambda: len(values) == PARTITIONS)
            coordinator = cluster.leader(OFFSETS_TOPIC, partition_of(GROUP, 3))
            assert coordinator is not None
            cluster.kill(coordinator)
            produce(cluster, b"after")
            turn_until(step, lambda: len(values) == 2 * PARTITIONS)
            assert member.rebalances == 1
        assert member.commit_failure is None
        with GroupConsumer(settings, [TOPIC]) as again:
            turn_until(
                lambda: values.extend(r.value for r in again.poll(0.2)),
                lambda: bool(again.assignment),
            )
            assert values == [b"before"] * PARTITIONS + [b"after"] * PARTITIONS
            assert again.poll(1.0) == []


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_it_shares_a_topic_with_another_client(tmp_path: Path, protocol: str) -> None:
    """Whoever leads the group understands the other's subscription, and is understood."""
    with ProcessCluster(directory=tmp_path, settings=SETTINGS) as cluster:
        settings = make(cluster) | {"group.protocol": protocol}
        other = confluent_kafka.Consumer(settings)
        other.subscribe([TOPIC])
        theirs: list[bytes | None] = []
        ours: list[bytes | None] = []
        with GroupConsumer(settings, [TOPIC]) as member:

            def step() -> None:
                found = other.poll(0.1)
                if found is not None and found.error() is None:
                    theirs.append(found.value())
                ours.extend(each.value for each in member.poll(0.1))

            def is_shared() -> bool:
                return len(member.assignment) == len(other.assignment()) == PARTITIONS // 2

            turn_until(step, is_shared)
            produce(cluster, b"x")
            turn_until(step, lambda: len(theirs) + len(ours) == PARTITIONS)
            assert len(theirs) == len(ours) == PARTITIONS // 2
            other.close()
            turn_until(step_of(member), lambda: len(member.assignment) == PARTITIONS)


def step_of(member: GroupConsumer) -> Callable[[], None]:
    def step() -> None:
        member.poll(0.1)

    return step
