"""A column of byte strings as numpy arrays: the bytes, and where those of each row begin."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelog.spark.columns.varints import Numbers, Octets


class SizedBytes(NamedTuple):
    """One entry per row in `starts` and `sizes`; a size of -1 stands for null, as on the wire."""

    array: pa.Array
    data: Octets
    starts: Numbers
    sizes: Numbers


def sized_bytes(column: pa.Array) -> SizedBytes:
    """Of any Arrow type that holds bytes or text; other types are a ValueError."""
    array = _as_binary(column)
    _, offsets_buffer, content = array.buffers()
    borders = np.frombuffer(offsets_buffer, dtype=np.int32, count=array.offset + len(array) + 1)
    offsets = borders[array.offset :].astype(np.int64)
    data = np.frombuffer(content or b"", dtype=np.uint8)
    sizes = np.diff(offsets)
    if array.null_count:
        sizes[array.is_null().to_numpy(zero_copy_only=False)] = -1
    return SizedBytes(array, data, offsets[:-1], sizes)


def _as_binary(column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_binary(kind):
        return column
    try:
        if pa.types.is_dictionary(kind):
            column = pc.cast(column, kind.value_type)
        if not _holds_bytes(column.type):
            raise ValueError(f"a column of {kind} where bytes or text are needed")
        return pc.cast(column, pa.binary())
    except pa.ArrowInvalid as error:
        raise ValueError(f"a column of {kind} cannot be taken as bytes: {error}") from None


def _holds_bytes(kind: pa.DataType) -> bool:
    return any(
        is_one(kind)
        for is_one in (
            pa.types.is_null,
            pa.types.is_binary,
            pa.types.is_string,
            pa.types.is_large_binary,
            pa.types.is_large_string,
            pa.types.is_fixed_size_binary,
            pa.types.is_binary_view,
            pa.types.is_string_view,
        )
    )
