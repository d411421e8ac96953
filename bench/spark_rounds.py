"""Rounds of steps in turns, and how the rows of a topic or frame are counted and compared."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.spark_figures import Line, Speeds
from bench.spark_loads import Effort

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class WrongRows(Exception):
    """A figure that would not count: rows are missing, or are there too often, or are others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Something that is done once in every round."""

    lines: tuple[Line, ...]
    """Those that it is a sample of."""
    who: str
    records: int
    take: Callable[[], float]
    """Does it, and says how many seconds it took."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What rows are there, whatever their order."""

    rows: int
    checksum: int


def summary(frame: DataFrame) -> Summary:
    """Of the columns key and value."""
    from pyspark.sql import functions as sql

    checksum = sql.crc32(sql.concat(sql.coalesce("key", sql.lit(b"")), "value"))
    (row,) = frame.agg(sql.count("*"), sql.sum(checksum)).collect()
    return Summary(rows=row[0], checksum=row[1] or 0)


def timed(act: Callable[[], object]) -> float:
    started_s = time.monotonic()
    act()
    return time.monotonic() - started_s


def run_rounds(steps: Sequence[Step], effort: Effort, speeds: Speeds) -> None:
    """All steps in turns; the first rounds warm up and do not count."""
    for number in range(1 - effort.warm_ups, effort.rounds + 1):
        for step in steps:
            took_s = step.take()
            rate = f"{step.records / took_s / 1_000:,.0f} k rows/s"
            label = f"{number}/{effort.rounds}" if number > 0 else "warm-up"
            say(f"  {label} {step.lines[0].title}, {step.who}: {rate}")
            if number > 0:
                for line in step.lines:
                    speeds.add(line, step.who, records=step.records, took_s=took_s)


def say(text: str) -> None:
    """Progress goes to standard error; the table alone goes to standard output."""
    print(text, file=sys.stderr, flush=True)
