"""Campaigns: under load leaders are killed, put to sleep, restarted, by ones and all at once.

Three copies, a minimum of two, idempotent producers with acks=all: whatever happens, nothing that
was acknowledged is lost, nothing is stored twice or out of order, every acknowledged offset is
where its record stands (or the client does not know it), and all replicas end alike.
"""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.campaign_extent import CampaignExtent
from tests.kafka import Tool, run_tool
from tests.process.broker import Setting
from tests.process.campaign import Campaign, campaign
from tests.process.cluster import BOTH_ROLES
from tests.process.evidence import all_events
from tests.process.load import PARTITIONS
from tests.process.target import IS_KAFKA
from tests.process.waiting import wait_until
from tests.process.wire import segment_files
from tidelog.core.wire.record_batch import batches

pytestmark = pytest.mark.skipif(IS_KAFKA, reason="Apache Kafka as a cluster is another harness")

JAVA = [pytest.mark.java, pytest.mark.long]
KILLS_PART, PAUSES_PART = 12, 5
"""At most so many, but for `--whole-campaigns`."""
SESSION: dict[str, Setting] = {
    "broker.heartbeat.interval.ms": 500,
    "broker.session.timeout.ms": 3_000,
}


@pytest.mark.scenario("D1-T1", "D1-E2", "D1-V4", "D3-Q5", "D3-PG5", "D5-F2", "D5-F3")
@pytest.mark.scenario("D3-BP1-G1", "D3-BP3-G1", "X-50")
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
    extent: CampaignExtent,
) -> None:
    """kill -9 of leaders, a third of them the active controller, each restarted and in sync before
    the next: 10^5 records and more over thirty failovers, every one acknowledged and there once.

    Most runs have twelve of the thirty, which is four for each partition."""
    kills = extent.size(min(kills, KILLS_PART), whole=kills)
    controllers = 0
    with campaign(tmp_path, clients, request) as running:
        for number in range(kills):
            controller = victim = running.cluster.active_controller()
            if number % 3:
                victim = running.leader(running.loads[0].topic, number % PARTITIONS)
            running.place_led_by(victim)
            controllers += victim == controller
            running.write(records)
            running.cluster.kill(victim)
            running.write_through(records)
            running.cluster.rejoin(victim)
            running.wait_until_whole()
            running.spread_leaders()
        running.write(records)
    assert controllers >= kills // 3
    _judge_epochs(tmp_path, running.loads[0].topic, kills)


def _judge_epochs(directory: Path, topic: str, kills: int) -> None:
    """Each replica has the leader epochs in its batches, and Kafka's own tool reads them there."""
    epochs_in: dict[str, set[int]] = {}
    for data in (directory / f"node-{broker}" / "data" for broker in (1, 2, 3)):
        found: set[int] = set()
        for partition in range(PARTITIONS):
            for path in segment_files(data, topic, partition=partition):
                headers = (header for _, header in batches(memoryview(path.read_bytes())))
                epochs_in[str(path)] = {header.leader_epoch for header in headers}
                found |= epochs_in[str(path)]
        assert {0, 1, 2} <= found
        assert kills < KILLS_PART or 7 in found
    if kills >= KILLS_PART:
        output = run_tool(Tool.DUMP_LOG, ["--files", ",".join(epochs_in)]).output
        shown = dict(each.split("\n", 1) for each in output.split("Dumping ")[1:])
        assert shown.keys() == epochs_in.keys()
        for name, epochs in epochs_in.items():
            assert all(f"partitionLeaderEpoch: {each} " in shown[name] for each in epochs)


@pytest.mark.long
@pytest.mark.scenario("X-16", "D3-P2b", "D1-V4")
@pytest.mark.parametrize(
    ("clients", "pauses"),
    [
        pytest.param(("kafka-python",), 5, id="5-pauses"),
        pytest.param(("librdkafka", "java"), 12, id="12-pauses", marks=pytest.mark.java),
    ],
)
def test_leaders_fall_asleep_under_load(
    tmp_path: Path,
    request: pytest.FixtureRequest,
    clients: tuple[str, ...],
    pauses: int,
    extent: CampaignExtent,
) -> None:
    """SIGSTOP of a leader, a third of them the active controller, until another leads; then
    SIGCONT: the sleeper follows, with nothing of its own left."""
    pauses = extent.size(min(pauses, PAUSES_PART), whole=pauses)
    controllers = 0
    with campaign(
        tmp_path, clients, request, settings=SESSION, request_timeout_ms=2_500
    ) as running:
        for number in range(pauses):
            controller = sleeper = running.cluster.active_controller()
            if number % 3:
                sleeper = running.leader(running.loads[0].topic, number % PARTITIONS)
            controllers += sleeper == controller
            running.write(500)
            topic, partition = running.place_led_by(sleeper)
            running.cluster.pause(sleeper)
            try:
                witness = next(each for each in running.cluster.broker_ids if each != sleeper)

                def has_moved(
                    witness: int = witness,
                    sleeper: int = sleeper,
                    topic: str = topic,
                    partition: int = partition,
                ) -> bool:
                    view = running.cluster.partition_view(topic, partition, via=witness)
                    return view is not None and view.leader not in (sleeper, -1)

                wait_until(has_moved, "another leader")
                running.write_through(100)
            finally:
                running.cluster.resume(sleeper)
            running.wait_until_whole()
            running.spread_leaders()
        running.write(500)
    assert controllers >= pauses // 3


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
                running.cluster.launch_node(victim)
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
    record_property: Callable[[str, object], None],
) -> None:
    """kill -9 of all three at once, restarted in one order after the other: nobody has proof of a
    clean stop, the last known leaders lead, and all that was acknowledged is there."""
    with campaign(tmp_path, ("librdkafka", "kafka-python"), request) as running:
        for order in orders:
            running.write(400)
            for broker in order:
                pid = running.cluster.nodes[broker].pid
                assert pid is not None
                os.kill(pid, signal.SIGKILL)
            killed_s = time.time()
            running.cluster.launcher.kill(running.cluster.node_ids)
            for broker in order:
                running.cluster.launch_node(broker)
            running.write_through(100)
            running.wait_until_whole()
            _record_return(running, order, killed_s, record_property)
            running.spread_leaders()
        running.write(400)


def _record_return(
    running: Campaign,
    order: tuple[int, ...],
    killed_s: float,
    record_property: Callable[[str, object], None],
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
                assert running.cluster.stop_node(broker) == 0
                running.write_through(100)
                running.cluster.rejoin(broker)
                running.wait_until_whole()
        for topic, partition in running.places:
            wait_until(
                partial(
                    lambda t, p: running.leader(t, p) == running.standing(t, p).replicas[0],
                    topic,
                    partition,
                ),
                f"{topic}-{partition} to be led as preferred",
            )
        running.write(300)
