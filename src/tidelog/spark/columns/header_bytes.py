"""A column of header lists as the bytes that end each record: their number, then each of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidelog.spark.columns.joining import binary_array, joined
from tidelog.spark.columns.sized_bytes import sized_bytes
from tidelog.spark.columns.varints import Numbers, varint_rows


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
