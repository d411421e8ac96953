"""The batches of a log's bytes: a walk over their headers, and their records as Arrow columns.

A walk never fails: a batch with a wrong checksum is a row that says so, and bytes that are no batch
end it. Values become their SHA-256 here, in the task that reads them: an audit moves 32 bytes for
each record through Spark, however big it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tidelog.core.wire.control_records import read_end_txn_marker
from tidelog.core.wire.record_batch import BatchHeader, CorruptBatch, batches, crc_is_valid
from tidelog.core.wire.records import iterate
from tidelog.spark.audit.transactions import TransactionMarker
from tidelog.spark.columns.decode import ColumnDecoder

ROWS = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("leader_epoch", pa.int32()),
        ("key", pa.binary()),
        ("digest", pa.binary()),
        ("timestamp_ms", pa.int64()),
        ("state", pa.int8()),
        ("is_visible", pa.bool_()),
    ]
)
"""What a topic holds. `timestamp_ms` is null where the broker set it: then it is not the
producer's. `state` is how its transaction ended, `is_visible` whether readers get it."""
SPARK_ROWS = (
    "partition int, offset bigint, leader_epoch int, key binary, digest binary, "
    "timestamp_ms bigint, state tinyint, is_visible boolean"
)
_FOREVER = 2**63 - 1
_CREATE_TIME = 0


class Walked(NamedTuple):
    """One batch where it lies."""

    position: int
    header: BatchHeader
    is_sound: bool
    marker: TransactionMarker | None


@dataclass(slots=True)
class Tail:
    """Where a walk ended, and why, if it is not the end of the bytes."""

    position: int = 0
    reason: str | None = None


def walk(view: memoryview, tail: Tail) -> Iterator[Walked]:
    """Batch by batch; `tail` is right when the walk is over."""
    try:
        for position, header in batches(view):
            is_sound = crc_is_valid(view, position, header)
            marker = None
            if is_sound and header.is_control:
                marker = _marker(view, position, header)
            yield Walked(position, header, is_sound, marker)
            tail.position = position + header.size_bytes
    except CorruptBatch as error:
        tail.reason = str(error)
        return
    if tail.position < len(view):
        tail.reason = "a batch that is cut"


def _marker(view: memoryview, position: int, header: BatchHeader) -> TransactionMarker | None:
    """None for control records that end no transaction."""
    for record in iterate(view, position):
        marker = read_end_txn_marker(record)
        if marker is not None:
            return TransactionMarker(record.offset, header.producer_id, marker.commit)
    return None


class Judged(NamedTuple):
    """A batch of users' records with what is known of its transaction."""

    walked: Walked
    state: int
    is_visible: bool


def rows(
    view: memoryview,
    judged: list[Judged],
    *,
    partition: int,
    start_offset: int = 0,
    end_offset: int = _FOREVER,
) -> Iterator[pa.RecordBatch]:
    """The records of these batches of the view, in [start, end), as ROWS."""
    if not judged:
        return
    base_offsets = np.array([each.walked.header.base_offset for each in judged], dtype=np.int64)
    leader_epochs = np.array([each.walked.header.leader_epoch for each in judged], dtype=np.int32)
    states = np.array([each.state for each in judged], dtype=np.int8)
    visible = np.array([each.is_visible for each in judged], dtype=np.bool_)
    for columns in decoded(view, judged, start_offset=start_offset, end_offset=end_offset):
        offsets = columns.column("offset")
        batch = np.searchsorted(base_offsets, offsets.to_numpy(), side="right") - 1
        yield pa.RecordBatch.from_arrays(
            [
                pa.array(np.full(len(offsets), partition, dtype=np.int32)),
                offsets,
                pa.array(leader_epochs[batch]),
                columns.column("key"),
                digests(columns.column("value")),
                producer_times_ms(columns),
                pa.array(states[batch]),
                pa.array(visible[batch]),
            ],
            schema=ROWS,
        )


def decoded(
    view: memoryview,
    judged: list[Judged],
    *,
    start_offset: int,
    end_offset: int,
    with_headers: bool = False,
) -> Iterator[pa.RecordBatch]:
    """The columns of these batches, stretch by stretch: what lies between them is not touched."""
    decoder = ColumnDecoder(
        start_offset=start_offset,
        end_offset=end_offset,
        is_read_committed=False,
        with_headers=with_headers,
    )
    for start, end in stretches([each.walked for each in judged]):
        for piece in decoder.decode(view[start:end], ()):
            if piece.columns.num_rows:
                yield piece.columns


def stretches(walked: list[Walked]) -> list[tuple[int, int]]:
    """Neighbours together: (start, end) positions of bytes without a gap."""
    found: list[tuple[int, int]] = []
    for each in walked:
        end = each.position + each.header.size_bytes
        if found and found[-1][1] == each.position:
            found[-1] = (found[-1][0], end)
        else:
            found.append((each.position, end))
    return found


def digests(values: pa.Array) -> pa.Array:
    """The SHA-256 of each value; null stays null."""
    sha256 = hashlib.sha256
    _, offsets_buffer, data_buffer = values.buffers()
    if data_buffer is None:  # no bytes at all: every value is null or empty
        empty = sha256(b"").digest()
        return pa.array([empty if each.is_valid else None for each in values], pa.binary())
    data = memoryview(data_buffer)
    ends = np.frombuffer(offsets_buffer, dtype=np.int32)[
        values.offset : values.offset + len(values) + 1
    ].tolist()
    found: list[bytes | None] = [sha256(data[start:end]).digest() for start, end in pairwise(ends)]
    if values.null_count:
        is_there = values.is_valid().to_pylist()
        found = [each if there else None for each, there in zip(found, is_there, strict=True)]
    return pa.array(found, pa.binary())


def producer_times_ms(columns: pa.RecordBatch) -> pa.Array:
    """Milliseconds of the producer's clock; null where the log's own time replaced it."""
    times_us = columns.column("timestamp").cast(pa.int64()).to_numpy(zero_copy_only=False)
    is_appended = columns.column("timestampType").to_numpy(zero_copy_only=False) != _CREATE_TIME
    return pa.array(times_us // 1_000, mask=is_appended)


class RowBuffer:
    """Rows made one by one, handed over as Arrow batches of a fair size."""

    ROWS_MAX = 16_384

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._columns: list[list[object]] = [[] for _ in schema]

    def append(self, *row: object) -> None:
        for column, value in zip(self._columns, row, strict=True):
            column.append(value)

    @property
    def is_full(self) -> bool:
        return len(self._columns[0]) >= self.ROWS_MAX

    def take(self) -> pa.RecordBatch:
        arrays = [
            pa.array(column, field.type)
            for column, field in zip(self._columns, self._schema, strict=True)
        ]
        self._columns = [[] for _ in self._schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)
