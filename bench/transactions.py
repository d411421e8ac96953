"""`./dev bench transactions`: transactions of 100 records, next to Apache Kafka.

Three brokers each, with the same settings; both are up at the same time and take turns. One
producer does one transaction after the other: librdkafka's, which has the classic protocol only,
and Kafka's own in both protocols. So the clients' own pauses are in the figures of both.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from bench.clusters import Cluster, running_cluster
from bench.reports import ClusterBench, bytecode_kept
from bench.rows import Figures, Metric
from bench.transaction_producers import (
    RECORDS,
    JavaClient,
    JavaMachine,
    LibrdkafkaClient,
    TransactionClient,
    commit_pause_ms,
    finalize_transaction_version,
    transaction_rate,
)
from tests.kafka import unavailable_reason

SETTINGS = {"transaction.state.log.replication.factor": "3", "transaction.state.log.min.isr": "2"}
ORDER = ([1, 2, 3], [2, 3, 1], [3, 1, 2])
LED_BY = {0: 1, 1: 2, 2: 3}
TOPICS = {1: "one", 6: "six"}
"""By how many partitions a transaction writes to."""
STEADY = "steady"
LIBRDKAFKA, JAVA, PAUSE = PARTS = ("librdkafka", "java", "pause")
DEFAULT_LEVEL = 2
PROTOCOLS = {"version 2": DEFAULT_LEVEL, "classic": 0}
"""With the finalized transaction.version that makes Kafka's own producer use it."""
BARS = {LIBRDKAFKA: 5.0}
TINY = {"rounds": 1, "seconds": 0.2, "warm_up": 0.1, "kills": 1}

Connect = Callable[[Cluster, str], TransactionClient]


class Transactions(ClusterBench):
    """Commits per second and their times, and the pause when a coordinator is killed."""

    name = "transactions"
    idea = "transactions of 100 records: commits, latency, the coordinator's death"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--rounds", type=int, default=5, metavar="N", help="of each load")
        parser.add_argument("--seconds", type=float, default=5.0, metavar="S", help="of a round")
        parser.add_argument("--warm-up", type=float, default=60.0, metavar="S", help="of each load")
        parser.add_argument("--kills", type=int, default=3, metavar="N", help="of a coordinator")
        parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
        parser.add_argument("--tiny", action="store_true", help="only shows that everything runs")

    def measure(self, options: argparse.Namespace, brokers: list[str], figures: Figures) -> None:
        if options.tiny:
            vars(options).update(TINY)
        with bytecode_kept(), ExitStack() as stack:
            clusters: list[Cluster] = []
            for name in brokers:
                self.tell(f"{name}: starting")
                cluster = stack.enter_context(running_cluster(name, SETTINGS))
                for partitions, topic in TOPICS.items():
                    order = [ORDER[index % len(ORDER)] for index in range(partitions)]
                    cluster.create_topic(topic, order)
                cluster.create_topic(STEADY, [*ORDER])
                clusters.append(cluster)
            for part in PARTS:
                if part in options.only:
                    getattr(self, f"_{part}")(clusters, options, figures)

    def _librdkafka(
        self, clusters: Sequence[Cluster], options: argparse.Namespace, figures: Figures
    ) -> None:
        def connect(cluster: Cluster, transactional_id: str) -> TransactionClient:
            return LibrdkafkaClient(cluster.address, transactional_id)

        self._take_turns(clusters, LIBRDKAFKA, connect, options, figures)

    def _java(
        self, clusters: Sequence[Cluster], options: argparse.Namespace, figures: Figures
    ) -> None:
        if reason := unavailable_reason():
            self.tell(f"without Kafka's own producer: {reason}")
            return
        with JavaMachine() as machine:

            def connect(cluster: Cluster, transactional_id: str) -> TransactionClient:
                return JavaClient(machine, cluster.address, transactional_id)

            for protocol, level in PROTOCOLS.items():
                for cluster in clusters:
                    finalize_transaction_version(cluster, level)
                self._take_turns(clusters, f"Java, {protocol}", connect, options, figures)
        for cluster in clusters:
            finalize_transaction_version(cluster, DEFAULT_LEVEL)

    def _take_turns(
        self,
        clusters: Sequence[Cluster],
        client: str,
        connect: Connect,
        options: argparse.Namespace,
        figures: Figures,
    ) -> None:
        """Rounds of each number of partitions, each on one cluster after the other."""
        for cluster in clusters:
            self.tell(f"{cluster.name}: {client}, warming for {options.warm_up:g} s")
            thrown_away = Figures()
            ends_s = time.monotonic() + options.warm_up
            while time.monotonic() < ends_s:
                for partitions in TOPICS:
                    self._round(cluster, client, connect, partitions, options, thrown_away)
        for number in range(options.rounds):
            for partitions in TOPICS:
                for cluster in clusters:
                    self.tell(
                        f"{cluster.name}: {client}, partitions: {partitions}, "
                        f"round {number + 1} of {options.rounds}"
                    )
                    self._round(cluster, client, connect, partitions, options, figures)

    def _round(
        self,
        cluster: Cluster,
        client: str,
        connect: Connect,
        partitions: int,
        options: argparse.Namespace,
        figures: Figures,
    ) -> None:
        producer = connect(cluster, f"{client.replace(', ', '-').replace(' ', '-')}-{partitions}")
        found = transaction_rate(
            cluster, producer, TOPICS[partitions], partitions=partitions, seconds=options.seconds
        )
        producer.close()
        many = f"{partitions} partition{'s' if partitions > 1 else ''}"
        what = f"{client}: transactions of {RECORDS} records, {many}"
        rate = Metric(title=what, unit="commits/s", bar=BARS.get(client))
        figures.add(rate, cluster.name, found.per_s)
        times = {"p50": found.p50_ms, "p99": found.p99_ms}
        for name, time_ms in times.items():
            metric = Metric(title=f"{what}: {name}", unit="ms", more_is_better=False)
            figures.add(metric, cluster.name, time_ms)
        cost = Metric(title=what, unit="broker CPU-µs/commit", more_is_better=False)
        figures.add(cost, cluster.name, found.broker_us_each)

    def _pause(
        self, clusters: Sequence[Cluster], options: argparse.Namespace, figures: Figures
    ) -> None:
        title = "librdkafka: longest pause between commits, kill -9 of the coordinator"
        metric = Metric(title=title, unit="ms", more_is_better=False, bar=1 / 5)
        for number in range(options.kills):
            for cluster in clusters:
                cluster.elect_preferred(STEADY, LED_BY)
                found_ms = commit_pause_ms(cluster, STEADY, transactional_id=f"pause-{number}")
                self.tell(f"{cluster.name}: {found_ms:.0f} ms")
                figures.add(metric, cluster.name, found_ms)
