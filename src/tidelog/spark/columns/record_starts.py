"""Where the records of batches begin: each says how long it is, so one leads to the next.

That chain is serial, and there are three ways along it. Equal records are one comparison of a
strided view (a run ends where a length differs, for example where offset deltas grow to a second
byte). Others are walked in many positions at once (`parallel_walk.py`). Whatever remains takes a
plain loop. Every way only follows lengths that were read, and each step goes forward, so none
hangs.
"""

from __future__ import annotations

import numpy as np

from tidelog.core.wire.malformed import MalformedMessage
from tidelog.core.wire.varint import read_varint
from tidelog.spark.columns.parallel_walk import (
    JUMPS,
    RECORD_BYTES_MIN,
    BatchSection,
    starts_in_parallel,
)
from tidelog.spark.columns.varints import DamagedSection, Numbers, Octets

_RUN_RECORDS_MIN = 24
"""A shorter run is not worth the comparison."""
_PLAIN_RECORDS_MIN, _PLAIN_RECORDS_MAX = 32, 2_048
"""Steps of the plain loop before equal records are searched again; doubled each time."""


def record_starts(data: Octets, sections: list[BatchSection]) -> Numbers:
    """The position of every record, section after section."""
    for index, section in enumerate(sections):
        room = section.end - section.start
        if not 0 <= section.records_count * RECORD_BYTES_MIN <= room:
            raise DamagedSection(index, f"{section.records_count} records in {room} bytes")
    equal = [_begins_equal(data, section) for section in sections]
    others = [section for section, is_equal in zip(sections, equal, strict=True) if not is_equal]
    in_parallel = iter(starts_in_parallel(data, others) or ())
    found = [np.empty(0, dtype=np.int64)]
    for index, section in enumerate(sections):
        starts = None if equal[index] else next(in_parallel, None)
        found += _walk(data, index, section) if starts is None else [starts]
    return np.concatenate(found)


def _begins_equal(data: Octets, section: BatchSection) -> bool:
    """Returns whether a run at the beginning is worth following; damage is detected later."""
    if section.records_count < _RUN_RECORDS_MIN:
        return False
    try:
        return _Walk(data, section).looks_equal()
    except MalformedMessage:
        return False


def _walk(data: Octets, index: int, section: BatchSection) -> list[Numbers]:
    walk = _Walk(data, section)
    plain_records = _PLAIN_RECORDS_MIN
    try:
        while walk.remaining:
            if walk.looks_equal() and walk.follow_run() >= _RUN_RECORDS_MIN:
                plain_records = _PLAIN_RECORDS_MIN
                continue
            walk.follow_plainly(min(walk.remaining, plain_records))
            plain_records = min(2 * plain_records, _PLAIN_RECORDS_MAX)
    except MalformedMessage as error:
        raise DamagedSection(index, str(error)) from None
    if walk.position != walk.size:
        raise DamagedSection(index, f"{walk.size - walk.position} bytes after the last record")
    return walk.found


class _Walk:
    """The walk through one section; positions are counted from its start."""

    def __init__(self, data: Octets, section: BatchSection) -> None:
        self._data = data[section.start : section.end]
        self._view = self._data.data
        self._octets: bytes | None = None
        self._start = section.start
        self.size = len(self._data)
        self.position = 0
        self.remaining = section.records_count
        self.found: list[Numbers] = []

    def looks_equal(self) -> bool:
        """Returns whether the next two records have the same length as this one."""
        prefix, stride = self._prefix_and_stride()
        second, third = self.position + stride, self.position + 2 * stride
        return all(self._view[at : at + len(prefix)] == prefix for at in (second, third))

    def follow_run(self) -> int:
        """Pass all following records of the same length; returns how many those were."""
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

    def follow_plainly(self, count: int) -> None:
        """Pass `count` records, one after the other."""
        starts: list[int] = []
        append = starts.append
        if self._octets is None:
            self._octets = self._data.tobytes()  # indexed twice as fast as a memoryview
        octets, table = self._octets, JUMPS
        position = self.position
        try:
            for _ in range(count):
                append(position)
                jump = table[octets[position]][octets[position + 1]]
                if jump:
                    position += jump
                else:
                    size, position = read_varint(octets, position)
                    position += max(0, size)
        except IndexError:
            raise MalformedMessage("a record goes on beyond the end of its batch") from None
        self.found.append(np.fromiter(starts, dtype=np.int64, count=count) + self._start)
        self.position = position
        self.remaining -= count

    def _prefix_and_stride(self) -> tuple[bytes, int]:
        """The length as it is written, and the distance to the next record."""
        size, after = read_varint(self._view, self.position)
        if size < 0:
            raise MalformedMessage(f"a record of {size} bytes")
        return bytes(self._view[self.position : after]), after - self.position + size
