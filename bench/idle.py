"""`./dev bench idle`: what three brokers cost that have nothing to do."""

from __future__ import annotations

import argparse
import time

from bench.clusters import Cluster, running_cluster
from bench.process_stat import cpu_s, proportional_mib, resident_mib
from bench.reports import ClusterBench, bytecode_kept
from bench.rows import Figures, Metric

SETTLING_S = 5.0
CPU = Metric(
    title="three idle brokers: CPU", unit="% of a core", more_is_better=False, floor=3, bar=0.2
)
RESIDENT = Metric(
    title="idle broker: resident memory, each", unit="MiB", more_is_better=False, floor=50
)
PROPORTIONAL = Metric(
    title="idle broker: memory without what is shared (PSS), each",
    unit="MiB",
    more_is_better=False,
)
TOGETHER = Metric(
    title="three idle brokers: memory (PSS)", unit="MiB", more_is_better=False, bar=1 / 8
)


class Idle(ClusterBench):
    """CPU time and memory while nothing happens."""

    name = "idle"
    idea = "CPU time and memory while nobody asks for anything"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--seconds", type=float, default=20.0, metavar="S")
        parser.add_argument("--times", type=int, default=3, metavar="N")

    def measure(self, options: argparse.Namespace, brokers: list[str], figures: Figures) -> None:
        for number in range(1, options.times + 1):
            for name in brokers:
                self.tell(f"{number}/{options.times}: {name}")
                with bytecode_kept(), running_cluster(name) as cluster:
                    time.sleep(min(SETTLING_S, options.seconds))
                    note_idle(figures, cluster, seconds=options.seconds)


def note_idle(figures: Figures, cluster: Cluster, *, seconds: float) -> None:
    figures.add(CPU, cluster.name, 100 * busy_cores(cluster.pids, seconds))
    for pid in cluster.pids:
        figures.add(RESIDENT, cluster.name, resident_mib(pid))
        figures.add(PROPORTIONAL, cluster.name, proportional_mib(pid))
    figures.add(TOGETHER, cluster.name, sum(map(proportional_mib, cluster.pids)))


def busy_cores(pids: list[int], seconds: float) -> float:
    """How many cores all of them together use in so many seconds from now on."""
    before_s, started_s = sum(map(cpu_s, pids)), time.monotonic()
    time.sleep(seconds)
    return (sum(map(cpu_s, pids)) - before_s) / (time.monotonic() - started_s)
