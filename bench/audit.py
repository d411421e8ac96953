"""`./dev bench audit`: how long an audit takes, how much memory, and whether it finds the planted.

A journal and the segment files of every replica are made first; that is not measured. Then the
audit runs as `tidelog audit` does, with a Spark of its own, whose start is part of the time.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

from bench.audit_load import Load, Made, make
from bench.process_stat import MIB, cpu_s, machine_cpu_s, proportional_mib
from bench.rows import aligned

POLL_S = 0.5


class Audit:
    """No broker is needed."""

    name = "audit"
    idea = "an audit of millions of records on Spark, with planted mistakes"

    def main(self, arguments: list[str]) -> int:
        options = _parser().parse_args(arguments)
        load = Load(
            records=options.records,
            partitions=options.partitions,
            replicas=options.replicas,
            value_bytes=options.value_bytes,
            planted=options.planted,
        )
        root = Path(tempfile.mkdtemp(prefix="tidelog-bench-", dir=options.directory))
        try:
            return _measure(root, load, master=options.master, memory=options.memory)
        finally:
            shutil.rmtree(root)


def _measure(root: Path, load: Load, *, master: str, memory: str) -> int:
    _say(f"making {load.records:,} records, their journal and {load.replicas} replicas")
    started_s = time.monotonic()
    made = make(root, load)
    _say(f"made in {time.monotonic() - started_s:.0f} s")

    from tidelog.spark.audit.starting import start_and_audit
    from tidelog.spark.audit.wish import Wish

    began = [time.monotonic()]

    def say(text: str) -> None:
        _say(f"{time.monotonic() - began[0]:5.1f} s: {text}")

    wish = Wish(journals=(made.journal,), segments=(str(root),), is_strict=False)
    machine_before_s = machine_cpu_s()
    with _Watch() as seen:
        report = start_and_audit(
            wish,
            app="./dev bench audit",
            master=master,
            extra={"spark.driver.memory": memory},
            say=say,
        )
    took_s = time.monotonic() - began[0]
    busy = (machine_cpu_s() - machine_before_s) / took_s
    print(_table(load, made, took_s, seen, busy))
    found = dict(report.findings)
    print(f"\nplanted {load.expected}\nfound   {found}")
    if found != load.expected:
        print("NOT the same")
        return 1
    return 0


def _table(load: Load, made: Made, took_s: float, seen: _Watch, busy: float) -> str:
    rows = [
        ("audit from segments", ""),
        ("records told", f"{load.records:,}"),
        ("partitions, replicas", f"{load.partitions}, {load.replicas}"),
        ("journal", f"{made.journal_bytes / MIB:,.0f} MiB"),
        ("log of one replica", f"{made.log_bytes / MIB:,.0f} MiB"),
        ("time, with the start of Spark", f"{took_s:.1f} s"),
        ("records per second", f"{load.records / took_s:,.0f}"),
        ("CPU time: JVM and Python", f"{seen.cpu_s:.0f} s"),
        ("memory at most: JVM and Python", f"{seen.peak_mib:,.0f} MiB"),
        ("busy cores of the machine", f"{busy:.1f} of {os.cpu_count()}"),
    ]
    return aligned(rows) + f"\n\nPython {platform.python_version()}, {platform.machine()}"


class _Watch:
    """What this process and its descendants used: CPU time, and the most memory (PSS)."""

    def __init__(self) -> None:
        self.peak_mib = 0.0
        self._cpu_s: dict[int, float] = {}
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    @property
    def cpu_s(self) -> float:
        """As far as it was seen: what a process did in its last half second may be missing."""
        return sum(self._cpu_s.values())

    def _watch(self) -> None:
        while not self._is_over.wait(POLL_S):
            now_mib = 0.0
            for pid in _family(os.getpid()):
                with suppress(OSError):
                    self._cpu_s[pid] = cpu_s(pid)
                    now_mib += proportional_mib(pid)
            self.peak_mib = max(self.peak_mib, now_mib)


def _family(pid: int) -> list[int]:
    """The process and everything that it has started."""
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            parents.setdefault(int(fields[1]), []).append(int(path.parent.name))
    found, waiting = [], [pid]
    while waiting:
        each = waiting.pop()
        found.append(each)
        waiting += parents.get(each, [])
    return found


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="./dev bench audit",
        description=Audit.idea,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--records", type=int, default=10_000_000, help="told and held")
    parser.add_argument("--partitions", type=int, default=6, help="of the topic")
    parser.add_argument("--replicas", type=int, default=3, help="of each partition")
    parser.add_argument("--value-bytes", type=int, default=100, help="of each record")
    parser.add_argument("--planted", type=int, default=50, help="of each kind in each partition")
    parser.add_argument("--master", default="local[2]", help="Spark's")
    parser.add_argument("--memory", default="2g", help="of Spark's JVM")
    parser.add_argument("--directory", type=Path, help="where the files are made")
    return parser


if __name__ == "__main__":
    sys.exit(Audit().main(sys.argv[1:]))
