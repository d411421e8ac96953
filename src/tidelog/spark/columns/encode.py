"""Arrow columns of one partition into record batches, ready to be produced.

All rows of a batch are written at once: their lengths and deltas as varints, and Arrow puts those,
keys and values side by side.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

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
from tidelog.spark.columns.batch_cuts import Cut, next_cut
from tidelog.spark.columns.joining import binary_array, content_of, joined
from tidelog.spark.columns.rows import Rows, rows_of
from tidelog.spark.columns.varints import Numbers, laid_out

COMPRESSIONS = tuple(codec.name.lower() for codec in Compression)
_NO_HEADERS = pa.scalar(b"\x00", pa.binary())
_ATTRIBUTES = 0
"""Of a record: nobody uses them."""
_NONE = -1
"""The wire's word for no producer and no sequence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who writes: the wire's own numbers, -1 for a producer without an id."""

    producer_id: int
    producer_epoch: int
    is_transactional: bool = True


PLAIN = Identity(producer_id=_NONE, producer_epoch=_NONE, is_transactional=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedBatch:
    """One batch with its checksum; the broker gives it its offsets."""

    data: bytearray
    records: int
    base_sequence: int


def encode(
    columns: pa.RecordBatch,
    *,
    identity: Identity,
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
    records_max = first_batch_records_max or rows.rows_count
    sequence = base_sequence if identity.producer_id >= 0 else _NONE
    start = 0
    while start < rows.rows_count:
        cut = next_cut(rows, start, records_max=records_max, bytes_max=batch_bytes_max)
        records = compress(codec, _records(rows, cut))
        data = _batch(_header(rows, cut, identity, sequence, codec), records)
        yield EncodedBatch(data=data, records=cut.rows_count, base_sequence=sequence)
        if sequence != _NONE:
            sequence = sequence_after(sequence, cut.rows_count)
        start, records_max = cut.end, rows.rows_count


def _codec(name: str) -> Compression:
    if name not in COMPRESSIONS:
        raise ValueError(f"compression {name!r} is not one of {', '.join(COMPRESSIONS)}")
    return Compression[name.upper()]


def _records(rows: Rows, cut: Cut) -> memoryview:
    """The rows of a cut as records, one after the other."""
    here = slice(cut.start, cut.end)
    keys, values = rows.keys, rows.values
    deltas: list[Numbers | int] = [
        cut.body_sizes,
        _ATTRIBUTES,
        cut.timestamp_deltas,
        np.arange(cut.rows_count),
    ]
    ends = _NO_HEADERS if rows.headers is None else rows.headers.array[here]
    if keys.array.null_count == rows.rows_count:
        starts = binary_array(*laid_out([*deltas, keys.sizes[here], values.sizes[here]]))
        return content_of(joined(starts, values.array[here], ends))
    starts = binary_array(*laid_out([*deltas, keys.sizes[here]]))
    middles = binary_array(*laid_out([values.sizes[here]]))
    return content_of(joined(starts, keys.array[here], middles, values.array[here], ends))


def _header(
    rows: Rows, cut: Cut, identity: Identity, sequence: int, codec: Compression
) -> BatchHeader:
    times_ms = rows.timestamps_ms[cut.start : cut.end]
    return BatchHeader(
        base_offset=0,
        batch_length=0,
        leader_epoch=-1,
        magic=MAGIC,
        crc=0,
        attributes=codec | identity.is_transactional * TRANSACTIONAL_BIT,
        last_offset_delta=cut.rows_count - 1,
        base_timestamp_ms=int(times_ms[0]),
        max_timestamp_ms=int(times_ms.max()),
        producer_id=identity.producer_id,
        producer_epoch=identity.producer_epoch,
        base_sequence=sequence,
        records_count=cut.rows_count,
    )


def _batch(header: BatchHeader, records: bytes | bytearray | memoryview) -> bytearray:
    length = HEADER_BYTES + len(records) - LENGTH_PREFIX_BYTES
    data = bytearray(HEADER.pack(*header._replace(batch_length=length)))
    data += records
    renew_crc(data)
    return data
