"""A journal and the segment files that belong to it, made quickly, with mistakes planted in them.

Each partition is made by a process of its own. The journal says of every record that it was
acknowledged; the log holds it, except where something is planted:

- lost: another record stands where it was acknowledged;
- reordered: two neighbours changed places;
- duplicated: a copy stands at the end;
- refused but present: it was refused, and stands at the end.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Self

import pyarrow as pa

from tidelog.core.wire.record_batch import rebase
from tidelog.spark.columns.encode import PLAIN, encode

TOPIC = "orders"
RUN = "bench"
START_MS = 1_767_225_600_000
BATCH_BYTES = 64 * 2**10
SEGMENT_BYTES = 256 * 2**20
CHUNK_RECORDS = 50_000
PLANTED_RECORDS = 4
"""The first of each spacing: one for what is lost, two that change places, one that is copied."""
Finding = tuple[str, int, int]
"""Its name, the partition, the offset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How much of it."""

    records: int
    partitions: int
    replicas: int
    value_bytes: int
    planted: int
    """Of each kind, in each partition."""

    @property
    def expected(self) -> set[Finding]:
        """What an audit must find, no more and no less."""
        return {
            (name, partition, offset)
            for partition in range(self.partitions)
            for number in range(self.planted)
            for name, offset in self._planted(partition, number)
        }

    def count_in(self, partition: int) -> int:
        """Records that the partition was told to have, without what is planted behind them."""
        return self.records // self.partitions + (partition < self.records % self.partitions)

    def spacing_in(self, partition: int) -> int:
        """From one planted place to the next."""
        return max(self.count_in(partition) // max(self.planted, 1), PLANTED_RECORDS)

    def _planted(self, partition: int, number: int) -> Iterator[tuple[str, int]]:
        position, end = number * self.spacing_in(partition), self.count_in(partition)
        yield "lost", position
        yield "reordered", position + 2
        yield "duplicated", end + number
        yield "refused but present", end + self.planted + number


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """Where it is, and how big."""

    journal: Path
    journal_bytes: int
    log_bytes: int


def make(root: Path, load: Load) -> Made:
    """A data directory as `tidelog up` leaves it, and the journal beside it."""
    (root / "cluster.json").write_text(json.dumps({"version": 1}))
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        parts = list(pool.map(_make_partition, *zip(*_partitions(root, load), strict=True)))
    journal = root / "acks.jsonl"
    with journal.open("wb") as file:
        first = {
            "journal": "tidelog-acks",
            "version": 1,
            "run": RUN,
            "topic": TOPIC,
            "topic_id": None,
            "acks": "all",
            "idempotence": True,
            "began_ms": START_MS,
            "began_us": 0,
        }
        file.write(json.dumps(first).encode() + b"\n")
        for part in parts:
            with part.open("rb") as lines:
                shutil.copyfileobj(lines, file, 16 * 2**20)
            part.unlink()
        refused = load.planted * load.partitions
        counts = {"ok": load.records, "refused": refused, "unknown": 0, "errors": {"X": refused}}
        file.write(json.dumps({"end": counts}).encode() + b"\n")
    log_bytes = sum(path.stat().st_size for path in root.glob("node-1/data/*/*.log"))
    return Made(journal=journal, journal_bytes=journal.stat().st_size, log_bytes=log_bytes)


def _partitions(root: Path, load: Load) -> Iterator[tuple[Path, Load, int]]:
    return ((root, load, index) for index in range(load.partitions))


def _make_partition(root: Path, load: Load, index: int) -> Path:
    """The log of one partition on the first node, linked to by the others; its lines' file."""
    directory = root / "node-1" / "data" / f"{TOPIC}-{index}"
    directory.mkdir(parents=True)
    count = load.count_in(index)
    part = root / f"part-{index}"
    with part.open("wb") as lines, _Segments(directory) as segments:
        for start in range(0, count, CHUNK_RECORDS):
            end = min(start + CHUNK_RECORDS, count)
            _make_chunk(load, index, range(start, end), lines, segments)
        _make_tail(load, index, lines, segments)
    for node in range(2, load.replicas + 1):
        copy = root / f"node-{node}" / "data" / directory.name
        copy.mkdir(parents=True)
        for path in directory.glob("*.log"):
            os.link(path, copy / path.name)
    for node in range(1, load.replicas + 1):
        end_offset = count + 2 * load.planted
        _checkpoint(root / f"node-{node}" / "data", index, end_offset)
    return part


