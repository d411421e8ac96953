"""Binary columns out of slices of one buffer, copied and joined by Arrow and not row by row.

The slices' starts and ends, interleaved, are the offsets of a binary array over the whole buffer in
which every second element is a slice that is wanted; `take` picks those.
"""

from __future__ import annotations

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
