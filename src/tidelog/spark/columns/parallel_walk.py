"""Batches walked in parallel: one step in all of them at once, and at many positions of a big one.

Where a record begins in the middle of a batch is a guess: after the first zero byte of a stretch,
since records without headers end with a zero, and text has none inside. A wrong guess is noticed,
because the walk from the position before it does not arrive there. So all starts that are returned
were reached from the beginning of their batch, length by length.

How far the next record is, is looked up by the first two bytes of a record: a record of up to 8191
bytes writes its length in one or two bytes, and two bytes are few enough to have all answers in a
table. A negative length counts as if it were positive: reading the fields detects it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidelog.spark.columns.varints import DamagedRow, Numbers, Octets, read_varints

RECORD_BYTES_MIN = 7
"""Length, attributes, two deltas, two lengths and a count, of one byte each."""
_WALKERS_MIN = 64
"""With fewer at the beginning, other ways are faster."""
_PARALLEL_MIN = 16
"""When fewer are left, they are followed one by one."""
_WALKER_RECORDS = 20
_GUESSED_RECORDS_MIN = 4 * _WALKER_RECORDS
_SEARCHED_RECORDS = 2
"""A zero is searched within this many records of average size."""
_LONGER = 0
"""Instead of a distance: the length takes more than two bytes."""


class BatchSection(NamedTuple):
    """The records of one batch: [start, end) of the data, and how many there should be."""

    start: int
    end: int
    records_count: int


def starts_in_parallel(data: Octets, sections: Sequence[BatchSection]) -> list[Numbers] | None:
    """The starts of each section's records. None: too few walkers, a wrong guess, or damage,
    which the caller's other way will find. Sections come in the order of the data."""
    table = np.array(sections, dtype=np.int64).reshape(-1, 3)
    first, end, count = table[table[:, 0] < table[:, 1]].T
    guesses = _guesses(data, sections)
    if len(first) + len(guesses) < _WALKERS_MIN or not count.all():
        return None
    section_of = first.searchsorted(guesses, side="right") - 1
    is_likely = _look_like_records(data, guesses, end[section_of])
    entries = np.sort(np.concatenate([first, guesses[is_likely]]))
    section_of = first.searchsorted(entries, side="right") - 1
    ends = end[section_of]
    ends[:-1] = np.minimum(ends[:-1], entries[1:])
    found = _walk(data, entries, ends)
    if found is None:
        return None
    starts, walker_counts = found
    if (np.bincount(section_of, walker_counts) != count).any():
        return None
    return np.split(starts, np.cumsum(table[:-1, 2]))


def _guesses(data: Octets, sections: Sequence[BatchSection]) -> Numbers:
    """Where records may begin in the middle of large sections, some way from each other."""
    guesses = [np.empty(0, dtype=np.int64)]
    for start, end, count in sections:
        if count < _GUESSED_RECORDS_MIN:
            continue
        record_bytes = (end - start) // count
        walker_bytes = _WALKER_RECORDS * record_bytes
        walkers = (end - start) // walker_bytes
        stretches = data[start : start + walkers * walker_bytes].reshape(walkers, walker_bytes)
        is_zero = stretches[1:, : _SEARCHED_RECORDS * record_bytes] == 0
        zeros = is_zero.argmax(axis=1)
        guesses.append(
            np.arange(start + walker_bytes + 1, end, walker_bytes)[: walkers - 1] + zeros
        )
    return np.concatenate(guesses)


def _look_like_records(data: Octets, positions: Numbers, ends: Numbers) -> NDArray[np.bool_]:
    """Whether there are a length, attributes of zero, and zeros before it and at its end."""
    hops = jumps(data, positions)
    after = positions + hops
    attributes = data.take(positions + 1 + (data.take(positions, mode="clip") >> 7), mode="clip")
    zeros = data.take(positions - 1) | attributes | data.take(after - 1, mode="clip")
    is_likely: NDArray[np.bool_] = (zeros == 0) & (hops >= RECORD_BYTES_MIN) & (after <= ends)
    return is_likely


def _walk(data: Octets, positions: Numbers, ends: Numbers) -> tuple[Numbers, Numbers] | None:
    """All walkers to their ends: the starts in them, walker after walker, and how many each has."""
    walkers = np.arange(len(positions))
    counts = np.zeros(len(positions), dtype=np.int64)
    steps: list[tuple[Numbers, Numbers]] = []
    while len(walkers) >= _PARALLEL_MIN:
        steps.append((walkers, positions))
        try:
            positions = positions + _distances(data, positions)
        except DamagedRow:
            return None
        goes_on = positions < ends
        if not goes_on.all():
            is_over = ~goes_on
            if (positions[is_over] != ends[is_over]).any():
                return None
            counts[walkers[is_over]] = len(steps)
            walkers, positions, ends = walkers[goes_on], positions[goes_on], ends[goes_on]
    rests = []
    for walker, position, end in zip(
        walkers.tolist(), positions.tolist(), ends.tolist(), strict=True
    ):
        rest = _rest(data, position, end)
        if rest is None:
            return None
        rests.append((walker, rest))
        counts[walker] = len(steps) + len(rest)
    first_rows = np.cumsum(counts) - counts
    starts = np.empty(int(counts.sum()), dtype=np.int64)
    for number, (under_way, here) in enumerate(steps):
        starts[first_rows[under_way] + number] = here
    for walker, rest in rests:
        row = first_rows[walker] + len(steps)
        starts[row : row + len(rest)] = rest
    return starts, counts


def _distances(data: Octets, positions: Numbers) -> Numbers:
    """From each of these records to the next."""
    distances = jumps(data, positions)
    if distances.all():
        return distances
    sizes, after = read_varints(data, positions)
    return after - positions + np.maximum(sizes, 0)


def _rest(data: Octets, position: int, end: int) -> list[int] | None:
    """One record after the other; None if one crosses `end`, or is very long."""
    octets = data[position:end].tobytes() + b"\0"
    size = end - position
    starts: list[int] = []
    at = 0
    while at < size:
        starts.append(position + at)
        hop = JUMPS[octets[at]][octets[at + 1]]
        if not hop:
            return None
        at += hop
    return starts if at == size else None


def _table() -> NDArray[np.int64]:
    low, high = np.divmod(np.arange(2**16), 2**8)
    table = np.where(low < 0x80, 1 + (low >> 1), 2 + ((low & 0x7F | high << 7) >> 1))
    table[(low >= 0x80) & (high >= 0x80)] = _LONGER
    return table.astype(np.int64)


_TABLE = _table()
JUMPS: list[list[int]] = _TABLE.reshape(2**8, 2**8).tolist()
"""By the first byte, then by the second: for one record at a time."""


def jumps(data: Octets, positions: Numbers) -> Numbers:
    """For many records at once. Positions beyond the data see its last byte."""
    first = data.take(positions, mode="clip").astype(np.intp)
    second = data.take(positions + 1, mode="clip")
    return _TABLE.take((first << 8) | second)
