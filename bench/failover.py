"""`./dev bench failover`: how long a writer waits when the leader of its partition goes away.

A gap is the longest time between two consecutive acknowledgements around the kill, as one
librdkafka producer sees it: idempotent, otherwise with its defaults, a record every few
milliseconds. Replication factor 3, `min.insync.replicas` 2, brokers with their default settings. In
turns the victim is the active controller as well, and not.
"""

from __future__ import annotations

import argparse
import sys
import time
from statistics import quantiles
from typing import NamedTuple

from bench.brokers import KAFKA
from bench.clusters import Cluster, NotInTime, running_cluster, wait
from bench.log_events import log_events
from bench.reports import ClusterBench, bytecode_kept
from bench.rows import Figures, Metric
from bench.writing import SteadyWriter

TOPIC = "failover"
ASSIGNMENT = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
LED_BY = {0: 1, 1: 2, 2: 3}
"""Partition to broker: each broker is the preferred leader of one."""
FLOWING = 100
"""So many records written after a change were acknowledged: the writer does not wait any more."""

KILL = "kill -9 of a leader"
KILL_CONTROLLER = "kill -9 of a leader that is the controller"
STOP = "SIGTERM of a leader"
STRANGER = "kill -9 of a leader, the writer not connected to others"
RETURN = "return of the broker"
MEDIAN_MS, LONGEST_MS = 500.0, 1500.0
BARS = {KILL: 1 / 20, KILL_CONTROLLER: 1 / 20, STOP: 1 / 4}
"""Ratios to Apache Kafka that are asked for."""


class Failover(ClusterBench):
    """The gaps of many kills and stops, each kind apart."""

    name = "failover"
    idea = "how long a writer waits when its leader is killed or stopped"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--kills", type=int, default=30, metavar="N")
        parser.add_argument("--stops", type=int, default=10, metavar="N", help="of SIGTERM")
        parser.add_argument(
            "--stranger-kills",
            type=int,
            default=10,
            metavar="N",
            help="with a writer that has to connect to the next leader first",
        )
        parser.add_argument(
            "--kafka-kills",
            type=int,
            default=10,
            metavar="N",
            help="each takes Kafka ten seconds and more; so many of the other kinds at most",
        )

    def measure(self, options: argparse.Namespace, brokers: list[str], figures: Figures) -> None:
        for name in brokers:
            most = options.kafka_kills if name == KAFKA else sys.maxsize
            plan = [KILL_CONTROLLER if each % 2 == 0 else KILL for each in range(options.kills)]
            plan = plan[:most] + [STOP] * min(options.stops, most)
            plan += [STRANGER] * min(options.stranger_kills, most)
            self.tell(f"{name}: starting")
            with bytecode_kept(), running_cluster(name) as cluster:
                gaps = self._gaps(cluster, plan)
            for what, found in gaps.items():
                note_gaps(figures, name, what, found)

    def _gaps(self, cluster: Cluster, plan: list[str]) -> dict[str, list[float]]:
        cluster.create_topic(TOPIC, ASSIGNMENT)
        kinds = (KILL_CONTROLLER, KILL, STOP, STRANGER)
        gaps: dict[str, list[float]] = {kind: [] for kind in (*kinds, RETURN)}
        gaps |= {led_again(kind): [] for kind in kinds}
        with SteadyWriter(address=cluster.address, topic=TOPIC) as writer:
            for number, what in enumerate(plan, start=1):
                victim = choose_victim(cluster, what, number)
                found = _around(cluster, writer, what, victim)
                gaps[what].append(found.gap_ms)
                gaps[RETURN].append(found.return_ms)
                led_ms = "?"
                if found.led_again_ms is not None:
                    gaps[led_again(what)].append(found.led_again_ms)
                    led_ms = f"{found.led_again_ms:.0f}"
                self.tell(
                    f"{cluster.name} {number}/{len(plan)}: {what}: {found.gap_ms:.0f} ms, "
                    f"another led after {led_ms} ms"
                )
            outcome = writer.finish()
        self.tell(f"{cluster.name}: {outcome['acknowledged']} acknowledged, {outcome['lost']} not")
        if outcome["lost"]:
            raise NotInTime(f"records were not delivered: {outcome['failures']}")
        return gaps


