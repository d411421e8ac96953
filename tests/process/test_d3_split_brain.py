"""Split brain on real processes: cuts between brokers and clients, two that believe, one that may.

The network is cut by the brokers' own fault gates, through `tidelog.Cluster`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import confluent_kafka.admin
import pytest

import tidelog
from tests.process.producers import Librdkafka, Ok, ProducerOptions
from tests.process.readers import LibrdkafkaReader
from tests.process.target import IS_KAFKA
from tests.process.verdicts import final_log, lost, verdict, writes
from tests.process.waiting import PATIENCE_S, wait_until
from tests.process.wire import WireClient, batches_on_disk
from tidelog.cluster.layout import NodePlan
from tidelog.core.model.errors import ErrorCode
from tidelog.judge.history import WriteAcks

pytestmark = [
    pytest.mark.skipif(IS_KAFKA, reason="Apache Kafka as a cluster is another harness"),
    pytest.mark.xdist_group("d3-split-brain"),
]

CALM: dict[str, str | int | bool] = {
    "broker.heartbeat.interval.ms": 1_000,
    "broker.session.timeout.ms": 6_000,
    "controller.quorum.fetch.timeout.ms": 6_000,
    "controller.quorum.request.timeout.ms": 6_000,
    "replica.lag.time.max.ms": 300_000,
    "auto.leader.rebalance.enable": False,
}
PATIENT = {**CALM, "broker.session.timeout.ms": 18_000}
"""A broker that asks a voter of the lost rack who leads the quorum waits 6 s for nothing before it
asks another one, as Kafka's does (one question at a time), and must not be given up meanwhile."""
REQUEST_TIMEOUT_MS = 2_500
UNKNOWN, FENCED = ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.FENCED_LEADER_EPOCH
RACKED = [
    NodePlan(id=1, rack="a"),
    NodePlan(id=2, rack="a", roles=("broker",)),
    NodePlan(id=3, rack="b"),
    NodePlan(id=4, rack="b", roles=("broker",)),
    NodePlan(id=5, roles=("controller",)),
]
"""As the document has it; a controller outside both racks breaks ties."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[tidelog.Cluster]:
    with tidelog.Cluster(brokers=3, settings=CALM) as made:
        yield made


def create_topic(cluster: tidelog.Cluster, name: str, placed: list[list[int]]) -> None:
    """With a minimum of two, or of one where there are two copies only."""
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    minimum = {"min.insync.replicas": str(len(placed[0]) - 1)}
    topic = confluent_kafka.admin.NewTopic(
        name, num_partitions=len(placed), replica_assignment=placed, config=minimum
    )
    admin.create_topics([topic])[name].result()
    for partition in range(len(placed)):
        cluster.wait_isr(name, partition, timeout_s=PATIENCE_S)


def fetch_error(address: str, topic: str, *, leader_epoch: int) -> int:
    """What a broker answers to a fetch by somebody who knows this leader epoch."""
    asked = {
        "partition": 0,
        "current_leader_epoch": leader_epoch,
        "fetch_offset": 0,
        "partition_max_bytes": 1 << 20,
    }
    with WireClient(address) as wire:
        answer = wire.ask(
            "Fetch",
            11,
            replica_id=-1,
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=1 << 20,
            isolation_level=0,
            topics=[{"topic": topic, "partitions": [asked]}],
        )
    return int(answer.responses[0].partitions[0].error_code)


def on_disk(cluster: tidelog.Cluster, broker: int, topic: str, partition: int = 0) -> list[Any]:
    return batches_on_disk(Path(cluster.nodes[broker].data_path), topic, partition=partition)


@pytest.mark.scenario("D3-S5", "D3-T1", "D1-T3", "X-4", "N38", "N48")
def test_two_believe_that_they_lead_and_one_can_commit(cluster: tidelog.Cluster) -> None:
    """The leader and clients of its own are cut off from everybody else; another is elected after a
    session. acks=1 and acks=0 are taken on the old side and lost, acks=all is not acknowledged
    there; no reader gets what is not committed. Healed, the old leader drops its tail and follows.
    """
    controller = cluster.controller()
    assert controller is not None
    old, new = (broker for broker in cluster.broker_ids if broker != controller)
    create_topic(cluster, "orders", [[old, new, controller]])
    with closing(Sides(cluster, old, new)) as sides:
        before = sides.careful.send("orders", "before")
        assert before.wait() == Ok(0)
        sides.find_the_way()
        pid = cluster.nodes[old].pid
        assert pid is not None
        cluster.isolate(old)
        sides.part()
        doomed = sides.hasty.send("orders", "hasty")
        assert doomed.wait() == Ok(4)
        assert isinstance(sides.blind.send("orders", "blind").wait(), Ok)
        retried = sides.careful.send("orders", "careful")
        wait_until(lambda: _end(sides.old, "orders") == 7, "three records on the old side")

        cluster.wait_leader("orders", 0, new, timeout_s=PATIENCE_S)
        kept = sides.safe.send("orders", "safe")
        assert kept.wait() == Ok(4)
        assert fetch_error(sides.old, "orders", leader_epoch=1) == UNKNOWN
        assert fetch_error(sides.new, "orders", leader_epoch=0) == FENCED
        assert (sides.reader.read(), len(sides.reader.values)) == (0, 4)
        assert retried.outcome is None
        assert cluster.nodes[old].pid == pid and _is_alive(pid)

        cluster.heal()
        assert retried.wait() == Ok(5)
        sides.reader.read_until("careful")
        assert sides.reader.values[4:] == ["safe", "careful"]
        cluster.wait_isr("orders", timeout_s=PATIENCE_S)
        history = [
            *writes([before, retried], partition="orders-0", writer="careful"),
            *writes([doomed], partition="orders-0", writer="hasty", acks=WriteAcks.LEADER),
            *writes([kept], partition="orders-0", writer="safe"),
        ]
        final = final_log(sides.new, "orders", partition=0, at_us=10**9)
        assert lost(verdict(history, final)) == ["hasty"]
    copies = [on_disk(cluster, broker, "orders") for broker in cluster.broker_ids]
    assert copies[0] == copies[1] == copies[2]


class Sides:
    """Clients on the side of the old leader, and one on the side of the new one."""

    def __init__(self, cluster: tidelog.Cluster, old: int, new: int) -> None:
        self.old, self.new = cluster.nodes[old].address, cluster.nodes[new].address
        self._cluster = cluster
        self._old = old
        patient = ProducerOptions(request_timeout_ms=REQUEST_TIMEOUT_MS)
        name: dict[str, Any] = {"client.id": "old-side"}
        self.careful = Librdkafka(self.old, patient, **name)
        self.hasty = Librdkafka(
            self.old, ProducerOptions(acks="1", enable_idempotence=False), **name
        )
        self.blind = Librdkafka(
            self.old, ProducerOptions(acks="0", enable_idempotence=False), **name
        )
        self.reader = LibrdkafkaReader(self.old, "orders", **name)
        self.safe = Librdkafka(self.new, patient, **{"client.id": "new-side"})

    def find_the_way(self) -> None:
        """Whoever has written once knows the leader, and asks nobody on the other side for it."""
        for name in ("hasty", "blind", "safe"):
            producer: Librdkafka = getattr(self, name)
            assert isinstance(producer.send("orders", f"{name} before").wait(), Ok)
            self.reader.read_until(f"{name} before")

    def part(self) -> None:
        """Nobody reaches a broker of the other side."""
        self._cluster.cut("client:new-side", self._old)
        for broker in self._cluster.broker_ids:
            if broker != self._old:
                self._cluster.cut("client:old-side", broker)

    def close(self) -> None:
        for each in (self.careful, self.hasty, self.blind, self.reader, self.safe):
            each.close()


def _end(address: str, topic: str) -> int:
    asked = {"partition_index": 0, "timestamp": -1}
    with WireClient(address) as wire:
        answer = wire.ask(
            "ListOffsets", 7, replica_id=-2, topics=[{"name": topic, "partitions": [asked]}]
        )
    return int(answer.topics[0].partitions[0].offset)


def _is_alive(pid: int) -> bool:
    os.kill(pid, 0)
    return True


@pytest.mark.long
@pytest.mark.scenario("D5-R2", "D5-R12", "D5-B1", "N46")
def test_a_rack_is_cut_off(tmp_path: Path) -> None:
    """Brokers 1 and 2 stand in rack a, 3 and 4 in b. Rack a is cut off from everybody: what it led
    is led in b, the rest keeps its leaders, no acknowledged record is lost, and a comes back."""
    placed = [[1, 3], [3, 2], [4, 1]]
    with tidelog.Cluster(nodes=RACKED, settings=PATIENT, data=tmp_path / "racks") as cluster:
        with WireClient(cluster.nodes[4].address) as wire:
            told = wire.ask("Metadata", 12, topics=[]).brokers
        assert {b.node_id: b.rack for b in told} == {1: "a", 2: "a", 3: "b", 4: "b"}
        create_topic(cluster, "orders", placed)
        options = ProducerOptions(request_timeout_ms=REQUEST_TIMEOUT_MS)
        with closing(Librdkafka(cluster.bootstrap_servers, options)) as producer:
            calls = [producer.send("orders", "before", partition=each) for each in range(3)]
            assert [call.wait() for call in calls] == [Ok(0)] * 3
            cut = cluster.isolate("rack:a", clients=True)
            calls = [producer.send("orders", "after", partition=each) for each in range(3)]
            assert [call.wait() for call in calls] == [Ok(1)] * 3
            for partition, leader in enumerate((3, 3, 4)):
                cluster.wait_isr("orders", partition, {leader}, timeout_s=PATIENCE_S)
                assert cluster.leader("orders", partition) == leader
            assert [cluster.leader_epoch("orders", each) for each in range(3)] == [1, 0, 0]
            cut.undo()
            for partition in range(3):
                cluster.wait_isr("orders", partition, timeout_s=PATIENCE_S)
                first, second = placed[partition]
                assert on_disk(cluster, first, "orders", partition) == on_disk(
                    cluster, second, "orders", partition
                )
