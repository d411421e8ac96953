"""Batches walked side by side: one step in all at once, and in many places of a large one.

Where a record begins in the midst of a batch is a guess: after the first zero byte of a stretch,
since records without headers end with a zero, and text has none inside. A guess that was wrong is
found out, because whoever walks up to it from the place before does not arrive there. So all starts
that are returned were reached from the beginning of their batch, length by length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidelog.spark.columns.damage import DamagedRow
from tidelog.spark.columns.jumps import JUMPS, jumps
from tidelog.spark.columns.varints import Numbers, Octets, read_varints

RECORD_BYTES_MIN = 7
"""Length, attributes, two deltas, two lengths and a count, of one byte each."""
_LANES_MIN = 64
"""With fewer to begin with, other ways are faster."""
_UNDER_WAY_MIN = 16
"""So few are followed one by one."""
_LANE_RECORDS = 20
_GUESSED_RECORDS_MIN = 4 * _LANE_RECORDS
_SEARCHED_RECORDS = 2
"""So many of average size in a row hold a zero, if guessing makes sense at all."""


class BatchSection(NamedTuple):
    """The records of one batch: [start, end) of the data, and how many there should be."""

    start: int
    end: int
    records_count: int


def starts_in_parallel(data: Octets, sections: Sequence[BatchSection]) -> list[Numbers] | None:
    """The records of each section. None: too few lanes, a wrong guess, or damage, which whoever
    takes another way will meet. Sections come in the order of the data."""
    table = np.array(sections, dtype=np.int64).reshape(-1, 3)
    first, end, count = table[table[:, 0] < table[:, 1]].T
    guesses = _guesses(data, sections)
    if len(first) + len(guesses) < _LANES_MIN or not count.all():
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
    starts, lane_counts = found
    if (np.bincount(section_of, lane_counts) != count).any():
        return None
    return np.split(starts, np.cumsum(table[:-1, 2]))


def _guesses(data: Octets, sections: Sequence[BatchSection]) -> Numbers:
    """Where records may begin in the midst of large sections, some way from each other."""
    guesses = [np.empty(0, dtype=np.int64)]
    for start, end, count in sections:
        if count < _GUESSED_RECORDS_MIN:
            continue
        record_bytes = (end - start) // count
        lane_bytes = _LANE_RECORDS * record_bytes
        lanes = (end - start) // lane_bytes
        stretches = data[start : start + lanes * lane_bytes].reshape(lanes, lane_bytes)
        is_zero = stretches[1:, : _SEARCHED_RECORDS * record_bytes] == 0
        zeros = is_zero.argmax(axis=1)
        guesses.append(np.arange(start + lane_bytes + 1, end, lane_bytes)[: lanes - 1] + zeros)
    return np.concatenate(guesses)


def _look_like_records(data: Octets, positions: Numbers, ends: Numbers) -> NDArray[np.bool_]:
    """Whether a length and attributes of zero are there, and before it and at its end a zero."""
    hops = jumps(data, positions)
    after = positions + hops
    attributes = data.take(positions + 1 + (data.take(positions, mode="clip") >> 7), mode="clip")
    zeros = data.take(positions - 1) | attributes | data.take(after - 1, mode="clip")
    is_likely: NDArray[np.bool_] = (zeros == 0) & (hops >= RECORD_BYTES_MIN) & (after <= ends)
    return is_likely


def _walk(data: Octets, positions: Numbers, ends: Numbers) -> tuple[Numbers, Numbers] | None:
    """All lanes to their ends: the starts in them, lane after lane, and how many each has."""
    lanes = np.arange(len(positions))
    counts = np.zeros(len(positions), dtype=np.int64)
    steps: list[tuple[Numbers, Numbers]] = []
    while len(lanes) >= _UNDER_WAY_MIN:
        steps.append((lanes, positions))
        try:
            positions = positions + _distances(data, positions)
        except DamagedRow:
            return None
        goes_on = positions < ends
        if not goes_on.all():
            is_over = ~goes_on
            if (positions[is_over] != ends[is_over]).any():
                return None
            counts[lanes[is_over]] = len(steps)
            lanes, positions, ends = lanes[goes_on], positions[goes_on], ends[goes_on]
    rests = []
    for lane, position, end in zip(lanes.tolist(), positions.tolist(), ends.tolist(), strict=True):
        rest = _rest(data, position, end)
        if rest is None:
            return None
        rests.append((lane, rest))
        counts[lane] = len(steps) + len(rest)
    first_rows = np.cumsum(counts) - counts
    starts = np.empty(int(counts.sum()), dtype=np.int64)
    for number, (under_way, here) in enumerate(steps):
        starts[first_rows[under_way] + number] = here
    for lane, rest in rests:
        row = first_rows[lane] + len(steps)
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
    """One record after the other; None: there is one that does not end there, or is very long."""
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
