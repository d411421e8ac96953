"""One piece of batches becomes one Arrow record batch.

Columns and their types are those of Spark's Kafka source, without topic and partition.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidelog.core.model.limits import INT64_MAX
from tidelog.core.wire.record_batch import BatchHeader, CorruptBatch
from tidelog.spark.columns.binary_columns import binary_column, fixed_column
from tidelog.spark.columns.damage import DamagedData, DamagedRow, DamagedSection, refuse_rows
from tidelog.spark.columns.header_columns import HEADERS, headers_column
from tidelog.spark.columns.pieces import FetchChunk
from tidelog.spark.columns.record_fields import Fields, read_fields
from tidelog.spark.columns.record_starts import record_starts
from tidelog.spark.columns.varints import Numbers

TIMESTAMP = pa.timestamp("us", tz="UTC")
_COLUMNS = [
    pa.field("key", pa.binary()),
    pa.field("value", pa.binary()),
    pa.field("offset", pa.int64()),
    pa.field("timestamp", TIMESTAMP),
    pa.field("timestampType", pa.int32()),
]
_WITHOUT_HEADERS = pa.schema(_COLUMNS)
_WITH_HEADERS = pa.schema([*_COLUMNS, pa.field("headers", HEADERS)])
_MICROSECONDS = 1_000
_TIMESTAMP_MS_MAX = INT64_MAX // _MICROSECONDS
_HARMLESS_MAX = 2**62
"""Two numbers up to that can be added without leaving 64 bits."""

CREATE_TIME = 0
LOG_APPEND_TIME = 1


def record_schema(*, with_headers: bool) -> pa.Schema:
    """What every piece has."""
    return _WITH_HEADERS if with_headers else _WITHOUT_HEADERS


def piece_columns(
    piece: FetchChunk, *, start_offset: int, end_offset: int, with_headers: bool
) -> pa.RecordBatch:
    """The piece's records within [start_offset, end_offset)."""
    headers = piece.headers
    schema = record_schema(with_headers=with_headers)
    if not headers:
        return pa.RecordBatch.from_pylist([], schema=schema)
    try:
        offsets, columns = _read(piece, with_headers=with_headers)
    except DamagedSection as error:
        raise _corrupt(error, headers[error.index]) from None
    except DamagedRow as error:
        raise _corrupt(error, _batch_of_row(headers, error.index)) from None
    batch = pa.RecordBatch.from_arrays(columns, schema=schema)
    if start_offset <= headers[0].base_offset and headers[-1].end_offset <= end_offset:
        return batch
    return batch.filter(pa.array((start_offset <= offsets) & (offsets < end_offset)))


def _read(piece: FetchChunk, *, with_headers: bool) -> tuple[Numbers, list[pa.Array]]:
    """The offsets of the piece's records by themselves, and all columns."""
    headers = piece.headers
    data, sections = piece.laid_out()
    fields = read_fields(data, record_starts(data, sections))
    offsets = _offsets(fields, headers)
    columns = [
        binary_column(data, fields.keys),
        binary_column(data, fields.values),
        fixed_column(pa.int64(), offsets),
        fixed_column(TIMESTAMP, _timestamps_us(fields, headers)),
        fixed_column(pa.int32(), _timestamp_types(headers)),
    ]
    if with_headers:
        columns.append(headers_column(data, fields))
    return offsets, columns


def _offsets(fields: Fields, headers: list[BatchHeader]) -> Numbers:
    last_deltas = _per_row(headers, [header.last_offset_delta for header in headers])
    deltas = fields.offset_deltas
    # Compared without a sign, so that a negative delta is larger than all others.
    refuse_rows(deltas.view(np.uint64) > last_deltas.view(np.uint64), "an offset beyond its batch")
    return _per_row(headers, [header.base_offset for header in headers]) + deltas


def _timestamps_us(fields: Fields, headers: list[BatchHeader]) -> Numbers:
    """A broker that stamps records itself writes one time for all of a batch."""
    deltas = fields.timestamp_deltas
    bases = [header.base_timestamp_ms for header in headers]
    if any(header.is_log_append_time for header in headers):
        deltas = np.where(_timestamp_types(headers) == LOG_APPEND_TIME, 0, deltas)
        bases = [
            header.max_timestamp_ms if header.is_log_append_time else header.base_timestamp_ms
            for header in headers
        ]
    base_times = _per_row(headers, bases)
    times_ms = base_times + deltas
    if max(map(abs, bases)) > _HARMLESS_MAX or _magnitude(deltas) > _HARMLESS_MAX:
        has_wrapped = ((times_ms ^ base_times) & (times_ms ^ deltas)) < 0
        refuse_rows(has_wrapped, "a timestamp of more than 64 bits")
    if _magnitude(times_ms) > _TIMESTAMP_MS_MAX:
        too_far = (times_ms > _TIMESTAMP_MS_MAX) | (times_ms < -_TIMESTAMP_MS_MAX)
        refuse_rows(too_far, "a timestamp that has no microseconds")
    times_ms *= _MICROSECONDS
    return times_ms


def _timestamp_types(headers: list[BatchHeader]) -> NDArray[np.int32]:
    types = [LOG_APPEND_TIME if header.is_log_append_time else CREATE_TIME for header in headers]
    return _per_row(headers, types).astype(np.int32)


def _per_row(headers: list[BatchHeader], numbers: list[int]) -> Numbers:
    """A number of each batch, once for each of its records."""
    counts = [header.records_count for header in headers]
    return np.repeat(np.array(numbers, dtype=np.int64), counts)


def _magnitude(numbers: Numbers) -> int:
    return max(int(numbers.max(initial=0)), -int(numbers.min(initial=0)))


def _batch_of_row(headers: list[BatchHeader], row: int) -> BatchHeader:
    for header in headers:
        row -= header.records_count
        if row < 0:
            return header
    raise AssertionError("a row beyond the last batch")


def _corrupt(error: DamagedData, header: BatchHeader) -> CorruptBatch:
    return CorruptBatch(f"{error}, in the batch at offset {header.base_offset}")