def choose_victim(cluster: Cluster, what: str, number: int) -> int:
    """The controller or, in turns, one of the others."""
    controller: int | None = None

    def is_known() -> bool:
        nonlocal controller
        controller = cluster.controller()
        return controller is not None

    wait(is_known, "an active controller")
    if what == KILL_CONTROLLER:
        assert controller is not None
        return controller
    others = sorted(set(cluster.addresses) - {controller})
    return others[number // 2 % len(others)]


def led_again(what: str) -> str:
    return f"{what} until another leads"


class Found(NamedTuple):
    """What one departure and the return cost."""

    gap_ms: float
    return_ms: float
    """The longest gap while the broker comes back."""
    led_again_ms: float | None
    """Since the signal, by the new leader's own log; the rest of the gap is the client's."""


def _around(cluster: Cluster, writer: SteadyWriter, what: str, victim: int) -> Found:
    cluster.elect_preferred(TOPIC, LED_BY)
    partition = next(partition for partition, leader in LED_BY.items() if leader == victim)
    connect_to = [partition] if what == STRANGER else LED_BY
    for each in sorted(connect_to, key=lambda each: each == partition):
        # To all brokers, the victim last: to one that has just come back librdkafka would not be
        # connected yet, and its own back-off (up to ten seconds) would be measured.
        writer.to(each)
        _until_flowing(writer, time.monotonic())
    gone_s, gone_at_s = time.monotonic(), time.time()
    if what == STOP:
        cluster.stop(victim)
    else:
        cluster.kill(victim)
    _until_flowing(writer, gone_s)
    _until_flowing(writer, time.monotonic())
    gap = writer.longest_gap(gone_s)
    back_s = time.monotonic()
    cluster.start(victim)
    cluster.wait_until_formed()
    cluster.wait_until_in_sync(TOPIC)
    _until_flowing(writer, time.monotonic())
    return_gap = writer.longest_gap(back_s)
    assert gap is not None and return_gap is not None, "records were acknowledged in between"
    leading_at_s = _leading_at_s(cluster, partition, since_at_s=gone_at_s)
    led_again_ms = None if leading_at_s is None else (leading_at_s - gone_at_s) * 1000
    return Found(gap.length_ms, return_gap.length_ms, led_again_ms)


def _leading_at_s(cluster: Cluster, partition: int, *, since_at_s: float) -> float | None:
    """When somebody else began to lead; only Tidelog's logs tell."""
    moments = [
        event.at_s
        for broker_id in cluster.addresses
        for event in log_events(cluster.log_lines(broker_id), "BecameLeader")
        if event.at_s >= since_at_s and event.has("partition", f"{TOPIC}-{partition}")
    ]
    return min(moments, default=None)


def _until_flowing(writer: SteadyWriter, since_s: float) -> None:
    wait(
        lambda: writer.acknowledged(written_since_s=since_s) >= FLOWING,
        f"{FLOWING} acknowledgements",
    )


def note_gaps(figures: Figures, broker: str, what: str, gaps_ms: list[float]) -> None:
    """Median, ninth decile and longest, each as a line of the table."""
    if not gaps_ms:
        return
    title = what if what.endswith("leads") else f"write gap, {what}"
    killed = what in (KILL, KILL_CONTROLLER)
    lines = {
        "median": (percentile(gaps_ms, 50), MEDIAN_MS if killed else None, BARS.get(what)),
        "p90": (percentile(gaps_ms, 90), None, None),
        "longest": (max(gaps_ms), LONGEST_MS if killed else None, None),
    }
    for line, (figure, floor, bar) in lines.items():
        metric = Metric(
            title=f"{title}: {line}", unit="ms", more_is_better=False, floor=floor, bar=bar
        )
        figures.add(metric, broker, figure)
    count = Metric(title=f"{title}: how many", unit="times")
    figures.add(count, broker, float(len(gaps_ms)))


def percentile(figures: list[float], percent: int) -> float:
    """By interpolation between the nearest two; of one figure it is that one."""
    if len(figures) == 1:
        return figures[0]
    return quantiles(figures, n=100, method="inclusive")[percent - 1]
