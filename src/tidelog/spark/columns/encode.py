"""Arrow columns of one partition into record batches, ready to be produced.

1. Rows are cut into batches: as many rows as surely fit, at least one. The size of a record depends
   on its position in the batch, since deltas grow. Rows are measured with the widest deltas that
   there can be, so batches stay a few bytes per row below their limit.
2. The records of a few MiB of batches are written at once: lengths and deltas become varints of all
   rows, and Arrow joins those, keys and values. Each batch is a part of the result.
3. Each batch gets its header.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tidelog.client.producer.sequences import sequence_after
from tidelog.core.wire.compression import Compression, compress
from tidelog.core.wire.record_batch import (
    HEADER,
    HEADER_BYTES,
    LENGTH_PREFIX_BYTES,
    MAGIC,
    TRANSACTIONAL_BIT,
    BatchHeader,
    renew_crc,
)
from tidelog.spark.columns.binary_columns import binary_array, joined
from tidelog.spark.columns.parallel_walk import RECORD_BYTES_MIN
from tidelog.spark.columns.rows import Rows, rows_of
from tidelog.spark.columns.varints import Numbers, varint_rows, varint_widths

COMPRESSIONS = tuple(codec.name.lower() for codec in Compression)
_GROUP_BYTES = 2 * 2**20
"""Batches are written together until they have this size."""
_BATCH_BYTES_MAX = 2**30
"""Offsets of binary arrays have 31 bits, also those of batches that are written together."""
_NO_HEADERS = pa.scalar(b"\x00", pa.binary())
_ATTRIBUTES = 0
"""Of a record: unused in Kafka."""
_NONE = -1
"""The wire's number for no producer and no sequence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterIdentity:
    """Who writes: the wire's own numbers, -1 for a producer without an id."""

    producer_id: int
    producer_epoch: int
    is_transactional: bool = True


