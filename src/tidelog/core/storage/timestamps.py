"""Finding records by time: the first at or after a timestamp, and the one with the largest.

Time indexes narrow the search to a segment and a position; the records of the batch that is left
are read one by one.

Damage that lies between there and the record may hold an earlier one: CorruptBatch.
"""

from __future__ import annotations

from typing import NamedTuple

from tidelog.core.storage.segment import Segment
from tidelog.core.wire.record_batch import BatchHeader, CorruptBatch, crc_is_valid
from tidelog.core.wire.records import Record, iterate


class TimestampedOffset(NamedTuple):
    """A record that a search by time found."""

    timestamp_ms: int
    offset: int
    leader_epoch: int | None


def find(
    segments: list[Segment], timestamp_ms: int, *, start_offset: int
) -> TimestampedOffset | None:
    """The first record from `start_offset` on whose timestamp is not earlier."""
    for segment in segments:
        largest_ms = segment.read_largest_timestamp()
        if largest_ms is None or largest_ms < timestamp_ms:
            continue
        found = _find_in(segment, timestamp_ms, start_offset)
        if found is not None:
            return found
    return None


def largest(segments: list[Segment], *, start_offset: int) -> TimestampedOffset | None:
    """The first record that carries the largest timestamp of all."""
    best: Segment | None = None
    best_ms = -1
    for segment in segments:
        largest_ms = segment.read_largest_timestamp()
        if largest_ms is not None and largest_ms > best_ms:
            best, best_ms = segment, largest_ms
    if best is None:
        return None
    position = best.position_past_damage(best.largest_timestamp_offset)
    for at, header in best.sound_batches(position, refuse_damage=True):
        if header.max_timestamp_ms == best_ms and header.end_offset > start_offset:
            return _largest_in_batch(best, at, header)
    return None


def _find_in(segment: Segment, timestamp_ms: int, start_offset: int) -> TimestampedOffset | None:
    entry = segment.times.floor(timestamp_ms)
    offset = segment.base_offset if entry is None else segment.base_offset + entry[1]
    position = segment.position_past_damage(max(offset, start_offset))
    if entry is not None and entry[0] == timestamp_ms:
        # The entry's own batch has the timestamp, but it may not be the first one that has.
        position = _position_before(segment, timestamp_ms, start_offset)
    for at, header in segment.sound_batches(position, refuse_damage=True):
        if header.max_timestamp_ms >= timestamp_ms and header.end_offset > start_offset:
            for record in _records(segment, at, header):
                if record.timestamp_ms >= timestamp_ms and record.offset >= start_offset:
                    return TimestampedOffset(
                        record.timestamp_ms, record.offset, _leader_epoch(header)
                    )
    return None


def _position_before(segment: Segment, timestamp_ms: int, start_offset: int) -> int:
    entry = segment.times.floor(timestamp_ms - 1)
    offset = segment.base_offset if entry is None else segment.base_offset + entry[1]
    return segment.position_past_damage(max(offset, start_offset))


def _largest_in_batch(segment: Segment, position: int, header: BatchHeader) -> TimestampedOffset:
    for record in _records(segment, position, header):
        if record.timestamp_ms == header.max_timestamp_ms:
            return TimestampedOffset(record.timestamp_ms, record.offset, _leader_epoch(header))
    return TimestampedOffset(header.max_timestamp_ms, header.base_offset, _leader_epoch(header))


def _records(segment: Segment, position: int, header: BatchHeader) -> list[Record]:
    data = segment.file.read(position, header.size_bytes)
    if not crc_is_valid(data, 0, header):
        raise CorruptBatch(f"wrong checksum at offset {header.base_offset}")
    return list(iterate(data))


def _leader_epoch(header: BatchHeader) -> int | None:
    return None if header.leader_epoch < 0 else header.leader_epoch
