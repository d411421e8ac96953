"""Binary columns put together: out of bytes with sizes, and side by side, row by row, by Arrow."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from tidelog.spark.columns.binary_columns import offsets_of
from tidelog.spark.columns.varints import Numbers, Octets

_NOTHING = pa.scalar(b"", pa.binary())


def binary_array(data: Octets, sizes: Numbers) -> pa.Array:
    """Elements of these sizes, one after the other in `data`."""
    buffers = [None, pa.py_buffer(offsets_of(sizes)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(sizes), buffers, null_count=0)


def joined(*parts: pa.Array | pa.Scalar) -> pa.Array:
    """The parts of each row one after the other; a null is nothing."""
    return pc.binary_join_element_wise(*parts, _NOTHING, null_handling="replace")
