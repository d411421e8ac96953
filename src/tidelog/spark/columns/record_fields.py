"""The fields of records whose starts are known: deltas, and where keys, values and headers are.

All rows are read field by field. Positions only grow along a record, so the one comparison at the
end, of where its fields end with where the record ends, covers every length on the way.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidelog.spark.columns.varints import Numbers, Octets, read_varints, read_varlongs, refuse_rows

_HEADER_BYTES_MIN = 2
"""The length of a name and that of a value."""


class Slices(NamedTuple):
    """Per row a part of the data; a negative size means that there is none."""

    starts: Numbers
    sizes: Numbers


class Fields(NamedTuple):
    """One entry per record in each column."""

    timestamp_deltas: Numbers
    offset_deltas: Numbers
    keys: Slices
    values: Slices
    headers_counts: Numbers
    headers_starts: Numbers
    ends: Numbers


def read_fields(data: Octets, starts: Numbers) -> Fields:
    """Read them, and refuse a record whose fields do not fit into it."""
    sizes, bodies = read_varints(data, starts)
    refuse_rows(sizes < 0, "a record of negative size")
    ends = bodies + sizes
    timestamp_deltas, after = read_varlongs(data, bodies + 1)  # one byte of attributes: unused
    offset_deltas, after = read_varints(data, after)
    keys, after = _read_slices(data, after)
    values, after = _read_slices(data, after)
    headers_counts, after = read_varints(data, after)
    room = ends - after
    if headers_counts.any():
        refuse_rows(headers_counts < 0, "a negative number of headers")
        refuse_rows(room < headers_counts * _HEADER_BYTES_MIN, "fields beyond the record's end")
        refuse_rows((headers_counts == 0) & (room != 0), "fields that do not fill their record")
    else:
        refuse_rows(room != 0, "fields that do not fill their record")
    return Fields(timestamp_deltas, offset_deltas, keys, values, headers_counts, after, ends)


def _read_slices(data: Octets, positions: Numbers) -> tuple[Slices, Numbers]:
    """Lengths and the bytes after them. Any negative length means null, as in Kafka."""
    sizes, starts = read_varints(data, positions)
    return Slices(starts, sizes), starts + np.maximum(sizes, 0)
