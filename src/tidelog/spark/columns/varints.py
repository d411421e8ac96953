"""Zigzag varints of many rows at once: read at given positions, or written side by side.

Reading never leaves the data: a position beyond its end sees its last byte. Positions only grow, so
comparing the last of them with the end of its record checks all of them.

What cannot be read is an exception that names the row or the batch, since arrays know no offsets.
The caller, who knows the batches, turns it into CorruptBatch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tidelog.core.model.exceptions import TidelogError
from tidelog.core.wire.varint import VARINT_BYTES_MAX, VARLONG_BYTES_MAX

Octets = NDArray[np.uint8]
Numbers = NDArray[np.int64]

_VARINT_LAST_BYTE_MAX = 0x0F
"""Four bytes carry 28 bits of 32."""
_VARLONG_LAST_BYTE_MAX = 0x01
"""Nine bytes carry 63 bits of 64."""


def read_varints(data: Octets, positions: Numbers) -> tuple[Numbers, Numbers]:
    """The 32-bit numbers at these positions, and the positions after them."""
    return _read(data, positions, bytes_max=VARINT_BYTES_MAX, last_byte_max=_VARINT_LAST_BYTE_MAX)


def read_varlongs(data: Octets, positions: Numbers) -> tuple[Numbers, Numbers]:
    """The 64-bit numbers at these positions, and the positions after them."""
    return _read(data, positions, bytes_max=VARLONG_BYTES_MAX, last_byte_max=_VARLONG_LAST_BYTE_MAX)


def varint_widths(numbers: Numbers) -> Numbers:
    """How many bytes each number takes."""
    codes = _zigzag(numbers)
    widths = np.ones(len(codes), dtype=np.int64)
    largest = int(codes.max(initial=0))
    for bits in range(7, 64, 7):
        if largest >> bits == 0:
            break
        widths += codes >= np.uint64(1 << bits)
    return widths


def varint_rows(columns: Sequence[Numbers | int]) -> tuple[Octets, Numbers]:
    """Per row the varints of all columns one after the other, as bytes and the sizes of the rows.

    A plain `int` is a byte that all rows have. At least one column must be an array.
    """
    rows = next(len(column) for column in columns if not isinstance(column, int))
    codes = [None if isinstance(column, int) else _zigzag(column) for column in columns]
    widths = [1 if each is None else _width(int(each.max(initial=0))) for each in codes]
    block = np.empty((rows, sum(widths)), dtype=np.uint8)
    used = np.ones(block.shape, dtype=np.bool_)
    sizes = np.full(rows, block.shape[1], dtype=np.int64)
    at = 0
    for column, code, width in zip(columns, codes, widths, strict=True):
        if code is None:
            block[:, at] = column
        else:
            sizes -= _fill(block[:, at : at + width], used[:, at : at + width], code)
        at += width
    if sizes.min(initial=block.shape[1]) == block.shape[1]:
        return block.reshape(-1), sizes
    return block[used], sizes


def _read(
    data: Octets, positions: Numbers, *, bytes_max: int, last_byte_max: int
) -> tuple[Numbers, Numbers]:
    """One or two bytes for all rows in narrow arithmetic; the few longer ones by themselves."""
    first = data.take(positions, mode="clip")
    if first.max(initial=0) < 0x80:
        codes = (first >> 1) ^ -(first & 1)
        return codes.view(np.int8).astype(np.int64), positions + 1
    second = data.take(positions + 1, mode="clip")
    has_second = first >> 7
    wide = ((second & -has_second).astype(np.uint16) << 7) | (first & 0x7F)
    wide = (wide >> 1) ^ -(wide & 1)
    numbers = wide.view(np.int16).astype(np.int64)
    after = positions + has_second
    after += 1
    longer = np.flatnonzero(first & second & 0x80)
    if len(longer):
        numbers[longer], after[longer] = _read_long(
            data, positions, longer, bytes_max=bytes_max, last_byte_max=last_byte_max
        )
    return numbers, after


def _read_long(
    data: Octets, positions: Numbers, rows: NDArray[np.intp], *, bytes_max: int, last_byte_max: int
) -> tuple[Numbers, Numbers]:
    """Byte by byte, for those of `rows` that still go on."""
    codes = np.zeros(len(rows), dtype=np.uint64)
    after = positions[rows]
    pending = np.arange(len(rows))
    for index in range(bytes_max):
        octets = data.take(after[pending], mode="clip")
        after[pending] += 1
        codes[pending] |= (octets & 0x7F).astype(np.uint64) << np.uint64(7 * index)
        if index == bytes_max - 1 and octets.max() > last_byte_max:
            worst = rows[pending[octets > last_byte_max][0]]
            raise DamagedRow(int(worst), "a varint is too large")
        pending = pending[octets >= 0x80]
        if not len(pending):
            break
    return ((codes >> np.uint64(1)) ^ -(codes & np.uint64(1))).view(np.int64), after


def _zigzag(numbers: Numbers) -> NDArray[np.uint64]:
    return ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)


def _width(code: int) -> int:
    return max(1, -(-code.bit_length() // 7))


def _fill(
    block: Octets, used: NDArray[np.bool_], codes: NDArray[np.uint64]
) -> NDArray[np.int64] | int:
    """A column of bytes for each seven bits; how many of them each row leaves unused."""
    last = block.shape[1] - 1
    unused: NDArray[np.int64] | int = 0
    for index in range(last):
        block[:, index] = codes & np.uint64(0x7F) | np.uint64(0x80)
        codes = codes >> np.uint64(7)
        if (ends := codes == 0).any():
            block[ends, index] &= 0x7F
            used[:, index + 1] = ~ends
            unused = unused + ends
    block[:, last] = codes
    return unused


class DamagedData(TidelogError):
    """Records that cannot be read; the subclasses say where."""


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
    """Raise DamagedRow for the first row that is marked."""
    if damaged.any():
        raise DamagedRow(int(damaged.argmax()), reason)
