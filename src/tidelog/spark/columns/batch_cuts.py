"""Where batches end: as many rows as fit, at least one.

What a row weighs depends on its place in the batch, since deltas grow. Cumulated least weights tell
how many rows can fit at most; only those are weighed exactly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidelog.core.wire.record_batch import HEADER_BYTES
from tidelog.spark.columns.rows import Rows
from tidelog.spark.columns.varints import Numbers, varint_widths


class Cut(NamedTuple):
    """Rows [start, end) make one batch."""

    start: int
    end: int
    timestamp_deltas: Numbers
    body_sizes: Numbers
    """Of the records, without the length that stands before each."""

    @property
    def rows_count(self) -> int:
        return self.end - self.start


def next_cut(rows: Rows, start: int, *, records_max: int, bytes_max: int) -> Cut:
    """The batch that begins with row `start`."""
    room = bytes_max - HEADER_BYTES
    end = min(start + records_max, _end_at_most(rows, start, room))
    timestamp_deltas = rows.timestamps_ms[start:end] - rows.timestamps_ms[start]
    body_sizes = rows.settled_sizes[start:end] + varint_widths(timestamp_deltas)
    body_sizes += varint_widths(np.arange(end - start))
    ends = np.cumsum(body_sizes + varint_widths(body_sizes))
    fitting = max(1, int(np.searchsorted(ends, room, side="right")))
    return Cut(start, start + fitting, timestamp_deltas[:fitting], body_sizes[:fitting])


def _end_at_most(rows: Rows, start: int, room: int) -> int:
    """If lengths and deltas took only a byte each."""
    before = rows.least_ends[start - 1] if start else 0
    return max(start + 1, int(np.searchsorted(rows.least_ends, before + room, side="right")))
