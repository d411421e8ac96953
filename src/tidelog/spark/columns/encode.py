"""Arrow columns of one partition into record batches, ready to be produced.

Rows are cut into batches first; then the records of a few MiB of batches are written at once, and
each batch gets its header.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

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
from tidelog.spark.columns.batch_cuts import Cut, batch_cuts
from tidelog.spark.columns.record_bytes import packed_records
from tidelog.spark.columns.rows import Rows, rows_of

COMPRESSIONS = tuple(codec.name.lower() for codec in Compression)
_GROUP_BYTES = 2 * 2**20
"""Batches are written together until they have so much."""
_NONE = -1
"""The wire's word for no producer and no sequence."""


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
