"""Rows that are to become records: columns as numbers, and what each weighs wherever it goes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tidelog.spark.columns.header_bytes import header_bytes
from tidelog.spark.columns.sized_bytes import SizedBytes, sized_bytes
from tidelog.spark.columns.varints import Numbers, varint_widths

_UNITS_PER_MS = {"ms": 1, "us": 1_000, "ns": 1_000_000}
_RECORD_BYTES_MAX = 2**30
"""Lengths have 31 bits, also those of a whole batch and of the request around it."""


class Rows(NamedTuple):
    """`settled_sizes` counts the bytes of a record that do not depend on its place in a batch."""

    rows_count: int
    keys: SizedBytes
    values: SizedBytes
    headers: SizedBytes | None
    timestamps_ms: Numbers
    settled_sizes: Numbers


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
    settled = 1 + _written(keys.sizes) + _written(values.sizes)
    settled += 1 if headers is None else headers.sizes
    if count and settled.max() > _RECORD_BYTES_MAX:
        raise ValueError(f"row {settled.argmax()} would be a record of {settled.max()} bytes")
    return Rows(count, keys, values, headers, times_ms, settled)


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