def _checkpoint(data: Path, index: int, end_offset: int) -> None:
    """Partitions are made at the same time, so each appends a line; nobody looks at the count."""
    with (data / "replication-offset-checkpoint").open("a") as file:
        file.write(("0\n0\n" if file.tell() == 0 else "") + f"{TOPIC} {index} {end_offset}\n")


def _make_chunk(
    load: Load,
    index: int,
    offsets: range,
    lines: BinaryIO,
    segments: _Segments,
) -> None:
    spacing = load.spacing_in(index)
    values, stored, text = [], [], []
    for offset in offsets:
        value = _value(load, index, offset)
        values.append(value)
        position = offset % spacing
        is_planted = offset // spacing < load.planted
        stored.append(b"another" if is_planted and position == 0 else value)
        swap = {1: 1, 2: -1}.get(position, 0) if is_planted else 0
        text.append(_line(load, index, offset, value, number=offset + swap))
    lines.write("".join(text).encode())
    segments.write(stored, [START_MS + offset for offset in offsets], offsets.start)


def _make_tail(load: Load, index: int, lines: BinaryIO, segments: _Segments) -> None:
    """Copies of the first records that were not disturbed, and what was refused."""
    count, spacing = load.count_in(index), load.spacing_in(index)
    copied = [number * spacing + 3 for number in range(load.planted)]
    refused = list(range(count, count + load.planted))
    stored = [_value(load, index, offset) for offset in (*copied, *refused)]
    segments.write(stored, [START_MS + offset for offset in (*copied, *refused)], count)
    lines.write(
        "".join(
            _line(load, index, each, _value(load, index, each), number=each, is_refused=True)
            for each in refused
        ).encode()
    )


def _value(load: Load, index: int, offset: int) -> bytes:
    return f"{RUN}-{index}-{offset}-".encode().ljust(load.value_bytes, b".")


def _line(
    load: Load, index: int, offset: int, value: bytes, *, number: int, is_refused: bool = False
) -> str:
    """As a journal has it; numbers go round the partitions."""
    digest = hashlib.sha256(value).hexdigest()
    entry = f'{offset}, "outcome": "ok", "error": null, "reason": null'
    if is_refused:
        entry = 'null, "outcome": "refused", "error": "X", "reason": "refused"'
    return (
        f'{{"number": {number * load.partitions + index}, "key": "key", "value_sha256": "{digest}",'
        f' "partition": {index}, "offset": {entry}, "timestamp_ms": {START_MS + offset}, '
        f'"sent_us": {offset}, "answered_us": {offset + 900}}}\n'
    )


class _Segments:
    """Batches go into files of a size."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._file: BinaryIO | None = None

    def write(self, values: list[bytes], times_ms: list[int], base_offset: int) -> None:
        if not values:
            return
        times = pa.array([each * 1_000 for each in times_ms], pa.timestamp("us", tz="UTC"))
        columns = pa.RecordBatch.from_arrays(
            [pa.array([b"key"] * len(values)), pa.array(values, pa.binary()), times],
            names=["key", "value", "timestamp"],
        )
        for batch in encode(
            columns,
            identity=PLAIN,
            base_sequence=0,
            first_batch_records_max=None,
            batch_bytes_max=BATCH_BYTES,
            compression="none",
            now_ms=START_MS,
        ):
            rebase(batch.data, 0, base_offset=base_offset, leader_epoch=0)
            self._of(base_offset).write(batch.data)
            base_offset += batch.records

    def _of(self, base_offset: int) -> BinaryIO:
        if self._file is None or self._file.tell() >= SEGMENT_BYTES:
            self.__exit__()
            self._file = (self._directory / f"{base_offset:020d}.log").open("wb")
        return self._file

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
