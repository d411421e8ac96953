"""`./dev bench groups`: consumer groups of both protocols, next to Apache Kafka.

Three brokers each, with the same settings: groups begin at once, `__consumer_offsets` has three
copies. Members that subscribe are librdkafka's, so their own pauses are in the figures of both.
"""

from __future__ import annotations

import argparse

from bench.brokers import TIDELOG
from bench.clusters import Cluster, running_cluster
from bench.group_members import assigned_s, coordinator_of, idle_members
from bench.group_offsets import commit_rate, load_s, pause_ms
from bench.idle import busy_cores
from bench.process_stat import proportional_mib
from bench.reports import ClusterBench, bytecode_kept
from bench.rows import Figures, Metric

SETTINGS = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.replication.factor": "3"}
ONE_LOG = {**SETTINGS, "offsets.topic.num.partitions": "1"}
PROTOCOLS = ("classic", "consumer")
ORDER = ([1, 2, 3], [2, 3, 1], [3, 1, 2])
PARTS = ("assigned", "commits", "pause", "idle", "load")
TINY = {
    "members": 2,
    "times": 1,
    "connections": 2,
    "seconds": 0.2,
    "warm_up": 0.1,
    "kills": 1,
    "groups": 3,
    "offsets": 100,
}


class Groups(ClusterBench):
    """Start, commits, a coordinator's death, idle groups and a large load."""

    name = "groups"
    idea = "groups: start, commits, the coordinator's death, idle cost, load"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--members", type=int, default=20, metavar="N")
        parser.add_argument("--times", type=int, default=3, metavar="N", help="of each start")
        parser.add_argument("--connections", type=int, default=30, metavar="N", help="that commit")
        parser.add_argument("--seconds", type=float, default=15.0, metavar="S")
        parser.add_argument("--warm-up", type=float, default=30.0, metavar="S", help="of commits")
        parser.add_argument("--kills", type=int, default=3, metavar="N", help="of a coordinator")
        parser.add_argument("--groups", type=int, default=1_000, metavar="N", help="that idle")
        parser.add_argument("--offsets", type=int, default=1_000_000, metavar="N", help="to load")
        parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
        parser.add_argument("--tiny", action="store_true", help="only shows that everything runs")

    def measure(self, options: argparse.Namespace, brokers: list[str], figures: Figures) -> None:
        if options.tiny:
            vars(options).update(TINY)
        for name in brokers:
            self.tell(f"{name}: starting")
            with bytecode_kept(), running_cluster(name, SETTINGS) as cluster:
                cluster.create_topic("groups", [*ORDER] * options.members)
                cluster.create_topic("steady", [*ORDER])
                for part in PARTS[:-1]:
                    if part in options.only:
                        self.tell(f"{name}: {part}")
                        getattr(self, f"_{part}")(cluster, options, figures)
        if "load" in options.only:
            self.tell(f"{TIDELOG}: load")
            with bytecode_kept(), running_cluster(TIDELOG, ONE_LOG) as cluster:
                self._load(cluster, options, figures)

    def _assigned(self, cluster: Cluster, options: argparse.Namespace, figures: Figures) -> None:
        """The first time of each warms up and does not count."""
        for protocol in PROTOCOLS:
            for number in range(options.times + 1):
                took_s = assigned_s(
                    cluster,
                    "groups",
                    group=f"start-{protocol}-{number}",
                    protocol=protocol,
                    members=options.members,
                )
                self.tell(f"{cluster.name}: {protocol}, {took_s:.2f} s")
                if number:
                    title = f"{protocol}: {options.members} members start, until all are assigned"
                    metric = Metric(title=title, unit="s", more_is_better=False, bar=1 / 5)
                    figures.add(metric, cluster.name, took_s)

    def _commits(self, cluster: Cluster, options: argparse.Namespace, figures: Figures) -> None:
        def rate(connections: int, seconds: float) -> None:
            found = commit_rate(cluster, "groups", connections=connections, seconds=seconds)
            what = f"commits, one under way at a time, connections: {connections}"
            each = Metric(title=what, unit="requests/s", bar=1.0)
            figures.add(each, cluster.name, found.per_s)
            median = Metric(title=f"{what}: p50", unit="ms", more_is_better=False)
            figures.add(median, cluster.name, found.p50_ms)
            cost = Metric(title=what, unit="broker CPU-µs/request", more_is_better=False)
            figures.add(cost, cluster.name, found.broker_us_each)

        connections = options.connections
        commit_rate(cluster, "groups", connections=connections, seconds=options.warm_up)
        rate(connections, options.seconds)
        rate(1, options.seconds / 3)

    def _pause(self, cluster: Cluster, options: argparse.Namespace, figures: Figures) -> None:
        for protocol in PROTOCOLS:
            for number in range(options.kills):
                group = f"pause-{protocol}-{number}"
                found_ms = pause_ms(cluster, "steady", group=group, protocol=protocol)
                self.tell(f"{cluster.name}: {protocol}, {found_ms:.0f} ms")
                title = f"{protocol}: longest pause between commits, kill -9 of the coordinator"
                metric = Metric(title=title, unit="ms", more_is_better=False, bar=1 / 5)
                figures.add(metric, cluster.name, found_ms)

    def _idle(self, cluster: Cluster, options: argparse.Namespace, figures: Figures) -> None:
        coordinator_of(cluster, "idle-0")
        before = 100 * busy_cores(cluster.pids, options.seconds)
        what = f"{options.groups} groups with a member each that only sends heartbeats"
        with idle_members(cluster, options.groups):
            during = 100 * busy_cores(cluster.pids, options.seconds)
            memory = sum(map(proportional_mib, cluster.pids))
        cpu = Metric(title=f"{what}: CPU", unit="% of a core", more_is_better=False, bar=1 / 5)
        figures.add(cpu, cluster.name, during)
        without = Metric(
            title="the same brokers before: CPU", unit="% of a core", more_is_better=False
        )
        figures.add(without, cluster.name, before)
        held = Metric(title=f"{what}: memory (PSS), all", unit="MiB", more_is_better=False)
        figures.add(held, cluster.name, memory)

    def _load(self, cluster: Cluster, options: argparse.Namespace, figures: Figures) -> None:
        per_group = min(1_000, options.offsets)
        cluster.create_topic("many", [[1 + index % 3] for index in range(per_group)])
        coordinator_of(cluster, "load-0")
        took_s, records = load_s(cluster, "many", offsets=options.offsets, per_group=per_group)
        self.tell(f"{cluster.name}: {records} records in {took_s:.2f} s")
        title = f"load of a coordinator with {options.offsets:,} offsets"
        figures.add(Metric(title=title, unit="s", more_is_better=False), cluster.name, took_s)
