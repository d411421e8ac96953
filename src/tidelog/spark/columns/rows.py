"""Rows that are to become records: columns as numbers, and the size of each row's fixed part.

A column of header lists becomes the bytes that end each record: their number, then each header.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tidelog.spark.columns.binary_columns import SizedBytes, binary_array, joined, sized_bytes
from tidelog.spark.columns.varints import Numbers, varint_rows, varint_widths

_UNITS_PER_MS = {"ms": 1, "us": 1_000, "ns": 1_000_000}
_RECORD_BYTES_MAX = 2**30
"""Lengths have 31 bits, also those of a whole batch and of the request around it."""


class Rows(NamedTuple):
    """`fixed_sizes` counts the bytes of a record that do not depend on its position in a batch."""

    rows_count: int
    keys: SizedBytes
    values: SizedBytes
    headers: SizedBytes | None
    timestamps_ms: Numbers
    fixed_sizes: Numbers


def rows_of(columns: pa.RecordBatch, *, now_ms: int) -> Rows:
    """Columns that are not there count as null; without `value` it is a ValueError."""
    count = columns.num_rows
    names = columns.schema.names
    if "value" not in names:
        raise ValueError(f"no column named value among {', '.join(names) or 'none'}")
    values = sized_bytes(columns.column("value"))
    keys = sized_bytes(columns.column("key") if "key" in names else pa.nulls(count, pa.binary()))
    packed = header_bytes(columns.column("headers")) if "headers" in names else None
    headers = None if packed is None else sized_bytes(packed)
    times_ms = np.full(count, now_ms, dtype=np.int64)
    if "timestamp" in names:
        times_ms = _times_ms(columns.column("timestamp"), now_ms=now_ms)
    fixed = 1 + _written(keys.sizes) + _written(values.sizes)
    fixed += 1 if headers is None else headers.sizes
    if count and fixed.max() > _RECORD_BYTES_MAX:
        raise ValueError(f"row {fixed.argmax()} would be a record of {fixed.max()} bytes")
    return Rows(count, keys, values, headers, times_ms, fixed)


def _written(sizes: Numbers) -> Numbers:
    """A length and what it announces."""
    return varint_widths(sizes) + np.maximum(sizes, 0)


def _times_ms(column: pa.Array, *, now_ms: int) -> Numbers:
    """Of timestamps, or of whole numbers that count milliseconds; rounded down."""
    kind = column.type
    if not (pa.types.is_timestamp(kind) or pa.types.is_int64(kind)):
        raise ValueError(f"a timestamp column of {kind}")
    is_null = column.is_null().to_numpy(zero_copy_only=False)
    times = column.cast(pa.int64()).fill_null(0).to_numpy()
    unit = kind.unit if pa.types.is_timestamp(kind) else "ms"
    times_ms: Numbers = times * 1_000 if unit == "s" else times // _UNITS_PER_MS[unit]
    times_ms = np.where(is_null, now_ms, times_ms)
    if len(times_ms) and times_ms.min() < 0:
        row = times_ms.argmin()
        raise ValueError(f"the timestamp of row {row} is before 1970: {times_ms[row]} ms")
    return times_ms


def header_bytes(column: pa.Array) -> pa.Array | None:
    """One binary element per row; None if no row has any header."""
    if column.null_count == len(column):
        return None
    if not _holds_headers(column.type):
        raise ValueError(f"headers are an array of (key, value) structs, not {column.type}")
    counts = column.value_lengths().fill_null(0).to_numpy().astype(np.int64)
    if not counts.any():
        return None
    headers = column.flatten()  # without what nulls may have below them
    if headers.null_count:
        raise ValueError("a header that is null")
    return joined(binary_array(*varint_rows([counts])), _grouped(_packed(headers), counts))


def _holds_headers(kind: pa.DataType) -> bool:
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return False
    names = {field.name for field in kind.value_type} if pa.types.is_struct(kind.value_type) else ()
    return names == {"key", "value"}


def _packed(headers: pa.Array) -> pa.Array:
    """Each header by itself: name and value, each after its length."""
    names, values = sized_bytes(headers.field("key")), sized_bytes(headers.field("value"))
    if names.array.null_count:
        raise ValueError("a header without a key")
    return joined(
        binary_array(*varint_rows([names.sizes])),
        names.array,
        binary_array(*varint_rows([values.sizes])),
        values.array,
    )


def _grouped(packed: pa.Array, counts: Numbers) -> pa.Array:
    """As many consecutive elements to a row as it has: the same bytes with fewer borders."""
    _, offsets, content = packed.buffers()
    borders = np.concatenate([[0], np.cumsum(counts)])
    row_offsets = np.frombuffer(offsets, dtype=np.int32)[borders]
    buffers = [None, pa.py_buffer(row_offsets), content]
    return pa.Array.from_buffers(pa.binary(), len(counts), buffers, null_count=0)
