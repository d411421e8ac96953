"""`./dev bench partitions`: thousands of partitions with three copies each, on three brokers.

How long it takes to make them (until every broker says that all are led and in sync), what they
cost while nobody writes, and how long the partitions of one broker are without a leader after
`kill -9`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from bench.clusters import BROKERS, MIN_INSYNC, PAUSE_S, Cluster, NotInTime, running_cluster, wait
from bench.idle import busy_cores
from bench.log_events import log_events
from bench.process_stat import cpu_s, resident_mib
from bench.reports import ClusterBench, bytecode_kept
from bench.rows import Figures, Metric

TOPIC_PARTITIONS = 1000
"""Of one topic; so many are made with one request."""
PATIENCE_S = 900.0
PARTITIONS_PER_S = 4_000
"""To look at so many costs a second or so; it is waited as long before the next look."""
CHANGES = ("BecameLeader", "BecameFollower", "IsrCommitted")
SETTLING_S = 5.0


class Partitions(ClusterBench):
    """Making, holding and moving very many partitions."""

    name = "partitions"
    idea = "thousands of partitions: making them, holding them, moving the leaders of a dead broker"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--count", type=int, default=10_000, metavar="N")
        parser.add_argument("--seconds", type=float, default=20.0, metavar="S", help="of idleness")

    def measure(self, options: argparse.Namespace, brokers: list[str], figures: Figures) -> None:
        for name in brokers:
            with bytecode_kept(), running_cluster(name) as cluster:
                _Measured(self, cluster, figures, options.count).run(options.seconds)


class _Measured:
    """One cluster from empty to full to one broker less, and back."""

    def __init__(self, bench: ClusterBench, cluster: Cluster, figures: Figures, count: int) -> None:
        self._bench = bench
        self._cluster = cluster
        self._figures = figures
        self._count = count
        self._topics = [f"many-{start}" for start in range(0, count, TOPIC_PARTITIONS)]

    def run(self, idle_s: float) -> None:
        started_s, cpu_before_s = time.time(), self._cpu_s()
        for number, topic in enumerate(self._topics):
            self._create(topic, min(TOPIC_PARTITIONS, self._count - number * TOPIC_PARTITIONS))
        self._note("made: CPU time of all brokers", "s", self._cpu_s() - cpu_before_s)
        self._note("made (requests answered)", "s", time.time() - started_s)
        ended_s = self._wait("all led and in sync", self._is_complete, started_s)
        self._note("made (all led and in sync)", "s", ended_s - started_s)
        time.sleep(min(SETTLING_S, idle_s))
        self._note(
            "idle CPU of three brokers", "% of a core", 100 * busy_cores(self._cluster.pids, idle_s)
        )
        for pid in self._cluster.pids:
            self._note("idle memory, each", "MiB", resident_mib(pid))
        self._fail_over()

    def _fail_over(self) -> None:
        victim = self._cluster.controller() or 1
        others = [each for each in self._cluster.addresses if each != victim]
        for what, chosen in (("that is the controller", victim), ("that is not", None)):
            if chosen is None:
                controller = self._cluster.controller()
                chosen = next(each for each in others if each != controller)
            led = self._led_by(chosen)
            started_s = time.time()
            self._cluster.kill(chosen)
            cpu_before_s = self._cpu_s()
            has_moved = partial(self._has_moved, chosen)
            moved_s = self._wait("all led again", has_moved, started_s) - started_s
            self._bench.tell(f"{self._cluster.name}: {led} leaders moved in {moved_s:.2f} s")
            self._note(f"kill -9 of a broker {what}: all led again", "s", moved_s)
            self._note("move: CPU time of the others", "s", self._cpu_s() - cpu_before_s)
            started_s = time.time()
            self._cluster.start(chosen)
            ended_s = self._wait("all in sync again", self._is_complete, started_s)
            self._note("return of a broker: all in sync", "s", ended_s - started_s)

    def _create(self, topic: str, partitions: int) -> None:
        wanted = {"name": topic, "num_partitions": partitions, "replication_factor": BROKERS}
        answer = self._cluster.ask(
            "CreateTopics",
            7,
            topics=[{**wanted, "configs": [MIN_INSYNC]}],
            timeout_ms=int(PATIENCE_S * 1000),
        )
        if answer is None or answer.topics[0].error_code:
            raise NotInTime(f"{self._cluster.name} does not make {topic}: {answer}")

    def _standings(self, broker_id: int) -> list[Any]:
        """What one broker says of all partitions; nothing while it does not answer."""
        wanted = [{"name": topic} for topic in self._topics]
        answer = self._cluster.ask("Metadata", 12, at=broker_id, topics=wanted)
        if answer is None:
            return []
        return [each for topic in answer.topics for each in topic.partitions]

    def _is_complete(self) -> bool:
        for broker_id in self._cluster.addresses:
            partitions = self._standings(broker_id)
            if len(partitions) != self._count:
                return False
            if any(each.leader_id < 0 or len(each.isr_nodes) < BROKERS for each in partitions):
                return False
        return True

    def _led_by(self, broker_id: int) -> int:
        return sum(each.leader_id == broker_id for each in self._standings(broker_id))

    def _has_moved(self, dead: int) -> bool:
        """Every survivor says so."""
        for broker_id in self._cluster.addresses:
            if broker_id != dead:
                partitions = self._standings(broker_id)
                if len(partitions) != self._count or any(
                    each.leader_id in (dead, -1) for each in partitions
                ):
                    return False
        return True

    def _wait(self, what: str, condition: Callable[[], bool], started_s: float) -> float:
        """The moment when it was so. To ask about thousands of partitions is work for everybody, so
        it is done seldom; if the logs tell the moment of the last change, that is taken."""
        self._bench.tell(f"{self._cluster.name}: until {what}")
        wait(
            condition,
            f"{self._count} partitions {what}",
            within_s=PATIENCE_S,
            pause_s=max(PAUSE_S, self._count / PARTITIONS_PER_S),
        )
        noticed_s = time.time()
        changes = [
            event.at_s
            for broker_id in self._cluster.addresses
            for event in log_events(self._cluster.log_lines(broker_id), *CHANGES)
            if event.at_s >= started_s
        ]
        return max(changes, default=noticed_s)

    def _cpu_s(self) -> float:
        return sum(map(cpu_s, self._cluster.pids))

    def _note(self, what: str, unit: str, figure: float) -> None:
        title = f"{self._count:,} partitions, {what}"
        metric = Metric(title=title, unit=unit, more_is_better=False)
        self._figures.add(metric, self._cluster.name, figure)
