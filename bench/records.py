"""`./dev bench records`: what it costs a leader to look at the records of a batch.

No broker: one batch in memory, checked again and again. The least CPU time of many repetitions is
told, so that other programs on the machine do not matter much.
"""

from __future__ import annotations

import argparse
import platform
import time
from dataclasses import dataclass
from random import Random

from tidelog.core.storage.config import LogConfig
from tidelog.core.storage.record_validation import checked_records
from tidelog.core.storage.validation import BatchRefusal
from tidelog.core.wire.record_batch import read_header
from tidelog.core.wire.records import NewRecord, build

NOW_MS = 1_700_000_000_000
RECORDS_PER_MS = 100
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Records of one kind, and how many of them are in a batch."""

    title: str
    count: int
    value_bytes: tuple[int, int]
    key: bytes | None = None
    codec: str = "none"

    def batch(self) -> bytearray:
        """Values of which half compresses well; the same in every run."""
        random = Random(7)
        records = []
        for at in range(self.count):
            size = random.randint(*self.value_bytes)
            value = random.randbytes(size // 2) + bytes(size - size // 2)
            records.append(NewRecord(value, self.key, NOW_MS + at // RECORDS_PER_MS))
        return build(records, compression=CODECS.index(self.codec))


SHAPES = (
    Shape(title="100 B, 1 MB", count=9_000, value_bytes=(100, 100)),
    Shape(title="100 B, 16 KB", count=150, value_bytes=(100, 100)),
    Shape(title="100 B, one", count=1, value_bytes=(100, 100)),
    Shape(title="1 KiB, 1 MB", count=980, value_bytes=(1024, 1024)),
    Shape(title="1 KiB, 16 KB", count=15, value_bytes=(1024, 1024)),
    Shape(title="50 to 150 B, 1 MB", count=9_000, value_bytes=(50, 150)),
    Shape(title="50 to 150 B, keys", count=8_000, value_bytes=(50, 150), key=b"0123456789"),
    Shape(title="512 to 1,536 B, 1 MB", count=980, value_bytes=(512, 1536)),
    *(
        Shape(title=f"{title}, {codec}", count=count, value_bytes=(size, size), codec=codec)
        for codec in CODECS[1:]
        for title, count, size in (("100 B", 9_000, 100), ("1 KiB", 980, 1024))
    ),
)


def least_us(view: memoryview, *, repetitions: int) -> float:
    """CPU time of one check."""
    header, config = read_header(view), LogConfig()
    found = []
    for _ in range(repetitions):
        started_ns = time.thread_time_ns()
        checked = checked_records(view, header, config, NOW_MS)
        found.append(time.thread_time_ns() - started_ns)
        assert not isinstance(checked, BatchRefusal), checked
    return min(found) / 1_000


class Records:
    """The verb."""

    name = "records"
    idea = "what a leader pays for looking at the records of a batch, CPU time"

    def main(self, arguments: list[str]) -> int:
        parser = argparse.ArgumentParser(
            prog=f"./dev bench {self.name}", description=f"Without brokers: {self.idea}."
        )
        parser.add_argument("--repetitions", type=int, default=60, help="of each measurement")
        repetitions: int = parser.parse_args(arguments).repetitions
        print(f"records: least of {repetitions} repetitions; Python {platform.python_version()}\n")
        print("| batch | µs | ns per record | CPU-s per GB |")
        print("|---|---:|---:|---:|")
        for shape in SHAPES:
            batch = shape.batch()
            took_us = least_us(memoryview(batch), repetitions=repetitions)
            print(
                f"| {shape.title} | {took_us:,.0f} | {took_us * 1_000 / shape.count:,.0f} "
                f"| {took_us * 1_000 / len(batch):.2f} |",
                flush=True,
            )
        return 0
