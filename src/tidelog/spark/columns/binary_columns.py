"""Binary columns and numpy arrays: slices of one buffer to columns, columns to bytes and sizes.

Arrow copies and joins whole columns, not single rows. For slices of one buffer their starts and
ends, interleaved, are the offsets of a binary array over the whole buffer in which every second
element is a slice that is wanted; `take` picks those.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidelog.spark.columns.record_fields import Slices
from tidelog.spark.columns.varints import Numbers, Octets


def binary_column(data: Octets, slices: Slices) -> pa.Array:
    """One element per slice; slices do not overlap and come in the order of the data."""
    rows = len(slices.sizes)
    smallest, largest = slices.sizes.min(initial=0), slices.sizes.max(initial=-1)
    if largest < 0:
        return pa.nulls(rows, pa.binary())
    assert len(data) <= np.iinfo(np.int32).max, "offsets of binary arrays have 32 bits"
    sizes = slices.sizes if smallest >= 0 else np.maximum(slices.sizes, 0)
    borders = np.empty(2 * rows, dtype=np.int32)
    borders[0::2] = slices.starts
    np.add(slices.starts, sizes, out=borders[1::2], casting="unsafe")
    interleaved = pa.Array.from_buffers(
        pa.binary(), 2 * rows - 1, [None, pa.py_buffer(borders), pa.py_buffer(data)], null_count=0
    )
    wanted = pa.array(np.arange(0, 2 * rows, 2, dtype=np.int32))
    taken = pc.take(interleaved, wanted, boundscheck=False)
    if smallest >= 0:
        return taken
    _, offsets, content = taken.buffers()
    validity = validity_bitmap(slices.sizes >= 0)
    return pa.Array.from_buffers(pa.binary(), rows, [validity, offsets, content])


def fixed_column(kind: pa.DataType, numbers: NDArray[np.generic]) -> pa.Array:
    """An array of numbers without nulls, over the same memory."""
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(numbers)], null_count=0)


def validity_bitmap(is_there: NDArray[np.bool_]) -> pa.Buffer:
    """Arrow's way to say which rows are not null."""
    return pa.py_buffer(np.packbits(is_there, bitorder="little"))


def offsets_of(sizes: Numbers) -> NDArray[np.int32]:
    """Where elements of these sizes begin and end when they are put one after the other."""
    offsets = np.zeros(len(sizes) + 1, dtype=np.int32)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


_NOTHING = pa.scalar(b"", pa.binary())


def binary_array(data: Octets, sizes: Numbers) -> pa.Array:
    """Elements of these sizes, one after the other in `data`."""
    buffers = [None, pa.py_buffer(offsets_of(sizes)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(sizes), buffers, null_count=0)


def joined(*parts: pa.Array | pa.Scalar) -> pa.Array:
    """The parts of each row one after the other; a null is nothing."""
    return pc.binary_join_element_wise(*parts, _NOTHING, null_handling="replace")


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
