"""How far the next record is, looked up by the first two bytes of a record.

A record of up to 8191 bytes writes its length in one or two bytes, and two bytes are few enough to
have all answers in a table. A negative length counts as if it were positive: whoever reads the
fields finds it out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidelog.spark.columns.varints import Numbers, Octets

LONGER = 0
"""Instead of a distance: the length takes more than two bytes."""


def _table() -> NDArray[np.int64]:
    low, high = np.divmod(np.arange(2**16), 2**8)
    table = np.where(low < 0x80, 1 + (low >> 1), 2 + ((low & 0x7F | high << 7) >> 1))
    table[(low >= 0x80) & (high >= 0x80)] = LONGER
    return table.astype(np.int64)


_TABLE = _table()
JUMPS: list[list[int]] = _TABLE.reshape(2**8, 2**8).tolist()
"""By the first byte, then by the second: for one record at a time."""


def jumps(data: Octets, positions: Numbers) -> Numbers:
    """For many records at once. Positions beyond the data see its last byte."""
    first = data.take(positions, mode="clip").astype(np.intp)
    second = data.take(positions + 1, mode="clip")
    return _TABLE.take((first << 8) | second)
