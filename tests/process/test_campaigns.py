"""Campaigns: under load leaders are killed, put to sleep, restarted, by ones and all at once.

Three copies, a minimum of two, idempotent producers with acks=all: whatever happens, nothing that
was acknowledged is lost, nothing is stored twice or out of order, and all replicas end alike.
"""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kafka import Tool, run_tool
from tests.process.broker import Setting
from tests.process.campaign import final_log, verdict
from tests.process.cluster import BOTH_ROLES, ClusterProcesses
from tests.process.evidence import PREFERRED, active_controller, all_events, elect
from tests.process.load import PARTITIONS, Load
from tests.process.producers import TimelineProducer, Wishes
from tests.process.target import IS_KAFKA
from tests.process.timelines import make_producer
from tests.process.waiting import wait_until
from tests.process.wire import batches_on_disk, segment_files

pytestmark = pytest.mark.skipif(IS_KAFKA, reason="Apache Kafka as a cluster is another harness")

JAVA = [pytest.mark.java, pytest.mark.long]
SESSION: dict[str, Setting] = {
    "broker.heartbeat.interval.ms": 1_000,
    "broker.session.timeout.ms": 6_000,
}


class Campaign:
    """A cluster, and loads that write to a topic each."""

    def __init__(self, cluster: ClusterProcesses, loads: list[Load]) -> None:
        self.cluster = cluster
        self.loads = loads

    @property
    def places(self) -> list[tuple[str, int]]:
        return [(load.topic, partition) for load in self.loads for partition in range(PARTITIONS)]

    def write(self, count: int) -> None:
        """Everybody gets more to write, and is in the midst of it."""
        for load in self.loads:
            load.grant(count)
        for load in self.loads:
            load.wait_for(1 / 4)

    def write_through(self, count: int) -> None:
        """Everybody gets more to write, and gets it done but for the last ones."""
        for load in self.loads:
            load.grant(count)
        for load in self.loads:
            load.wait_for(3 / 4)

    def wait_until_whole(self) -> None:
        self.cluster.wait_until_formed()
        for topic, partition in self.places:
            self._wait_for_all_replicas(topic, partition)

    def spread_leaders(self) -> None:
        """Each partition is led by the first of its replicas again."""
        for topic, partition in self.places:
            standing = self._standing(topic, partition)
            if standing.leader != standing.replicas[0]:
                witness = self.cluster.broker_ids[0]
                elect(self.cluster, topic, kind=PREFERRED, partition=partition, by=witness)

    def leader_epoch(self, topic: str) -> int:
        return self._standing(topic, 0).leader_epoch

    def leader(self, topic: str, partition: int) -> int:
        return self._standing(topic, partition).leader

    def finish(self) -> None:
        """Judge what the loads were told, and compare the replicas batch by batch."""
        for load in self.loads:
            load.finish()
        self.wait_until_whole()
        for load in self.loads:
            for partition in range(PARTITIONS):
                leader = self.leader(load.topic, partition)
                address = self.cluster.nodes[leader].address
                final = final_log(address, load.topic, partition=partition, at_us=10**12)
                found = verdict(load.history(partition), final)
                assert found == [], found[:5]
                self._compare_replicas(load.topic, partition, final.end_offset)

    def _compare_replicas(self, topic: str, partition: int, end_offset: int) -> None:
        standing = self._standing(topic, partition)

        def on_disk() -> list[list[tuple[object, bytes]]]:
            return [
                list(
                    batches_on_disk(
                        self.cluster.nodes[broker].log_directory, topic, partition=partition
                    )
                )
                for broker in standing.replicas
            ]

        copies = on_disk()
        assert copies[0][-1][0].end_offset == end_offset  # type: ignore[attr-defined]
        assert all(copy == copies[0] for copy in copies), f"{topic}-{partition} differs"

    def _standing(self, topic: str, partition: int):  # type: ignore[no-untyped-def]
        def told():  # type: ignore[no-untyped-def]
            for broker in self.cluster.broker_ids:
                if self.cluster.nodes[broker].is_running:
                    standing = self.cluster.standing(topic, partition, told_by=broker)
                    if standing is not None and standing.leader >= 0:
                        return standing
            return None

        return wait_until(told, f"a leader of {topic}-{partition}")

    def _wait_for_all_replicas(self, topic: str, partition: int) -> None:
        def is_whole() -> bool:
            standing = self._standing(topic, partition)
            return sorted(standing.isr) == sorted(standing.replicas)

        wait_until(is_whole, f"all replicas of {topic}-{partition}")


