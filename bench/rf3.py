"""`./dev bench rf3`: writing with three copies on three brokers, next to Apache Kafka.

The scenarios are those of the single broker, with a replication factor of 3 and
`min.insync.replicas=2`; all three brokers and the clients share the machine. CPU time is that of
all three brokers together.
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack

from bench.clusters import Cluster, running_cluster
from bench.reports import ClusterBench, bytecode_kept
from bench.rows import Figures
from bench.run import take_turns, warm_up
from bench.scenarios import (
    FULL,
    QUICK,
    SEVERAL_PARTITIONS,
    TINY,
    Effort,
    OneInFlight,
    Scenario,
    Traffic,
    Unbatched,
    Wanted,
)

EFFORTS: dict[str, Effort] = {"full": FULL, "quick": QUICK, "tiny": TINY}
CHEAPER = Wanted(bar=0.6)
TRAFFIC = [
    Traffic(
        label="1 KiB",
        value_bytes=1024,
        volume_bytes=6 * 10**8,
        partitions=partitions,
        is_read=False,
        produce=Wanted(200, 1.5),
        cost=CHEAPER,
    )
    for partitions in (1, SEVERAL_PARTITIONS)
] + [
    Traffic(
        label="100 B",
        value_bytes=100,
        volume_bytes=2 * 10**8,
        partitions=partitions,
        is_read=False,
        records=Wanted(1000, 1.2),
        cost=CHEAPER,
    )
    for partitions in (1, SEVERAL_PARTITIONS)
]
SMALL: dict[str, Scenario] = {
    "latency": OneInFlight(middle=Wanted(1.0, 0.7), slow=Wanted(3.0, 0.7)),
    "connections": Unbatched(rate=Wanted(10_000, 2.0)),
}
SCENARIOS: dict[str, Scenario] = {**{traffic.name: traffic for traffic in TRAFFIC}, **SMALL}


class ThreeCopies(ClusterBench):
    """Throughput, cost and times of writes with `acks=all` on three brokers."""

    name = "rf3"
    idea = "writes with acks=all and three copies: throughput, CPU time, latency"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--effort", choices=sorted(EFFORTS), default="full")
        parser.add_argument(
            "--only", nargs="+", metavar="NAME", choices=SCENARIOS, help=", ".join(SCENARIOS)
        )

    def measure(self, options: argparse.Namespace, brokers: list[str], figures: Figures) -> None:
        effort = EFFORTS[options.effort]
        chosen = {
            name: SCENARIOS[name] for name in SCENARIOS if name in (options.only or SCENARIOS)
        }
        with bytecode_kept(), ExitStack() as stack:
            clusters: list[Cluster] = []
            for name in brokers:
                self.tell(f"starting {name}")
                clusters.append(stack.enter_context(running_cluster(name)))
            for cluster in clusters:
                warm_up(cluster, [*SMALL.values(), *TRAFFIC], effort, self.tell)
            take_turns(clusters, chosen, figures, effort, self.tell)
