"""The records of several batches, written together as one stretch of bytes.

Lengths and deltas become varints of all rows at once, and Arrow puts those, keys and values side by
side. A batch is then a part of the stretch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tidelog.spark.columns.batch_cuts import Cut
from tidelog.spark.columns.joining import binary_array, joined
from tidelog.spark.columns.rows import Rows
from tidelog.spark.columns.varints import Numbers, varint_rows, varint_widths

_NO_HEADERS = pa.scalar(b"\x00", pa.binary())
_ATTRIBUTES = 0
"""Of a record: nobody uses them."""


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
    body_sizes = rows.settled_sizes[here] + varint_widths(timestamp_deltas)
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
