"""What the benchmarks of three brokers share: options, progress, the table with its verdicts."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.brokers import KAFKA, TIDELOG
from bench.process_stat import machine_cpu_s
from bench.rows import Figures, table, verdict
from tests.kafka import KAFKA_VERSION, unavailable_reason


class ClusterBench(ABC):
    """One `./dev bench NAME`: three brokers of Tidelog and, when asked, of Apache Kafka."""

    name: str
    idea: str
    compares = True
    """Whether `--kafka` means anything here."""

    def main(self, arguments: list[str]) -> int:
        options = self._parser().parse_args(arguments)
        brokers = [TIDELOG]
        if self.compares and options.kafka:
            if reason := unavailable_reason():
                self.tell(f"without Apache Kafka: {reason}")
            else:
                brokers.append(KAFKA)
        figures = Figures()
        started_s, machine_started_s = time.monotonic(), machine_cpu_s()
        self.measure(options, brokers, figures)
        took_s = time.monotonic() - started_s
        busy_cores = (machine_cpu_s() - machine_started_s) / took_s
        print(
            f"{self.name}: {took_s:.0f} s; {os.cpu_count()} cores, {busy_cores:.1f} of them busy; "
            f"Python {platform.python_version()}, {platform.system()} {platform.machine()}."
        )
        print()
        print(table(figures))
        print()
        print(summary(figures))
        if options.json:
            plain = {"bench": self.name, "figures": figures.plain()}
            options.json.write_text(json.dumps(plain, indent=1) + "\n")
        return 0

    @abstractmethod
    def measure(self, options: argparse.Namespace, brokers: list[str], figures: Figures) -> None:
        """Fill in the figures."""

    def add_options(self, parser: argparse.ArgumentParser) -> None:  # noqa: B027
        """Those of this benchmark alone; there may be none."""

    def tell(self, text: str) -> None:
        """Progress goes to standard error; the table alone goes to standard output."""
        print(text, file=sys.stderr, flush=True)

    def _parser(self) -> argparse.ArgumentParser:
        parser = argparse.ArgumentParser(
            prog=f"./dev bench {self.name}",
            description=f"Three brokers on loopback: {self.idea}.",
            epilog="What each line means: docs/benchmarks.md. Nothing else should be running.",
            formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        )
        self.add_options(parser)
        if self.compares:
            parser.add_argument(
                "--kafka",
                action="store_true",
                help=f"the same on three brokers of Apache Kafka {KAFKA_VERSION}",
            )
        parser.add_argument("--json", type=Path, metavar="FILE", help="write every sample")
        return parser


def summary(figures: Figures) -> str:
    """One line: which of the things asked for were met."""
    verdicts = {metric: verdict(figures, metric) for metric in figures.samples}
    missed = [
        f"{metric.title} ({metric.unit})" for metric, each in verdicts.items() if each == "NO"
    ]
    requested = sum(each != "" for each in verdicts.values())
    if missed:
        return f"{requested - len(missed)} of {requested} met; not met: " + "; ".join(missed)
    return f"{requested} of {requested} met"


@contextmanager
def bytecode_kept() -> Iterator[None]:
    """An installed broker has its bytecode; a checkout may be told not to write any."""
    before = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="tidelog-bench-") as directory:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = directory
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)
