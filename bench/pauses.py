"""`./dev bench pauses`: brokers that are stopped for half a second are not taken for dead.

SIGSTOP and SIGCONT on brokers chosen by chance, while a writer writes and other programs use every
core. A session lasts 9 s, so nobody may be fenced: each BrokerFenced in a log is a false alarm.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.brokers import TIDELOG
from bench.clusters import Cluster, running_cluster
from bench.failover import ASSIGNMENT, TOPIC
from bench.log_events import log_events
from bench.reports import ClusterBench, bytecode_kept
from bench.rows import Figures, Metric
from bench.writing import SteadyWriter

BETWEEN_S = (0.2, 2.0)
SPIN = """
import sys, threading
threading.Thread(target=sys.stdin.read).start()
while threading.active_count() > 1:
    pass
"""
"""Ends with its standard input, and so with whoever started it."""
FALSE_ALARMS = Metric(
    title="brokers fenced although they lived", unit="times", more_is_better=False, floor=0
)
OTHERS = {
    "BrokerFenced": FALSE_ALARMS,
    "ControllerActivated": Metric(
        title="changes of the active controller", unit="times", more_is_better=False
    ),
    "LeaderElected": Metric(
        title="changes of a partition's leader", unit="times", more_is_better=False
    ),
    "IsrProposed": Metric(title="changes of in-sync sets", unit="times", more_is_better=False),
}


class Pauses(ClusterBench):
    """Counts what short pauses set off."""

    name = "pauses"
    idea = "half-second pauses of single brokers on a loaded machine: nobody may be fenced"
    compares = False

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--minutes", type=float, default=10.0, metavar="M")
        parser.add_argument("--pause-ms", type=int, default=500, metavar="MS")
        parser.add_argument("--seed", type=int, default=1, metavar="N", help="of whom and when")
        parser.add_argument(
            "--spinners", type=int, default=os.cpu_count() or 1, metavar="N", help="of other load"
        )

    def measure(self, options: argparse.Namespace, brokers: list[str], figures: Figures) -> None:
        chance = random.Random(options.seed)
        with bytecode_kept(), running_cluster(TIDELOG) as cluster:
            cluster.create_topic(TOPIC, ASSIGNMENT)
            begun = _counts(cluster)
            with (
                _spinning(options.spinners),
                SteadyWriter(address=cluster.address, topic=TOPIC) as writer,
            ):
                writer.to(0)
                started_s = time.monotonic()
                pulses = 0
                while time.monotonic() - started_s < 60 * options.minutes:
                    pause(cluster, chance.choice(list(cluster.addresses)), options.pause_ms)
                    pulses += 1
                    if pulses % 50 == 0:
                        self.tell(f"{pulses} pauses, {_counts(cluster)}")
                    time.sleep(chance.uniform(*BETWEEN_S))
                gap = writer.longest_gap(started_s)
                outcome = writer.finish()
            ended = _counts(cluster)
        for name, metric in OTHERS.items():
            figures.add(metric, TIDELOG, float(ended[name] - begun[name]))
        figures.add(Metric(title="pauses", unit="times"), TIDELOG, float(pulses))
        if gap is not None:
            longest = Metric(title="longest write gap", unit="ms", more_is_better=False)
            figures.add(longest, TIDELOG, gap.length_ms)
        lost = Metric(title="records not delivered", unit="times", more_is_better=False, floor=0)
        figures.add(lost, TIDELOG, float(outcome["lost"]))


def pause(cluster: Cluster, broker_id: int, pause_ms: int) -> None:
    pid = cluster.pid(broker_id)
    assert pid is not None, f"broker {broker_id} ended by itself"
    os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(pause_ms / 1000)
    finally:
        os.kill(pid, signal.SIGCONT)


def _counts(cluster: Cluster) -> dict[str, int]:
    found = dict.fromkeys(OTHERS, 0)
    for broker_id in cluster.addresses:
        for event in log_events(cluster.log_lines(broker_id), *OTHERS):
            found[event.name] += 1
    return found


@contextmanager
def _spinning(count: int) -> Iterator[None]:
    """So many programs that take whatever they get."""
    command = [sys.executable, "-c", SPIN]
    spinners = [subprocess.Popen(command, stdin=subprocess.PIPE) for _ in range(count)]
    try:
        yield
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.communicate()
