"""`./dev bench spark`: our source and our exactly-once sink next to Spark's own, in one run.

One session with two threads does everything in turns on three brokers, which share the machine with
it. The first rounds warm up and do not count. Rows are counted and compared, so that who loses
some, or publishes some twice, has no figure at all.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench.brokers import KAFKA, TIDELOG
from bench.clusters import Cluster, running_cluster
from bench.process_stat import family_cpu_s, machine_cpu_s
from bench.rows import QUIET_CORES
from bench.spark_figures import Speeds
from bench.spark_loads import FULL, LOADS, QUICK, TINY, Effort, Load, filled_topic
from bench.spark_read import Reading
from bench.spark_rounds import run_rounds, say
from bench.spark_write import TASKS, Writing
from tests.kafka import KAFKA_VERSION, KafkaUnavailable
from tests.spark.connector import NAME as CONNECTOR
from tests.spark.connector import connector_jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BROKERS = {"kafka": KAFKA, "tidelog": TIDELOG}
READ, WRITE = "read", "write"
MEMORY = "6g"


class Spark:
    """The verb."""

    name = "spark"
    idea = "reading, exactly-once writing and copying, next to Spark's own connector"

    def main(self, arguments: list[str]) -> int:
        options = _parser().parse_args(arguments)
        effort: Effort = options.effort
        if options.rounds is not None:
            effort = replace(effort, rounds=options.rounds)
        if options.volume is not None:
            effort = replace(effort, volume=options.volume)
        loads = [
            replace(load.times(effort.volume), are_equal=options.equal)
            for load in LOADS
            if not options.size or load.name in options.size
        ]
        try:
            jars = connector_jars()
        except KafkaUnavailable as unavailable:
            say(f"nothing to compare with: {unavailable}")
            return 2
        parts = options.only or [READ, WRITE]
        return _run(jars, BROKERS[options.brokers], loads, parts, effort, options.json)


def _run(
    jars: Iterable[Path],
    brokers: str,
    loads: list[Load],
    parts: list[str],
    effort: Effort,
    json_path: Path | None,
) -> int:
    from tidelog.spark import spark_session

    extra = {"spark.jars": ",".join(map(str, jars)), "spark.driver.memory": MEMORY}
    spark = spark_session(app="./dev bench spark", master=f"local[{TASKS}]", extra=extra)
    speeds = Speeds()
    with running_cluster(brokers) as cluster:
        started_s, machine_s, family_s = time.monotonic(), machine_cpu_s(), family_cpu_s()
        for load in loads:
            measure(spark, cluster, load, parts, effort, speeds)
        took_s = time.monotonic() - started_s
        others = (machine_cpu_s() - machine_s - (family_cpu_s() - family_s)) / took_s
    spark.stop()
    print(
        f"spark: {effort.name} run, {effort.rounds} rounds, {took_s:.0f} s; local[{TASKS}], "
        f"{CONNECTOR}, three brokers of {brokers}{f' {KAFKA_VERSION}' if brokers == KAFKA else ''};"
        f" {os.cpu_count()} cores, Python {platform.python_version()}, {platform.machine()}."
        " Median (least–most).\n"
    )
    print(speeds.table())
    if others > QUIET_CORES:
        print(f"\nOther programs used {others:.1f} cores meanwhile: trust the ratios at most.")
    print(f"\n{speeds.summary()}")
    if json_path:
        head = {"bench": Spark.name, "effort": effort.name, "other_cores": others}
        json_path.write_text(json.dumps({**head, "figures": speeds.plain()}, indent=1) + "\n")
    return 0


def measure(
    spark: SparkSession,
    cluster: Cluster,
    load: Load,
    parts: list[str],
    effort: Effort,
    speeds: Speeds,
) -> None:
    """Each part with a topic of its own, which is deleted afterwards."""
    if READ in parts:
        say(f"{load.read_records:,} records of {load.name} to be read")
        topic = filled_topic(cluster, load, load.read_records)
        reading = Reading(spark, cluster, load, topic)
        reading.check()
        run_rounds(reading.steps(), effort, speeds)
        reading.close()
    if WRITE in parts:
        say(f"{load.written_records:,} records of {load.name} to be written")
        topic = filled_topic(cluster, load, load.written_records)
        writing = Writing(spark, cluster, load, topic)
        run_rounds(writing.steps(), effort, speeds)
        writing.close()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="./dev bench spark",
        description=f"On three brokers and local[{TASKS}]: {Spark.idea}.",
        epilog="What each line means: docs/benchmarks.md. Nothing else should be running.",
    )
    parser.set_defaults(effort=FULL)
    for effort, about in (
        (QUICK, "fewer rounds, less volume: about ten minutes"),
        (TINY, "only shows that everything runs; the figures mean nothing"),
    ):
        parser.add_argument(
            f"--{effort.name}", dest="effort", action="store_const", const=effort, help=about
        )
    parser.add_argument("--rounds", type=int, metavar="N", help="that count")
    parser.add_argument("--volume", type=float, metavar="X", help="times the records of a full run")
    parser.add_argument(
        "--brokers",
        choices=tuple(BROKERS),
        default="kafka",
        help="whose brokers: kafka (the default), or tidelog",
    )
    parser.add_argument("--only", nargs="+", choices=(READ, WRITE), help="a part of it")
    parser.add_argument(
        "--size", nargs="+", choices=[load.name for load in LOADS], help="values of one size"
    )
    parser.add_argument("--equal", action="store_true", help="values of exactly equal sizes")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every sample")
    return parser


if __name__ == "__main__":
    sys.exit(Spark().main(sys.argv[1:]))
