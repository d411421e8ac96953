"""What cannot be read among many records that are read together: where it is, and why.

Arrays know rows, not offsets. Whoever knows the batches turns these into the house's CorruptBatch.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class DamagedData(Exception):
    """Something is wrong; the two below say where."""


class DamagedSection(DamagedData):
    """The records of the batch at `index` do not add up."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(reason)
        self.index = index


class DamagedRow(DamagedData):
    """The record at `index`, counted over all batches, has fields that do not fit into it."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(reason)
        self.index = index


def refuse_rows(damaged: NDArray[np.bool_], reason: str) -> None:
    """Complain about the first row that is marked."""
    if damaged.any():
        raise DamagedRow(int(damaged.argmax()), reason)