@contextmanager
def campaign(
    directory: Path,
    clients: tuple[str, ...],
    request: pytest.FixtureRequest,
    *,
    roles: tuple[str, ...] = (BOTH_ROLES,) * 3,
    settings: Mapping[str, Setting] | None = None,
    settings_of: Mapping[int, Mapping[str, Setting]] | None = None,
    request_timeout_ms: int | None = None,
) -> Iterator[Campaign]:
    """Comes when everybody writes; judges at the end."""
    wishes = (
        Wishes() if request_timeout_ms is None else Wishes(request_timeout_ms=request_timeout_ms)
    )
    producers: list[TimelineProducer] = []
    with ClusterProcesses(
        directory=directory, roles=roles, settings=settings, settings_of=settings_of
    ) as cluster:
        loads = []
        for client in clients:
            create_topic(cluster, f"of-{client}")
            producers.append(make_producer(client, cluster.bootstrap, wishes, request))
            loads.append(Load(producers[-1], name=client, topic=f"of-{client}"))
        for load in loads:
            load.start()
        running = Campaign(cluster, loads)
        try:
            yield running
            running.finish()
        finally:
            for producer in producers:
                producer.close()


def create_topic(cluster: ClusterProcesses, name: str) -> None:
    """Three partitions with three copies and a minimum of two, led by different brokers."""
    topic = {
        "name": name,
        "num_partitions": PARTITIONS,
        "replication_factor": 3,
        "configs": [{"name": "min.insync.replicas", "value": "2"}],
    }
    with cluster.wire(cluster.broker_ids[0]) as wire:
        answer = wire.ask("CreateTopics", 7, topics=[topic], timeout_ms=60_000)
    assert answer.topics[0].error_code == 0, answer.topics[0].error_message
    wait_until(
        lambda: all(
            cluster.standing(name, PARTITIONS - 1, told_by=each) for each in cluster.broker_ids
        ),
        f"{name} to be known",
    )


@pytest.mark.scenario("D1-T1", "D1-E2", "D1-V4", "D3-Q5", "D3-PG5", "D5-F2", "D5-F3")
@pytest.mark.parametrize(
    ("clients", "kills", "records"),
    [
        pytest.param(("librdkafka", "kafka-python"), 3, 200, id="3-kills"),
        pytest.param(("kafka-python",), 10, 250, id="10-kills", marks=pytest.mark.long),
        pytest.param(("librdkafka", "java"), 30, 1_000, id="30-kills", marks=JAVA),
    ],
)
def test_leaders_are_killed_under_load(
    tmp_path: Path,
    request: pytest.FixtureRequest,
    clients: tuple[str, ...],
    kills: int,
    records: int,
) -> None:
    """kill -9 of leaders, a third of them the active controller, each restarted and in sync before
    the next: 10^5 records and more over thirty failovers, every one acknowledged and there once."""
    controllers = 0
    with campaign(tmp_path, clients, request) as running:
        for number in range(kills):
            controller = victim = active_controller(running.cluster)
            if number % 3:
                victim = running.leader(running.loads[0].topic, number % PARTITIONS)
            assert victim in {running.leader(*place) for place in running.places}
            controllers += victim == controller
            running.write(records)
            running.cluster.kill(victim)
            running.write_through(records)
            running.cluster.restart(victim)
            running.wait_until_whole()
            running.spread_leaders()
        running.write(records)
    assert controllers >= kills // 3
    _judge_epochs(running, kills)


def _judge_epochs(running: Campaign, kills: int) -> None:
    """Each replica has every epoch's number in its batches, as Kafka's own tool reads it."""
    topic = running.loads[0].topic
    wanted = 7 if kills >= 10 else 2
    for broker in running.cluster.broker_ids:
        directory = running.cluster.nodes[broker].log_directory
        found = {header.leader_epoch for header, _ in batches_on_disk(directory, topic)}
        assert max(found) >= wanted, found
        if kills >= 30:
            files = ",".join(str(path) for path in segment_files(directory, topic))
            shown = run_tool(Tool.DUMP_LOG, ["--files", files]).output
            assert all(f"partitionLeaderEpoch: {each} " in shown for each in found)


@pytest.mark.long
@pytest.mark.scenario("X-16", "D3-P2b", "D1-V4")
@pytest.mark.parametrize(
    ("clients", "pauses"),
    [
        pytest.param(("librdkafka", "kafka-python"), 4, id="4-pauses"),
        pytest.param(("java",), 4, id="java", marks=pytest.mark.java),
    ],
)
def test_leaders_fall_asleep_under_load(
    tmp_path: Path, request: pytest.FixtureRequest, clients: tuple[str, ...], pauses: int
) -> None:
    """SIGSTOP of a leader until another leads, then SIGCONT: the sleeper follows, with nothing of
    its own left."""
    with campaign(
        tmp_path, clients, request, settings=SESSION, request_timeout_ms=2_500
    ) as running:
        for number in range(pauses):
            running.write(500)
            topic, partition = running.places[number % PARTITIONS]
            sleeper = running.leader(topic, partition)
            os.kill(running.cluster.nodes[sleeper].pid, signal.SIGSTOP)
            try:
                witness = next(each for each in running.cluster.broker_ids if each != sleeper)

                def has_moved(witness: int = witness, sleeper: int = sleeper) -> bool:
                    told = running.cluster.standing(topic, partition, told_by=witness)  # noqa: B023
                    return told is not None and told.leader not in (sleeper, -1)

                wait_until(has_moved, "another leader")
                running.write_through(100)
            finally:
                os.kill(running.cluster.nodes[sleeper].pid, signal.SIGCONT)
            running.wait_until_whole()
            running.spread_leaders()
        running.write(500)


