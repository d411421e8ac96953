"""Segment files in the tasks of an audit: their batches as rows, and the records of some of them.

Nothing here knows Spark: its Python workers load only what reads files.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from tidelog.spark.audit.batches import ROWS, SPARK_ROWS, Judged, Tail, Walked, rows, walk
from tidelog.spark.audit.replicas import Segment
from tidelog.spark.audit.row_buffer import RowBuffer
from tidelog.spark.audit.transactions import COMMITTED, Decisions, Marker

BATCHES = pa.schema(
    [
        ("node", pa.int32()),
        ("partition", pa.int32()),
        ("path", pa.string()),
        ("position", pa.int64()),
        ("size_bytes", pa.int64()),
        ("base_offset", pa.int64()),
        ("end_offset", pa.int64()),
        ("leader_epoch", pa.int32()),
        ("crc", pa.int64()),
        ("producer_id", pa.int64()),
        ("is_control", pa.bool_()),
        ("is_commit", pa.bool_()),
        ("trouble", pa.string()),
    ]
)
"""`is_commit` is null unless the batch ends a transaction. `trouble` says why a batch, or what lies
behind the last one of a file that is not the newest, cannot be read."""
SPARK_BATCHES = (
    "node int, partition int, path string, position bigint, size_bytes bigint, base_offset bigint, "
    "end_offset bigint, leader_epoch int, crc bigint, producer_id bigint, is_control boolean, "
    "is_commit boolean, trouble string"
)
REPLICA_ROWS = pa.schema([("node", pa.int32()), *ROWS])
SPARK_REPLICA_ROWS = f"node int, {SPARK_ROWS}"
WRONG_CHECKSUM = "wrong checksum"


class Scan(NamedTuple):
    """One file to be walked."""

    node_id: int
    partition: int
    segment: Segment


class Stretch(NamedTuple):
    """Some batches of a file whose records are to be unpacked."""

    node_id: int
    partition: int
    path: str
    start_position: int
    end_position: int
    markers: tuple[Marker, ...]
    """Enough to decide every transaction of these batches that is decided."""


def scan_file(scan: Scan) -> Iterator[pa.RecordBatch]:
    """A row for each batch of the file, and one if something behind them is none."""
    found = RowBuffer(BATCHES)
    tail = Tail()
    end_offset = scan.segment.base_offset
    view = mapped(scan.segment.path)
    for each in walk(view, tail):
        found.append(scan.node_id, scan.partition, scan.segment.path, *_batch(each))
        end_offset = each.header.end_offset
        if found.is_full:
            yield found.take()
    if tail.reason is not None and not scan.segment.is_newest:
        where = (scan.node_id, scan.partition, scan.segment.path, tail.position)
        what = (len(view) - tail.position, end_offset, end_offset, None, None, None, False)
        found.append(*where, *what, None, tail.reason)
    yield found.take()


def _batch(each: Walked) -> tuple[object, ...]:
    header = each.header
    return (
        each.position,
        header.size_bytes,
        header.base_offset,
        header.end_offset,
        header.leader_epoch,
        header.crc,
        header.producer_id,
        header.is_control,
        None if each.marker is None else each.marker.is_commit,
        None if each.is_sound else WRONG_CHECKSUM,
    )


def unpack_stretch(part: Stretch) -> Iterator[pa.RecordBatch]:
    decisions = Decisions(part.markers)
    view = mapped(part.path)[part.start_position : part.end_position]
    judged = [
        _judged(each, decisions)
        for each in walk(view, Tail())
        if each.is_sound and not each.header.is_control
    ]
    yield from rows(view, judged, partition=part.partition)


def _judged(each: Walked, decisions: Decisions) -> Judged:
    state = COMMITTED
    if each.header.is_transactional:
        state = decisions.state(each.header.producer_id, each.header.base_offset)
    return Judged(each, state, state == COMMITTED)


def unpack_batches(wanted: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of node, partition, path, position and size; their records with the node before them."""
    for batch in wanted:
        for row in batch.to_pylist():
            with Path(row["path"]).open("rb") as file:
                file.seek(row["position"])
                view = memoryview(file.read(row["size_bytes"]))
            judged = [Judged(each, COMMITTED, True) for each in walk(view, Tail())]
            for found in rows(view, judged, partition=row["partition"]):
                node = pa.array([row["node"]] * found.num_rows, pa.int32())
                yield pa.RecordBatch.from_arrays([node, *found.columns], schema=REPLICA_ROWS)


def mapped(path: str) -> memoryview:
    """A file's bytes without reading them all; they stay as long as somebody has the view."""
    with Path(path).open("rb") as file:
        if file.seek(0, 2) == 0:
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
