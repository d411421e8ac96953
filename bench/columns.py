"""`./dev bench columns`: how many rows a second of CPU turns into columns, and back into batches.

No broker and no Spark: bytes of batches in memory on one side, Arrow columns on the other. CPU time
is measured, so that other programs on the machine do not matter much.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median

import numpy as np
import pyarrow as pa

from tidelog.core.wire.record_batch import rebase
from tidelog.spark.columns.decode import ColumnDecoder
from tidelog.spark.columns.encode import PLAIN, encode
from tidelog.spark.columns.murmur2 import partitions_of

NOW_MS = 1_700_000_000_000
LARGE_BYTES, SMALL_BYTES = 2**20, 16 * 2**10
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Rows of one kind, and how they are put into batches."""

    title: str
    value_bytes: tuple[int, int] = (100, 100)
    key_bytes: int | None = None
    batch_bytes: int = LARGE_BYTES
    compression: str = "none"
    with_headers: bool = False
    with_times: bool = False
    decode_floor: float | None = None
    encode_floor: float | None = None
    """Million rows per second of CPU that a machine like the one of the other bars must reach."""


SHAPES = (
    Shape(title="100 B", decode_floor=2.4, encode_floor=2.5),
    Shape(title="100 B, key of 8 B", key_bytes=8),
    Shape(title="100 B, key of 8 B, times", key_bytes=8, with_times=True),
    Shape(title="100 B, batches of 16 KiB", batch_bytes=SMALL_BYTES),
    Shape(title="60 to 140 B", value_bytes=(60, 140)),
    Shape(title="60 to 140 B, batches of 16 KiB", value_bytes=(60, 140), batch_bytes=SMALL_BYTES),
    Shape(title="100 B, two headers", with_headers=True),
    Shape(title="100 B, lz4", compression="lz4"),
    Shape(title="100 B, zstd", compression="zstd"),
    Shape(title="1 KiB", value_bytes=(1024, 1024)),
)


def rows_of(shape: Shape, count: int) -> pa.RecordBatch:
    """Text that compresses about as well as records do; the same in every run."""
    random = np.random.default_rng(7)
    least, most = shape.value_bytes
    sizes = random.integers(least, most + 1, count)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    letters = random.integers(ord("a"), ord("a") + 16, int(offsets[-1])).astype(np.uint8)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(letters)]
    columns = {"value": pa.Array.from_buffers(pa.binary(), count, buffers)}
    if shape.key_bytes is not None:
        keys = random.integers(0, 255, count * shape.key_bytes).astype(np.uint8)
        key_offsets = np.arange(count + 1, dtype=np.int32) * shape.key_bytes
        buffers = [None, pa.py_buffer(key_offsets), pa.py_buffer(keys)]
        columns["key"] = pa.Array.from_buffers(pa.binary(), count, buffers)
    if shape.with_headers:
        one = [{"key": "trace", "value": b"0123456789abcdef"}, {"key": "kind", "value": b"x"}]
        columns["headers"] = pa.array([one] * count, HEADERS)
    if shape.with_times:
        times = NOW_MS + np.cumsum(random.integers(0, 3, count))
        columns["timestamp"] = pa.array(times, pa.timestamp("ms", "UTC"))
    return pa.RecordBatch.from_pydict(columns)


def encoded(shape: Shape, rows: pa.RecordBatch) -> Iterator[bytearray]:
    for batch in encode(
        rows,
        identity=PLAIN,
        base_sequence=-1,
        first_batch_records_max=None,
        batch_bytes_max=shape.batch_bytes,
        compression=shape.compression,
        now_ms=NOW_MS,
    ):
        yield batch.data


def as_logged(shape: Shape, rows: pa.RecordBatch) -> memoryview:
    """The batches with the offsets that a broker would give them."""
    offset = 0
    log = []
    for data in encoded(shape, rows):
        rebase(data, 0, base_offset=offset, leader_epoch=0)
        offset += int.from_bytes(data[57:61], "big")
        log.append(data)
    return memoryview(b"".join(log))


def encode_all(shape: Shape, rows: pa.RecordBatch) -> int:
    """As a sink does, which lets go of a batch when it is sent."""
    return sum(len(data) for data in encoded(shape, rows))


def decode_all(shape: Shape, log: memoryview) -> int:
    decoder = ColumnDecoder(
        start_offset=0,
        end_offset=2**62,
        is_read_committed=True,
        with_headers=shape.with_headers,
    )
    return sum(decoded.records for decoded in decoder.decode(log, ()))


def rates(act: Callable[[], object], *, rows: int, repetitions: int) -> list[float]:
    """Million rows per second of CPU, once for each repetition after a first one."""
    act()
    found = []
    for _ in range(repetitions):
        started_s = time.process_time()
        act()
        found.append(rows / (time.process_time() - started_s) / 1e6)
    return found


def line(title: str, found: list[float], floor: float | None) -> str:
    spread = f"{median(found):.2f} ({min(found):.2f}–{max(found):.2f})"
    met = "" if floor is None else ("yes" if median(found) >= floor else "NO")
    return f"| {title:<40} | {spread:<18} | {floor or '':<5} | {met:<3} |"


class Columns:
    """The verb."""

    name = "columns"
    idea = "record batches to Arrow columns and back, rows per second of CPU"

    def main(self, arguments: list[str]) -> int:
        options = self._parser().parse_args(arguments)
        print(
            f"columns: {options.rows:,} rows, {options.repetitions} repetitions; "
            f"{os.cpu_count()} cores, Python {platform.python_version()}, numpy {np.__version__}, "
            f"pyarrow {pa.__version__}. Million rows per second of CPU: median (least–most).\n"
        )
        print(f"| {'':<40} | {'M rows/CPU-s':<18} | floor | met |")
        print(f"|{'-' * 42}|{'-' * 20}|-------|-----|")
        for shape in SHAPES:
            if options.only and not any(word in shape.title for word in options.only):
                continue
            self._measure(shape, rows=options.rows, repetitions=options.repetitions)
        return 0

    def _measure(self, shape: Shape, *, rows: int, repetitions: int) -> None:
        columns = rows_of(shape, rows)
        log = as_logged(shape, columns)
        assert decode_all(shape, log) == rows
        found = rates(lambda: decode_all(shape, log), rows=rows, repetitions=repetitions)
        print(line(f"decode {shape.title}", found, shape.decode_floor), flush=True)
        found = rates(lambda: encode_all(shape, columns), rows=rows, repetitions=repetitions)
        print(line(f"encode {shape.title}", found, shape.encode_floor), flush=True)
        if shape.key_bytes is not None and not shape.with_times:
            keys = columns.column("key")
            found = rates(lambda: partitions_of(keys, 6), rows=rows, repetitions=repetitions)
            print(line(f"partitions of {shape.title}", found, None), flush=True)

    def _parser(self) -> argparse.ArgumentParser:
        parser = argparse.ArgumentParser(
            prog=f"./dev bench {self.name}",
            description=f"Without brokers and without Spark: {self.idea}.",
            formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        )
        parser.add_argument("--rows", type=int, default=400_000, help="rows of each shape")
        parser.add_argument("--repetitions", type=int, default=7, help="of each measurement")
        parser.add_argument("--only", nargs="+", metavar="TEXT", help="shapes with that in them")
        return parser


if __name__ == "__main__":
    sys.exit(Columns().main(sys.argv[1:]))
