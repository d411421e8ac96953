"""`./dev bench`: figures of this checkout next to Apache Kafka's, measured in the same run."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path

from bench.audit import Audit
from bench.brokers import KAFKA, TIDELOG
from bench.columns import Columns
from bench.failover import Failover
from bench.groups import Groups
from bench.idle import Idle
from bench.partitions import Partitions
from bench.pauses import Pauses
from bench.records import Records
from bench.reports import ClusterBench
from bench.rf3 import ThreeCopies
from bench.rows import QUIET_CORES, Figures, disturbance, limits_table, table
from bench.run import NAMES, run, say
from bench.scenarios import FULL, QUICK, TINY, Effort
from bench.spark import Spark
from bench.startup import StartUp
from bench.transactions import Transactions
from tests.kafka import KAFKA_VERSION, unavailable_reason

EFFORTS = {"full": FULL, "quick": QUICK, "tiny": TINY}
OF_THREE: dict[str, ClusterBench] = {
    bench.name: bench
    for bench in (
        *(Failover(), ThreeCopies(), StartUp(), Idle(), Partitions(), Pauses(), Groups()),
        Transactions(),
    )
}
OF_NONE: dict[str, Columns | Records] = {bench.name: bench for bench in (Columns(), Records())}
ON_SPARK: dict[str, Spark | Audit] = {bench.name: bench for bench in (Spark(), Audit())}


def main(arguments: list[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    if given and given[0] in OF_THREE:
        return OF_THREE[given[0]].main(given[1:])
    if given and given[0] in OF_NONE:
        return OF_NONE[given[0]].main(given[1:])
    if given and given[0] in ON_SPARK:
        return ON_SPARK[given[0]].main(given[1:])
    return measure_one_broker(given)


def measure_one_broker(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    effort: Effort = EFFORTS[options.effort]
    brokers = [name for name in (TIDELOG, KAFKA) if name not in options.without]
    if KAFKA in brokers and (reason := unavailable_reason()):
        say(f"without Apache Kafka: {reason}")
        brokers.remove(KAFKA)
    started_s = time.monotonic()
    figures = run(brokers, only=options.only or list(NAMES), effort=effort)
    print(_heading(effort, options.effort, time.monotonic() - started_s))
    print()
    print(table(figures))
    print()
    print(limits_table(figures, cores=os.cpu_count() or 1))
    if (others := disturbance(figures)) > QUIET_CORES:
        print(f"\nOther programs used {others:.1f} cores meanwhile: only CPU times can be trusted.")
    if options.json:
        _write_json(options.json, figures, options.effort)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="./dev bench",
        description="Measures one broker of Tidelog and, where Java and Maven's artifacts can be "
        f"had, of Apache Kafka {KAFKA_VERSION} in the same run, on loopback.",
        epilog=_others(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(effort="full", without=[])
    parser.add_argument(
        "--quick",
        dest="effort",
        action="store_const",
        const="quick",
        help="fewer repetitions and less volume: a few minutes",
    )
    parser.add_argument(
        "--tiny",
        dest="effort",
        action="store_const",
        const="tiny",
        help="only shows that everything runs; the figures mean nothing",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="NAME",
        choices=NAMES,
        help=f"some scenarios only: {', '.join(NAMES)}",
    )
    parser.add_argument(
        "--no-kafka",
        dest="without",
        action="append_const",
        const=KAFKA,
        help="Tidelog alone",
    )
    parser.add_argument(
        "--no-tidelog",
        dest="without",
        action="append_const",
        const=TIDELOG,
        help="Apache Kafka alone",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every sample to a file")
    return parser


def _others() -> str:
    """The benchmarks that have a name of their own."""
    of_three, of_none, on_spark = (
        "".join(f"  ./dev bench {name:<12} {bench.idea}\n" for name, bench in benches.items())
        for benches in (OF_THREE, OF_NONE, ON_SPARK)
    )
    return (
        f"three brokers have benchmarks of their own, each with --help:\n{of_three}\n"
        f"without any broker:\n{of_none}\n"
        f"on Spark:\n{on_spark}\n"
        "What each line means: docs/benchmarks.md. A full run takes about a quarter of an hour;\n"
        "nothing else should be running."
    )


def _heading(effort: Effort, name: str, took_s: float) -> str:
    return (
        f"{name} run, {effort.repetitions} repetitions, {took_s:.0f} s; {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, {platform.system()} {platform.machine()}. "
        "Median (least–most)."
    )


def _write_json(path: Path, figures: Figures, effort: str) -> None:
    run = {"effort": effort, "cores": os.cpu_count(), "python": platform.python_version()}
    path.write_text(json.dumps({**run, "figures": figures.plain()}, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
