"""Document 3's downtime table on real processes: from the crash to the first answer, in phases.

What is asserted is the order of the phases; how long each took goes into the report.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.process.cluster import ProcessCluster
from tests.process.evidence import all_events
from tests.process.producers import Librdkafka, Ok, ProducerOptions
from tests.process.readers import LibrdkafkaReader
from tests.process.target import IS_KAFKA
from tests.process.waiting import wait_until
from tidelog.cluster.profiles import PROFILES

pytestmark = pytest.mark.skipif(IS_KAFKA, reason="Apache Kafka as a cluster is another harness")

MANY = 300
TICK_S = 0.002
"""Brokers write down milliseconds."""


def create(cluster: ProcessCluster, name: str, replicas: list[int], partitions: int) -> None:
    placed = [{"partition_index": each, "broker_ids": replicas} for each in range(partitions)]
    topic = {"name": name, "num_partitions": -1, "replication_factor": -1, "assignments": placed}
    cluster.ask_for_topic(topic, by=replicas[0])
    for partition in (0, partitions - 1):
        cluster.wait_until_in_sync(name, partition)


def named_by(cluster: ProcessCluster, witness: int, leader: int) -> float:
    """When this broker first named the new leader of the last of the many partitions, or later."""

    def names_it() -> bool:
        standing = cluster.partition_view("many", MANY - 1, via=witness)
        return standing is not None and standing.leader == leader

    wait_until(names_it, f"broker {witness} to name {leader}")
    return time.time()


@pytest.mark.scenario("D3-D1", "D3-D2", "D3-D3", "D3-D4", "D3-D5", "D3-D6", "D3-D7", "D3-D8")
@pytest.mark.scenario("D3-T7", "D3-T14", "D3-T20", "D5-B6", "N14", "N51")
@pytest.mark.parametrize(
    "profile",
    [
        "tidelog",
        pytest.param("documents", marks=pytest.mark.long),
        pytest.param("kafka-4", marks=pytest.mark.long),
    ],
)
def test_the_phases_of_a_failover(
    tmp_path: Path, profile: str, record_property: Callable[[str, object], None]
) -> None:
    """Crash, fence, 300 elections in one decision, every broker names the new leader, the first
    record is written and read: in this order. Detection is by silence or by a refused connection;
    what a client feels is the sum."""
    lag = {"replica.lag.time.max.ms": 300_000, "auto.leader.rebalance.enable": False}
    settings: dict[str, str | int | bool] = {**PROFILES[profile], **lag}
    with ProcessCluster(directory=tmp_path, settings=settings) as cluster:
        controller = cluster.active_controller()
        old, new = (broker for broker in (1, 2, 3) if broker != controller)
        create(cluster, "many", [old, new, controller], MANY)
        create(cluster, "orders", [old, new, controller], 1)
        with (
            closing(Librdkafka(cluster.bootstrap_servers, ProducerOptions())) as producer,
            closing(LibrdkafkaReader(cluster.bootstrap_servers, "orders")) as reader,
        ):
            assert producer.send("orders", "before").wait() == Ok(0)
            reader.read_until("before")
            crashed_s = time.time()
            cluster.kill(old)
            call = producer.send("orders", "after")
            named_s = max(named_by(cluster, witness, new) for witness in (new, controller))
            assert call.wait() == Ok(1)
            answered_s = time.time()
            reader.read_until("after")
            read_s = time.time()
            assert reader.values == ["before", "after"]

        fenced = all_events(cluster, "BrokerFenced", f"broker_id={old}")[-1]
        elected = all_events(cluster, "LeaderElected", f"leader={new}", "kind=clean")[-MANY - 1 :]
        leading = all_events(cluster, "BecameLeader", f"broker_id={new}", "leader_epoch=1")
        assert len(elected) == len(leading) == MANY + 1
        is_by_silence = "dead" not in fenced.text
        assert is_by_silence == (PROFILES[profile]["tidelog.failure.detection"] == "session")
        assert crashed_s <= fenced.at_s + TICK_S
        assert fenced.at_s <= elected[0].at_s <= elected[-1].at_s <= leading[-1].at_s + TICK_S
        assert elected[0].at_s <= named_s
        assert elected[-1].at_s <= answered_s <= read_s
        report = {
            "detection": fenced.at_s - crashed_s,
            "301 elections": elected[-1].at_s - fenced.at_s,
            "all lead": leading[-1].at_s - elected[-1].at_s,
            "named by all": named_s - crashed_s,
            "first write": answered_s - crashed_s,
            "first read": read_s - crashed_s,
        }
        text = ", ".join(f"{phase} {1_000 * value:.0f} ms" for phase, value in report.items())
        record_property("phases", f"{profile}: {text}")
        print(f"{profile}: {text}")


@pytest.mark.long
@pytest.mark.scenario("X-36")
def test_a_broker_back_within_its_session_waits_for_its_end(tmp_path: Path) -> None:
    """Where only silence proves a death, the new process is not let in while the session of the old
    one lives; then it is, by itself, and with its records."""
    settings: dict[str, str | int | bool]
    settings = {**PROFILES["documents"], "replica.lag.time.max.ms": 300_000}
    with ProcessCluster(directory=tmp_path, settings=settings) as cluster:
        controller = cluster.active_controller()
        old, new = (broker for broker in (1, 2, 3) if broker != controller)
        create(cluster, "orders", [old, new, controller], 1)
        before = len(all_events(cluster, "BrokerAdmitted", f"broker_id={old}"))
        cluster.kill(old)
        cluster.launch_node(old)
        wait_until(
            lambda: len(all_events(cluster, "BrokerAdmitted", f"broker_id={old}")) > before,
            "the new process to be let in",
        )
        admitted = all_events(cluster, "BrokerAdmitted", f"broker_id={old}")[-1]
        # Who asks in the very moment in which the session ends is let in before anybody is fenced.
        fenced = all_events(cluster, "BrokerFenced", f"broker_id={old}")
        refused = all_events(cluster, "BrokerRefused", f"broker_id={old}")
        assert fenced or refused
        assert all("dead" not in each.text for each in fenced)
        assert all(each.at_s <= admitted.at_s for each in (*fenced, *refused))
        cluster.wait_until_formed()
        cluster.wait_until_in_sync("orders", 0)