@pytest.mark.long
@pytest.mark.scenario("D5-R12", "D5-B1", "N47")
def test_whole_racks_are_killed_under_load(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Three racks of two brokers and as many controllers: each rack is killed in turn, and the two
    others go on with the minimum of two copies."""
    racks = {node: "abc"[(node - 1) // 2] for node in range(1, 7)}
    roles = tuple(BOTH_ROLES if node % 2 else "broker" for node in racks)
    settings_of = {node: {"broker.rack": rack} for node, rack in racks.items()}
    clients = ("librdkafka", "kafka-python")
    with campaign(tmp_path, clients, request, roles=roles, settings_of=settings_of) as running:
        for rack in "abc":
            running.write(500)
            victims = [node for node, its_rack in racks.items() if its_rack == rack]
            for victim in victims:
                running.cluster.kill(victim)
            running.write_through(100)
            for victim in victims:
                running.cluster.nodes[victim].launch()
            running.wait_until_whole()
        running.write(500)


ORDERS = list(itertools.permutations((1, 2, 3)))


@pytest.mark.scenario("X-45")
@pytest.mark.parametrize(
    "orders",
    [
        pytest.param(ORDERS[-1:], id="one-order"),
        pytest.param(ORDERS[:-1], id="each-order", marks=pytest.mark.long),
    ],
)
def test_the_whole_cluster_is_killed_and_restarted(
    tmp_path: Path,
    request: pytest.FixtureRequest,
    orders: list[tuple[int, ...]],
    record_property: pytest.RecordProperty,
) -> None:
    """kill -9 of all three at once, restarted in one order after the other: nobody has proof of a
    clean stop, the last known leaders lead, and all that was acknowledged is there."""
    with campaign(tmp_path, ("librdkafka", "kafka-python"), request) as running:
        for order in orders:
            running.write(400)
            for broker in order:
                os.kill(running.cluster.nodes[broker].pid, signal.SIGKILL)
            killed_s = time.time()
            running.cluster.kill_all()
            for broker in order:
                running.cluster.nodes[broker].launch()
            running.write_through(100)
            running.wait_until_whole()
            _record_return(running, order, killed_s, record_property)
            running.spread_leaders()
        running.write(400)


def _record_return(
    running: Campaign,
    order: tuple[int, ...],
    killed_s: float,
    record_property: pytest.RecordProperty,
) -> None:
    """How long after the last registration everything was led again."""

    def after(kind: str, *words: str) -> list[float]:
        return [
            event.at_s
            for event in all_events(running.cluster, kind, *words)
            if event.at_s > killed_s
        ]

    registered_s = max(after("RegisteredHere"))
    led_s = [
        min(after("BecameLeader", f"partition={topic}-{partition}"))
        for topic, partition in running.places
    ]
    text = f"{order}: led {1_000 * (max(led_s) - registered_s):.0f} ms after the last registration"
    record_property("return", text)
    print(text)


@pytest.mark.scenario("X-46", "D1-T2", "D5-R6")
@pytest.mark.parametrize(
    ("clients", "rounds"),
    [
        pytest.param(("librdkafka", "kafka-python"), 1, id="one-round"),
        pytest.param(("java",), 3, id="java", marks=JAVA),
    ],
)
def test_a_rolling_restart_under_load(
    tmp_path: Path, request: pytest.FixtureRequest, clients: tuple[str, ...], rounds: int
) -> None:
    """SIGTERM and start, one broker after the other, each when all replicas are in sync: no client
    hears an error, and leaders return to their preferred brokers by themselves."""
    soon: dict[str, Setting] = {"leader.imbalance.check.interval.seconds": 1}
    with campaign(tmp_path, clients, request, settings=soon) as running:
        for _ in range(rounds):
            for broker in running.cluster.broker_ids:
                running.write(300)
                assert running.cluster.nodes[broker].stop() == 0
                running.write_through(100)
                running.cluster.restart(broker)
                running.wait_until_whole()
        for topic, partition in running.places:
            wait_until(
                lambda t=topic, p=partition: (
                    running.leader(t, p) == running._standing(t, p).replicas[0]
                ),
                f"{topic}-{partition} to be led as preferred",
            )
        running.write(300)
