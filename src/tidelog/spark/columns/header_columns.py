"""The headers of records as one column of lists, shaped as in Spark's Kafka source.

A record without headers has null there, not an empty list. Records with headers are read side by
side, one header of each per step; a few records with very many headers are read one by one. Names
that are not UTF-8 are repaired with replacement characters, as Java does.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidelog.core.wire.malformed import MalformedMessage
from tidelog.core.wire.varint import read_varint
from tidelog.spark.columns.binary_columns import binary_column, offsets_of, validity_bitmap
from tidelog.spark.columns.record_fields import Fields, Slices
from tidelog.spark.columns.varints import DamagedRow, Numbers, Octets, read_varints, refuse_rows

HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
HEADERS = pa.list_(pa.field("element", HEADER))
_PARALLEL_MIN = 16
"""With fewer records in parallel a plain loop is faster."""


def headers_column(data: Octets, fields: Fields) -> pa.Array:
    """One list per record."""
    counts = fields.headers_counts
    rows = len(counts)
    if not counts.any():
        return pa.nulls(rows, HEADERS)
    names, contents = _read_headers(data, fields)
    offsets = offsets_of(counts)
    elements = pa.StructArray.from_arrays(
        [_as_text(binary_column(data, names)), binary_column(data, contents)],
        fields=list(HEADER),
    )
    buffers = [validity_bitmap(counts > 0), pa.py_buffer(offsets)]
    return pa.Array.from_buffers(HEADERS, rows, buffers, children=[elements])


def _read_headers(data: Octets, fields: Fields) -> tuple[Slices, Slices]:
    """All names and all values, in the order of the records."""
    counts = fields.headers_counts
    order = np.argsort(-counts, kind="stable")
    first_indexes = (np.cumsum(counts) - counts)[order]
    positions, ends = fields.headers_starts[order], fields.ends[order]
    total = int(counts.sum())
    columns = np.empty((4, total), dtype=np.int64)
    done = -counts[order]
    step = 0
    while (under_way := int(np.searchsorted(done, -step))) >= _PARALLEL_MIN:
        indexes = first_indexes[:under_way] + step
        try:
            positions[:under_way] = _step(data, positions[:under_way], columns, indexes)
        except DamagedRow as error:
            raise DamagedRow(int(order[error.index]), str(error)) from None
        step += 1
    for row in range(under_way):
        first, count = int(first_indexes[row]), int(-done[row])
        try:
            positions[row] = _read_plainly(
                data[: ends[row]], int(positions[row]), columns[:, first + step : first + count]
            )
        except MalformedMessage as error:
            raise DamagedRow(int(order[row]), str(error)) from None
    late = np.zeros(len(counts), dtype=np.bool_)
    late[order] = (positions != ends) & (done < 0)
    refuse_rows(late, "headers that do not fill their record")
    return Slices(columns[0], columns[1]), Slices(columns[2], columns[3])


def _step(
    data: Octets, positions: Numbers, columns: NDArray[np.int64], indexes: Numbers
) -> Numbers:
    """Read the next header of each of these records; returns where the one after it begins."""
    name_sizes, name_starts = read_varints(data, positions)
    refuse_rows(name_sizes < 0, "a header without a name")
    value_sizes, value_starts = read_varints(data, name_starts + name_sizes)
    columns[0, indexes], columns[1, indexes] = name_starts, name_sizes
    columns[2, indexes], columns[3, indexes] = value_starts, value_sizes
    return value_starts + np.maximum(value_sizes, 0)


def _read_plainly(data: Octets, position: int, columns: NDArray[np.int64]) -> int:
    """Read the remaining headers of one record, which ends where `data` ends."""
    octets = data.data
    for index in range(columns.shape[1]):
        name_size, name_start = read_varint(octets, position)
        if name_size < 0:
            raise MalformedMessage("a header without a name")
        value_size, value_start = read_varint(octets, name_start + name_size)
        columns[:, index] = name_start, name_size, value_start, value_size
        position = value_start + max(0, value_size)
    return position


def _as_text(names: pa.Array) -> pa.Array:
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:
        repaired = [name.decode("utf-8", "replace") for name in names.to_pylist()]
        return pa.array(repaired, pa.string())
