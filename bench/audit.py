"""`./dev bench audit`: how long an audit takes, how much memory, and whether it finds the planted.

A journal and the segment files of every replica are made first; that is not measured. Then the
audit runs as `tidelog audit` does, with a Spark of its own, whose start is part of the time. With
`--brokers` three brokers of this checkout get the same batches first, and the audit reads them
through the brokers. Every planted mistake must be found by its name and at its offset, and nothing
else: the exit code says so.
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
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from pyarrow import parquet

from bench.audit_brokers import brokers_with
from bench.audit_load import Finding, Load, Made, make
from bench.process_stat import MIB, cpu_s, family, machine_cpu_s, proportional_mib
from bench.rows import aligned

POLL_S = 0.5
SHOWN_MAX = 10


class Audit:
    """The verb."""

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
            _say(f"making {load.records:,} records, their journal and {load.replicas} replicas")
            started_s = time.monotonic()
            made = make(root, load)
            _say(f"made in {time.monotonic() - started_s:.0f} s")
            if not options.brokers:
                return _measure(root, load, made, options, segments=(str(root),))
            with brokers_with(root, load) as cluster:
                settings = {"bootstrap.servers": cluster.address}
                apart = cluster.pids
                return _measure(root, load, made, options, settings=settings, apart=apart)
        finally:
            shutil.rmtree(root)


def _measure(
    root: Path,
    load: Load,
    made: Made,
    options: argparse.Namespace,
    *,
    segments: tuple[str, ...] = (),
    settings: dict[str, str] | None = None,
    apart: Sequence[int] = (),
) -> int:
    from tidelog.spark.audit.launcher import launch_audit
    from tidelog.spark.audit.request import AuditRequest

    began_s = time.monotonic()

    def say(text: str) -> None:
        _say(f"{time.monotonic() - began_s:5.1f} s: {text}")

    out = root / "findings"
    request = AuditRequest(journals=(made.journal,), segments=segments, settings=settings, out=out)
    machine_before_s = machine_cpu_s()
    with _Watch(apart) as seen:
        launch_audit(
            request,
            app="./dev bench audit",
            master=options.master,
            extra={"spark.driver.memory": options.memory},
            say=say,
        )
    took_s = time.monotonic() - began_s
    busy = (machine_cpu_s() - machine_before_s) / took_s
    print(_table(load, made, took_s, seen, busy, through_brokers=settings is not None))
    return judge(load.expected, findings_in(out))


def findings_in(out: Path) -> Counter[Finding]:
    """As the audit wrote them down, a row for each."""
    table = parquet.read_table(out, columns=["finding", "partition", "offset"])
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


def judge(planted: set[Finding], found: Counter[Finding]) -> int:
    """The exit code: 0 if each planted one was found once, and nothing else."""
    print(f"\nplanted {_by_name(planted)}\nfound   {_by_name(found.elements())}")
    if found == Counter(planted):
        print("each at its place, and nothing else")
        return 0
    missing, invented = Counter(planted) - found, found - Counter(planted)
    for what, findings in (("NOT found", missing), ("INVENTED", invented)):
        print(f"{what}: {findings.total()}", *sorted(findings.elements())[:SHOWN_MAX])
    return 1


def _by_name(findings: Iterable[Finding]) -> dict[str, int]:
    return dict(sorted(Counter(name for name, _, _ in findings).items()))


def _table(
    load: Load, made: Made, took_s: float, seen: _Watch, busy: float, *, through_brokers: bool
) -> str:
    rows = [
        (f"audit {'through three brokers' if through_brokers else 'from segments'}", ""),
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

    def __init__(self, apart: Sequence[int]) -> None:
        self._apart = set(apart)
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
            for pid in set(family(os.getpid())) - self._apart:
                with suppress(OSError):
                    self._cpu_s[pid] = cpu_s(pid)
                    now_mib += proportional_mib(pid)
            self.peak_mib = max(self.peak_mib, now_mib)


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
    parser.add_argument("--brokers", action="store_true", help="through three of Tidelog")
    parser.add_argument("--master", default="local[2]", help="Spark's")
    parser.add_argument("--memory", default="2g", help="of Spark's JVM")
    parser.add_argument("--directory", type=Path, help="where the files are made")
    return parser


if __name__ == "__main__":
    sys.exit(Audit().main(sys.argv[1:]))
