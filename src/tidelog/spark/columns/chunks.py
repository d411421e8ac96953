"""A chunk: some batches of a fetch response, decompressed, that become one Arrow record batch.

Small batches together make arrays that are worth their calls, and a few MiB of them still fit into
the processor's caches. A bound on what is decompressed at a time bounds memory, whatever the
batches decompress to. Batches that are not compressed stay where they are.

Columns and their types are those of Spark's Kafka source, without topic and partition.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidelog.core.model.limits import DECOMPRESSED_BATCH_BYTES_MAX, INT64_MAX
from tidelog.core.wire.compression import Compression, decompress
from tidelog.core.wire.record_batch import HEADER_BYTES, BatchHeader, CorruptBatch
from tidelog.spark.columns.binary_columns import binary_column, fixed_column
from tidelog.spark.columns.header_columns import HEADERS, headers_column
from tidelog.spark.columns.parallel_walk import BatchSection
from tidelog.spark.columns.record_fields import Fields, read_fields
from tidelog.spark.columns.record_starts import record_starts
from tidelog.spark.columns.varints import (
    DamagedData,
    DamagedRow,
    DamagedSection,
    Numbers,
    Octets,
    refuse_rows,
)

CHUNK_BYTES = 4 * 2**20
"""A chunk of this size takes no further batch."""
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


class FetchChunk:
    """Batches in the order of their offsets, each with the position of its records."""

    def __init__(self, records: memoryview) -> None:
        self.records = records
        self._positions: list[int] = []
        self._sections: list[memoryview] = []
        self._is_compressed = False
        self.headers: list[BatchHeader] = []
        self.size_bytes = 0
        self.skipped_aborted = 0
        self.skipped_control = 0

    def add(self, position: int, header: BatchHeader) -> None:
        """Add a whole batch of the response; CorruptBatch if it cannot be decompressed."""
        if header.last_offset_delta < 0 or header.base_offset > INT64_MAX - 2**32:
            raise CorruptBatch(f"offsets from {header.base_offset}, {header.last_offset_delta} on")
        section = self.records[position + HEADER_BYTES : position + header.size_bytes]
        if header.compression != Compression.NONE and header.records_count != 0:
            self._is_compressed = True
            decompressed = decompress(
                header.compression, section, bytes_max=DECOMPRESSED_BATCH_BYTES_MAX
            )
            section = memoryview(decompressed)
        self._positions.append(position)
        self._sections.append(section)
        self.headers.append(header)
        self.size_bytes += len(section)

    def contiguous(self) -> tuple[Octets, list[BatchSection]]:
        """All records in one array of bytes, and where those of each batch are in it."""
        counts = [header.records_count for header in self.headers]
        sizes = [len(section) for section in self._sections]
        if self._is_compressed:
            data: bytes | memoryview = b"".join(self._sections)
            starts = [0, *accumulate(sizes)]
        else:
            origin = self._positions[0]
            data = self.records[origin : self._positions[-1] + self.headers[-1].size_bytes]
            starts = [position - origin + HEADER_BYTES for position in self._positions]
        sections = [
            BatchSection(start, start + size, count)
            for start, size, count in zip(starts, sizes, counts, strict=False)
        ]
        return np.frombuffer(data, dtype=np.uint8), sections


def record_schema(*, with_headers: bool) -> pa.Schema:
    """The columns of every chunk."""
    return _WITH_HEADERS if with_headers else _WITHOUT_HEADERS


def chunk_columns(
    chunk: FetchChunk, *, start_offset: int, end_offset: int, with_headers: bool
) -> pa.RecordBatch:
    """The chunk's records within [start_offset, end_offset)."""
    headers = chunk.headers
    schema = record_schema(with_headers=with_headers)
    if not headers:
        return pa.RecordBatch.from_pylist([], schema=schema)
    try:
        offsets, columns = _read(chunk, with_headers=with_headers)
    except DamagedSection as error:
        raise _corrupt(error, headers[error.index]) from None
    except DamagedRow as error:
        raise _corrupt(error, _batch_of_row(headers, error.index)) from None
    batch = pa.RecordBatch.from_arrays(columns, schema=schema)
    if start_offset <= headers[0].base_offset and headers[-1].end_offset <= end_offset:
        return batch
    return batch.filter(pa.array((start_offset <= offsets) & (offsets < end_offset)))


def _read(chunk: FetchChunk, *, with_headers: bool) -> tuple[Numbers, list[pa.Array]]:
    """The offsets of the chunk's records by themselves, and all columns."""
    headers = chunk.headers
    data, sections = chunk.contiguous()
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
