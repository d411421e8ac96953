"""Where batches end: as many rows as surely fit, at least one.

What a row weighs depends on its place in a batch, since deltas grow. Rows are weighed with the
widest deltas that there can be: batches stay a few bytes per row below their limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tidelog.core.wire.record_batch import HEADER_BYTES
from tidelog.spark.columns.parallel_walk import RECORD_BYTES_MIN
from tidelog.spark.columns.rows import Rows
from tidelog.spark.columns.varints import Numbers, varint_widths

_BATCH_BYTES_MAX = 2**30
"""Offsets of binary arrays have 31 bits, also those of batches that are written together."""


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
    ends = _heaviest_ends(rows, room)
    start, before = 0, 0
    rows_max = first_rows_max or rows.rows_count
    while start < rows.rows_count:
        fitting = int(ends.searchsorted(before + room, side="right"))
        end = min(max(fitting, start + 1), start + rows_max)
        after = int(ends[end - 1])
        yield Cut(start, end, after - before)
        start, before = end, after
        rows_max = rows.rows_count


def _heaviest_ends(rows: Rows, room: int) -> Numbers:
    """Where each row's record would end at the latest if all rows were one batch."""
    if not rows.rows_count:
        return np.empty(0, dtype=np.int64)
    rows_at_most = min(rows.rows_count, max(1, room // RECORD_BYTES_MIN))
    spread_ms = int(rows.timestamps_ms.max() - rows.timestamps_ms.min())
    widest = varint_widths(np.array([rows_at_most, -spread_ms, spread_ms]))
    bodies = rows.settled_sizes + (widest[0] + widest[1:].max())
    ends: Numbers = np.cumsum(bodies + varint_widths(bodies))
    return ends
