"""A group's coordinator dies: its successor has every commit, and the members notice nothing."""

from __future__ import annotations

from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.process.cluster import ProcessCluster
from tests.process.target import IS_KAFKA
from tests.process.waiting import PATIENCE_S
from tidelog.core.coordinator.key_hash import partition_of
from tidelog.core.model.topic_name import OFFSETS_TOPIC

pytestmark = pytest.mark.skipif(IS_KAFKA, reason="Apache Kafka as a cluster is another harness")

TOPIC = GROUP = "orders"
PARTITIONS = 3
SETTINGS = {"group.initial.rebalance.delay.ms": 0, "offsets.topic.num.partitions": 3}
PROTOCOLS: dict[str, dict[str, str | int]] = {
    "classic": {"session.timeout.ms": 45_000},
    "consumer": {"group.protocol": "consumer"},
}


@pytest.mark.scenario("D3-K2", "D3-K3", "D3-V4", "D4-O8", "N49", "X-42")
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_killed_coordinator_loses_no_commit_and_ends_no_session(
    tmp_path: Path, protocol: str
) -> None:
    """Kill -9 between a commit and the next: no rebalance, no record twice, nothing forgotten."""
    with ProcessCluster(directory=tmp_path, settings=SETTINGS) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)])[TOPIC].result(PATIENCE_S)
        assignments: list[int] = []
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "group.id": GROUP,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **PROTOCOLS[protocol],
            }
        )
        consumer.subscribe([TOPIC], on_assign=lambda _, owned: assignments.append(len(owned)))
        produce(cluster, "before")
        assert read(consumer, PARTITIONS) == ["before"] * PARTITIONS
        consumer.commit(asynchronous=False)
        coordinator = cluster.leader(OFFSETS_TOPIC, partition_of(GROUP, 3))
        assert coordinator is not None

        cluster.kill(coordinator)

        produce(cluster, "after")
        assert read(consumer, PARTITIONS) == ["after"] * PARTITIONS
        consumer.commit(asynchronous=False)
        wanted = [confluent_kafka.TopicPartition(TOPIC, index) for index in range(PARTITIONS)]
        found = consumer.committed(wanted, timeout=PATIENCE_S)
        consumer.close()

        assert [each.offset for each in found] == [2] * PARTITIONS
        assert assignments == [PARTITIONS]


def produce(cluster: ProcessCluster, value: str) -> None:
    """One record into each partition, whoever leads it by now."""
    producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers})
    for index in range(PARTITIONS):
        producer.produce(TOPIC, value=value, partition=index)
    assert producer.flush(PATIENCE_S) == 0


def read(consumer: confluent_kafka.Consumer, count: int) -> list[str]:
    values: list[str] = []
    while len(values) < count:
        record = consumer.poll(PATIENCE_S)
        assert record is not None, f"only {values} came"
        assert record.error() is None, record.error()
        values.append((record.value() or b"").decode())
    return values
