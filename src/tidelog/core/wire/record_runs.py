"""Runs of records that have the same layout, compared by columns: many records with a few steps.

A column is the byte at the same place of each record of a run. If the bytes of all lengths are what
they are in the record before the run, each record has its layout. Offset deltas must be the
expected ones, and timestamps must take as many bytes as there.
"""

from __future__ import annotations

from typing import NamedTuple

from tidelog.core.model.limits import BATCH_RECORDS_MAX

SHORT_DELTA_MAX = 8_192
"""No timestamp delta of a run is larger: none takes more than two bytes."""

_FIRST_STEP_RECORDS = 128
_STEP_FACTOR = 16

_ASCII = bytes(range(0x80))
_NOT_ASCII = bytes(range(0x80, 0x100))
_DOWN = range(0x7F, -1, -1)
_EVEN_DOWN = range(0x7E, -1, -2)
_ODD_UP = range(1, 0x80, 2)

# The bytes of offset deltas, by their place in the varint. The last byte of one has no top bit.
OFFSET_WIDTH_ENDS = (0, 64, 8_192, 2**20)
"""Where deltas of so many bytes end; a batch has no more records than the last."""
_PERIOD = 64
LAST_OF_ONE = bytes(range(0, 0x80, 2))
FIRST_OF_MORE = bytes(range(0x80, 0x100, 2))
LAST_OF_TWO = b"".join(bytes((value,)) * _PERIOD for value in range(0x80))
_SECOND = b"".join(bytes((value + 0x80,)) * _PERIOD for value in range(0x80))

assert OFFSET_WIDTH_ENDS[-1] >= BATCH_RECORDS_MAX


class RecordLayout(NamedTuple):
    """Where the fields of one record begin, from its first byte on."""

    size_bytes: int
    timestamp_at: int
    offset_at: int
    key_at: int
    lengths: tuple[int, ...]
    """The bytes that must be the same in a record of the same layout; none with many headers."""
    headers_count: int
    timestamp_delta: int
    has_null_key: bool


def run_length(data: bytes, at: int, index: int, count: int, layout: RecordLayout) -> int:
    """How many records from `at` on have the layout of the one before, offsets included."""
    size = layout.size_bytes
    width = offset_width(index)
    if layout.key_at - layout.offset_at != width or layout.offset_at - layout.timestamp_at > 2:
        return 0
    if not layout.lengths:
        return 0
    longest = min(count, OFFSET_WIDTH_ENDS[width]) - index
    longest = min(longest, (len(data) - at) // size)
    length, step = 0, _FIRST_STEP_RECORDS
    while length < longest:
        # Ever longer steps: a batch of many short runs must not cost a look at all of it for each.
        step = min(step, longest - length)
        found = _alike(data, at, length, step, index, layout)
        length += found
        if found < step:
            break
        step *= _STEP_FACTOR
    return length


def _alike(
    data: bytes, at: int, skipped: int, length: int, index: int, layout: RecordLayout
) -> int:
    """How many of the next `length` records behind the `skipped` ones have the layout."""
    size, before = layout.size_bytes, at - layout.size_bytes
    at += skipped * size
    for position in layout.lengths:
        column = _column(data, at + position, length, size)
        same = bytes((data[before + position],))
        if column != same * length:
            length -= len(column.lstrip(same))
            if not length:
                return 0
    expected = _offset_columns(index + skipped, length, layout.key_at - layout.offset_at)
    for position, column in enumerate(expected, layout.offset_at):
        if _column(data, at + position, length, size) != column:
            return 0  # one of them is wrong, or takes more bytes than it needs
    last = layout.offset_at - 1
    length = _leading(_column(data, at + last, length, size), _ASCII)
    if last > layout.timestamp_at and length:
        length = _leading(_column(data, at + layout.timestamp_at, length, size), _NOT_ASCII)
    return length


def _offset_columns(index: int, length: int, width_bytes: int) -> tuple[bytes, ...]:
    """The bytes of the offset deltas from `index` on."""
    if width_bytes == 1:
        return (LAST_OF_ONE[index : index + length],)
    first = repeated(FIRST_OF_MORE, index, length)
    if width_bytes == 2:
        return first, LAST_OF_TWO[index : index + length]
    block = len(_SECOND)
    blocks = range(index // block, (index + length - 1) // block + 1)
    last = b"".join(bytes((value,)) * block for value in blocks)
    skipped = index % block
    return first, repeated(_SECOND, index, length), last[skipped : skipped + length]


def repeated(period: bytes, start: int, length: int) -> bytes:
    start %= len(period)
    return (period * ((start + length) // len(period) + 1))[start : start + length]


def offset_width(index: int) -> int:
    """How many bytes an offset delta takes."""
    return 1 if index < OFFSET_WIDTH_ENDS[1] else 2 if index < OFFSET_WIDTH_ENDS[2] else 3


def _column(data: bytes, first: int, length: int, size_bytes: int) -> bytes:
    return data[first : first + (length - 1) * size_bytes + 1 : size_bytes]


def _leading(column: bytes, allowed: bytes) -> int:
    """How many bytes at the beginning are of the allowed ones."""
    if allowed is _ASCII and column.isascii():
        return len(column)
    return len(column) - len(column.lstrip(allowed))


def latest_delta(data: bytes, at: int, length: int, layout: RecordLayout) -> int:
    """The largest timestamp delta of a run, which takes one byte or two in all its records."""
    low = _column(data, at + layout.timestamp_at, length, layout.size_bytes)
    if layout.offset_at - layout.timestamp_at == 1:
        return _largest(low, 0)
    high = _column(data, at + layout.timestamp_at + 1, length, layout.size_bytes)
    low = low.translate(_WITHOUT_TOP_BIT)
    top = next(value for value in _DOWN if value in high)
    first, end = high.find(top), high.rfind(top) + 1
    if high.count(top) == end - first and any(even in low[first:end] for even in _EVEN_DOWN):
        return _largest(low[first:end], top)  # as if clocks never went back
    return max(_decoded(a + (b << 7)) for a, b in set(zip(low, high, strict=True)))


_WITHOUT_TOP_BIT = _ASCII + _ASCII


def _largest(low: bytes, high: int) -> int:
    """Looked for by value: that is a search in C, at most 128 of them for any number of records."""
    for value in _EVEN_DOWN:
        if value in low:
            return _decoded(value + (high << 7))
    return next(_decoded(value + (high << 7)) for value in _ODD_UP if value in low)


def _decoded(number: int) -> int:
    return (number >> 1) ^ -(number & 1)