PLAIN = WriterIdentity(producer_id=_NONE, producer_epoch=_NONE, is_transactional=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedBatch:
    """One batch with its checksum; the broker gives it its offsets."""

    data: bytearray
    records: int
    base_sequence: int


def encode(
    columns: pa.RecordBatch,
    *,
    identity: WriterIdentity,
    base_sequence: int,
    first_batch_records_max: int | None,
    batch_bytes_max: int,
    compression: str,
    now_ms: int,
) -> Iterator[EncodedBatch]:
    """All rows in their order, in batches of up to `batch_bytes_max` before compression.

    Columns: `value`, and if there are such `key`, `headers` and `timestamp` (null: `now_ms`). A row
    that is too large goes alone. Sequences go on from `base_sequence`, and from 0 after 2**31 - 1;
    without a producer id there are none. What cannot be a record is a ValueError that says why.
    """
    codec = _codec(compression)
    if first_batch_records_max is not None and first_batch_records_max < 1:
        raise ValueError(f"a first batch of {first_batch_records_max} records")
    rows = rows_of(columns, now_ms=now_ms)
    cuts = batch_cuts(
        rows,
        first_rows_max=first_batch_records_max,
        bytes_max=batch_bytes_max,
    )
    sequence = base_sequence if identity.producer_id >= 0 else _NONE
    for cut, records in _with_records(rows, cuts):
        header = _header(rows, cut, identity, sequence, codec)
        data = _batch(header, compress(codec, records))
        yield EncodedBatch(data=data, records=header.records_count, base_sequence=sequence)
        if sequence != _NONE:
            sequence = sequence_after(sequence, header.records_count)


def _codec(name: str) -> Compression:
    if name not in COMPRESSIONS:
        raise ValueError(f"compression {name!r} is not one of {', '.join(COMPRESSIONS)}")
    return Compression[name.upper()]


def _with_records(rows: Rows, cuts: Iterator[Cut]) -> Iterator[tuple[Cut, memoryview]]:
    """Each cut with its records."""
    for group in _groups(cuts):
        packed = packed_records(rows, group)
        for cut, start, end in zip(group, packed.borders, packed.borders[1:], strict=False):
            yield cut, packed.records[start:end]


def _groups(cuts: Iterator[Cut]) -> Iterator[list[Cut]]:
    """Some batches each: enough for arrays to be worth their calls, and not too much memory."""
    group: list[Cut] = []
    size_bytes = 0
    for cut in cuts:
        group.append(cut)
        size_bytes += cut.records_bytes_max
        if size_bytes >= _GROUP_BYTES:
            yield group
            group, size_bytes = [], 0
    if group:
        yield group


def _header(
    rows: Rows, cut: Cut, identity: WriterIdentity, sequence: int, codec: Compression
) -> BatchHeader:
    times_ms = rows.timestamps_ms[cut.start : cut.end]
    return BatchHeader(
        base_offset=0,
        batch_length=0,
        leader_epoch=-1,
        magic=MAGIC,
        crc=0,
        attributes=codec | identity.is_transactional * TRANSACTIONAL_BIT,
        last_offset_delta=cut.records_count - 1,
        base_timestamp_ms=int(times_ms[0]),
        max_timestamp_ms=int(times_ms.max()),
        producer_id=identity.producer_id,
        producer_epoch=identity.producer_epoch,
        base_sequence=sequence,
        records_count=cut.records_count,
    )


def _batch(header: BatchHeader, records: bytes | bytearray | memoryview) -> bytearray:
    length = HEADER_BYTES + len(records) - LENGTH_PREFIX_BYTES
    data = bytearray(HEADER.pack(*header._replace(batch_length=length)))
    data += records
    renew_crc(data)
    return data


class Cut(NamedTuple):
    """Rows [start, end) make one batch."""

    start: int
    end: int
    records_bytes_max: int

    @property
    def records_count(self) -> int:
        return self.end - self.start


def batch_cuts(rows: Rows, *, first_rows_max: int | None, bytes_max: int) -> Iterator[Cut]:
    """All rows in their order; the first batch has at most `first_rows_max`."""
    room = min(bytes_max, _BATCH_BYTES_MAX) - HEADER_BYTES
    ends = _largest_ends(rows, room)
    start, before = 0, 0
    rows_max = first_rows_max or rows.rows_count
    while start < rows.rows_count:
        fitting = int(ends.searchsorted(before + room, side="right"))
        end = min(max(fitting, start + 1), start + rows_max)
        after = int(ends[end - 1])
        yield Cut(start, end, after - before)
        start, before = end, after
        rows_max = rows.rows_count


def _largest_ends(rows: Rows, room: int) -> Numbers:
    """Where the record of each row would end at most, if all rows were one batch."""
    if not rows.rows_count:
        return np.empty(0, dtype=np.int64)
    rows_at_most = min(rows.rows_count, max(1, room // RECORD_BYTES_MIN))
    spread_ms = int(rows.timestamps_ms.max() - rows.timestamps_ms.min())
    widest = varint_widths(np.array([rows_at_most, -spread_ms, spread_ms]))
    bodies = rows.fixed_sizes + (widest[0] + widest[1:].max())
    ends: Numbers = np.cumsum(bodies + varint_widths(bodies))
    return ends


class Packed(NamedTuple):
    """The bytes of consecutive batches, and where each of them begins and ends."""

    records: memoryview
    borders: list[int]


def packed_records(rows: Rows, cuts: list[Cut]) -> Packed:
    """One batch after the other, without their headers."""
    here = slice(cuts[0].start, cuts[-1].end)
    starts = np.array([cut.start for cut in cuts])
    counts = np.array([cut.records_count for cut in cuts])
    offset_deltas = np.arange(here.start, here.stop) - np.repeat(starts, counts)
    times_ms = rows.timestamps_ms
    timestamp_deltas = times_ms[here] - np.repeat(times_ms[starts], counts)
    body_sizes = rows.fixed_sizes[here] + varint_widths(timestamp_deltas)
    body_sizes += varint_widths(offset_deltas)
    deltas = [body_sizes, _ATTRIBUTES, timestamp_deltas, offset_deltas]
    records = _joined(rows, here, deltas)
    _, offsets, content = records.buffers()
    row_borders = np.frombuffer(offsets, dtype=np.int32)
    borders = row_borders[[0, *np.cumsum(counts)]].tolist()
    return Packed(memoryview(content), borders)


def _joined(rows: Rows, here: slice, deltas: list[Numbers | int]) -> pa.Array:
    keys, values = rows.keys, rows.values
    ends = _NO_HEADERS if rows.headers is None else rows.headers.array[here]
    if keys.array.null_count == rows.rows_count:
        starts = binary_array(*varint_rows([*deltas, keys.sizes[here], values.sizes[here]]))
        return joined(starts, values.array[here], ends)
    starts = binary_array(*varint_rows([*deltas, keys.sizes[here]]))
    middles = binary_array(*varint_rows([values.sizes[here]]))
    return joined(starts, keys.array[here], middles, values.array[here], ends)
