"""Where the records of batches begin: each says how long it is, so one leads to the next.

That chain is serial, and there are three ways along it. Equal records are one comparison of a
strided view (a run ends where a length differs, for example where offset deltas grow to a second
byte). Many small batches are walked side by side. Whatever remains takes a plain loop. Every way
only follows lengths that were read, so none of them guesses wrong, and each step goes forward, so
none hangs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidelog.core.wire.malformed import MalformedMessage
from tidelog.core.wire.varint import read_varint
from tidelog.spark.columns.damage import DamagedRow, DamagedSection
from tidelog.spark.columns.varints import Numbers, Octets, read_varints

RECORD_BYTES_MIN = 7
"""Length, attributes, two deltas, two lengths and a count, of one byte each."""
_RUN_RECORDS_MIN = 24
"""A run that is shorter than that was not worth the comparison."""
_PLAIN_RECORDS = 64
"""So many steps of the plain loop before equal records are looked for again."""
_LANES_MIN = 96
"""With fewer batches side by side the other ways are faster."""


class Section(NamedTuple):
    """The records of one batch: [start, end) of the data, and how many there should be."""

    start: int
    end: int
    records_count: int


def record_starts(data: Octets, sections: list[Section]) -> Numbers:
    """The position of every record, section after section."""
    for index, section in enumerate(sections):
        room = section.end - section.start
        if not 0 <= section.records_count * RECORD_BYTES_MIN <= room:
            raise DamagedSection(index, f"{section.records_count} records in {room} bytes")
    if len(sections) >= _LANES_MIN:
        return _side_by_side(data, sections)
    found = [np.empty(0, dtype=np.int64)]
    for index, section in enumerate(sections):
        found += _walk(data, index, section)
    return np.concatenate(found)


def _walk(data: Octets, index: int, section: Section) -> list[Numbers]:
    walk = _Walk(data, section)
    try:
        while walk.remaining:
            if not (walk.looks_equal() and walk.follow_run() >= _RUN_RECORDS_MIN):
                walk.follow_plainly()
    except MalformedMessage as error:
        raise DamagedSection(index, str(error)) from None
    if walk.position != walk.size:
        raise DamagedSection(index, f"{walk.size - walk.position} bytes after the last record")
    return walk.found


class _Walk:
    """One section on the way; positions are counted from its start."""

    def __init__(self, data: Octets, section: Section) -> None:
        self._data = data[section.start : section.end]
        self._octets = self._data.tobytes()  # indexing these is twice as fast as a memoryview
        self._start = section.start
        self.size = len(self._octets)
        self.position = 0
        self.remaining = section.records_count
        self.found: list[Numbers] = []

    def looks_equal(self) -> bool:
        """Whether the next two records say the same length as this one."""
        prefix, stride = self._prefix_and_stride()
        second, third = self.position + stride, self.position + 2 * stride
        return self._octets.startswith(prefix, second) and self._octets.startswith(prefix, third)

    def follow_run(self) -> int:
        """As many records as say the same length as this one: how many those were."""
        prefix, stride = self._prefix_and_stride()
        count = min(self.remaining, (self.size - self.position) // stride)
        differs = np.zeros(count, dtype=np.bool_)
        for at, octet in enumerate(prefix, start=self.position):
            differs |= self._data[at::stride][:count] != octet
        run = int(differs.argmax()) if differs.any() else count
        first = self._start + self.position
        self.found.append(np.arange(first, first + run * stride, stride, dtype=np.int64))
        self.position += run * stride
        self.remaining -= run
        return run

    def follow_plainly(self) -> None:
        """One record after the other. A negative length is found out when the fields are read."""
        count = min(self.remaining, _PLAIN_RECORDS)
        starts = []
        octets = self._octets
        position = self.position
        try:
            for _ in range(count):
                starts.append(position)
                low = octets[position]
                if low < 0x80:
                    position += (low >> 1) + 1
                    continue
                high = octets[position + 1]
                if high < 0x80:
                    position += ((low + (high << 7)) >> 1) - 62  # `low` has a top bit too many
                    continue
                size, position = read_varint(octets, position)
                position += max(0, size)
        except IndexError:
            raise MalformedMessage("a record goes on beyond the end of its batch") from None
        self.found.append(np.array(starts, dtype=np.int64) + self._start)
        self.position = position
        self.remaining -= count

    def _prefix_and_stride(self) -> tuple[bytes, int]:
        """The length as it is written, and how far the next record is."""
        size, after = read_varint(self._octets, self.position)
        if size < 0:
            raise MalformedMessage(f"a record of {size} bytes")
        return self._octets[self.position : after], after - self.position + size


def _side_by_side(data: Octets, sections: list[Section]) -> Numbers:
    """One step in all batches at once, the longest first, so that those under way are a prefix."""
    counts = np.array([section.records_count for section in sections], dtype=np.int64)
    order = np.argsort(-counts, kind="stable")
    first_rows = (np.cumsum(counts) - counts)[order]
    ends = np.array([section.end for section in sections], dtype=np.int64)[order]
    positions = np.array([section.start for section in sections], dtype=np.int64)[order]
    starts = np.empty(int(counts.sum()), dtype=np.int64)
    ended = -counts[order]
    step = 0
    while (under_way := int(np.searchsorted(ended, -step))) >= _LANES_MIN:
        here = positions[:under_way]
        starts[first_rows[:under_way] + step] = here
        try:
            sizes, after = read_varints(data, here)
        except DamagedRow as error:
            raise DamagedSection(int(order[error.index]), str(error)) from None
        positions[:under_way] = after + np.maximum(sizes, 0)
        step += 1
    for lane in range(under_way):
        index, row = int(order[lane]), int(first_rows[lane])
        section = sections[index]
        rest = Section(int(positions[lane]), section.end, section.records_count - step)
        starts[row + step : row + section.records_count] = _rest(data, index, rest)
    if (late := positions[under_way:] != ends[under_way:]).any():
        raise DamagedSection(int(order[under_way + late.argmax()]), "records of another length")
    return starts


def _rest(data: Octets, index: int, section: Section) -> Numbers:
    if section.start > section.end:
        raise DamagedSection(index, "a record goes on beyond the end of its batch")
    return np.concatenate(_walk(data, index, section))
