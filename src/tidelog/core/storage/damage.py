"""The way past damaged headers: which batches of a segment are sound although a header lies.

A header says how long its batch is and which offsets it has, so one flipped bit there can hide the
sound batches behind it from a walk by headers. A header is believed here as far as its
neighbours agree with it; where they do not, its checksum decides, and where the batch is damaged,
the next sound one is searched for byte by byte. That is slow: walks begin it only once they have
met something that cannot be (`Segment.position_of`). What a flipped bit does, field by field:

- magic, batch length: nothing behind it can be found but by searching;
- last offset delta, count of records: they contradict each other, and the next base offset;
- base offset: it is not under the checksum; the batches on both sides contradict it;
- leader epoch: it is not under the checksum, and no walk depends on it;
- all others, and the records: the walk goes on, and the reader's checksum finds it.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from tidelog.core.model.limits import INT32_MAX, INT64_MAX, REQUEST_BYTES_MAX
from tidelog.core.storage.batch_reader import WINDOW_BYTES, refuse_implausible
from tidelog.core.storage.disk import File
from tidelog.core.wire.record_batch import (
    HEADER_BYTES,
    MAGIC,
    MAGIC_AT,
    BatchHeader,
    CorruptBatch,
    crc_is_valid,
    read_header,
)

_SEARCH_BYTES = 2**20
_FOLLOWED_MAX = 1_000
"""So many batches in a row are no content of a record."""
_MAGIC_BYTE = bytes((MAGIC,))
_BASE_OFFSET = Struct(">q")


class BatchOrDamage(NamedTuple):
    """One sound batch, or the damaged bytes between two sound ones."""

    position: int
    start_offset: int
    end_offset: int
    header: BatchHeader | None
    """None: damaged. The offsets are then what the batches around it leave."""


def stretches(
    file: File,
    position: int,
    *,
    start_offset: int | None,
    base_offset: int,
    end_offset: int | None = None,
) -> Iterator[BatchOrDamage]:
    """The batches from `position` on, where one begins, with the damage between them.

    `start_offset`: where the batch before it ends, if that is known. `base_offset` is the segment's
    own, `end_offset` where its batches end, if that is known.
    """
    return _Walk(file, base_offset, end_offset).run(position, start_offset)


def sound_header(file: File, position: int) -> BatchHeader | None:
    """The header of the batch at `position`, if the bytes under its checksum are right."""
    walk = _Walk(file, 0, None)
    header = walk.header_at(position)
    return header if header is not None and walk.is_whole(position, header) else None


class _Walk:
    """Reads headers through a window, as the walk and its looks ahead need them."""

    def __init__(self, file: File, base_offset: int, end_offset: int | None) -> None:
        self._file = file
        self._base_offset = base_offset
        self._end_offset = end_offset
        self._window, self._window_position = b"", 0

    def run(self, position: int, start_offset: int | None) -> Iterator[BatchOrDamage]:
        expected = start_offset
        while position < self._file.size_bytes:
            header = self.header_at(position)
            if expected is None:
                expected = self._base_offset if header is None else header.base_offset
            if header is not None and self._is_sound(position, header, expected):
                yield BatchOrDamage(position, header.base_offset, header.end_offset, header)
                position += header.size_bytes
                expected = header.end_offset
                continue
            found = self._following(position, header, expected)
            if found is None:
                end_offset = INT64_MAX if self._end_offset is None else self._end_offset
                yield BatchOrDamage(position, expected, end_offset, None)
                return
            yield BatchOrDamage(position, expected, found[1], None)
            position, expected = found

    def header_at(self, position: int) -> BatchHeader | None:
        """None: no batch can begin so."""
        at = position - self._window_position
        if at < 0 or at + HEADER_BYTES > len(self._window):
            self._window, at = self._file.read(position, WINDOW_BYTES), 0
            self._window_position = position
        try:
            header = read_header(self._window, at)
            refuse_implausible(header, bytes_left=self._file.size_bytes - position)
        except CorruptBatch:
            return None
        return header

    def is_whole(self, position: int, header: BatchHeader) -> bool:
        """Whether the bytes under the checksum are right."""
        return crc_is_valid(self._file.read(position, header.size_bytes), 0, header)

    def _is_sound(self, position: int, header: BatchHeader, expected: int) -> bool:
        """Whether this header can be believed: by what stands behind it, or by the checksum."""
        count = header.last_offset_delta + 1
        if header.base_offset < expected or header.records_count > count:
            return False
        next_offset = self._offset_behind(position, header)
        if next_offset is None:
            at_end = position + header.size_bytes == self._file.size_bytes
            if at_end and header.records_count == count and header.base_offset == expected:
                return True
        elif next_offset == header.end_offset:
            return True
        if not self.is_whole(position, header):
            return False
        if header.base_offset == expected:
            return True
        # Only the base offset may be wrong now, unless compaction left a gap before this batch.
        return next_offset is None or next_offset > header.end_offset

    def _offset_behind(self, position: int, header: BatchHeader) -> int | None:
        """Where the offsets go on behind this batch, if its length is right; None: unknown."""
        next_position = position + header.size_bytes
        if next_position == self._file.size_bytes:
            return self._end_offset
        following = self.header_at(next_position)
        return None if following is None else following.base_offset

    def _following(
        self, position: int, header: BatchHeader | None, expected: int
    ) -> tuple[int, int] | None:
        """Position and base offset of the next sound batch behind a damaged one."""
        count = self._records_count_at(position)
        if header is not None:
            at = position + header.size_bytes
            found = self._sound_header_at(at, expected)
            if found is not None and found.base_offset in (header.end_offset, expected + count):
                return at, found.base_offset  # length and offsets agree: nothing lies in between
        other_choice = None
        for at in self._magic_bytes_behind(position):
            found = self._sound_header_at(at, expected)
            if found is None:
                continue
            is_next = found.base_offset == expected + count
            batches_behind, is_all = self._follow(at, found)
            if is_all:
                return (at, found.base_offset) if is_next or other_choice is None else other_choice
            if is_next and batches_behind and other_choice is None:
                other_choice = at, found.base_offset  # leads to the next damage, or is a record's
        return other_choice

    def _records_count_at(self, position: int) -> int:
        """The header's value there, believable or not; 0 if there is none."""
        data = self._file.read(position, HEADER_BYTES)
        return read_header(data).records_count if len(data) == HEADER_BYTES else 0

    def _sound_header_at(self, position: int, expected: int) -> BatchHeader | None:
        """Of a batch that stands here, with offsets behind `expected`."""
        if position + HEADER_BYTES > self._file.size_bytes:
            return None
        header = self.header_at(position)
        if header is None or not self._belongs(header, expected):
            return None
        return header if self.is_whole(position, header) else None

    def _follow(self, position: int, header: BatchHeader) -> tuple[int, bool]:
        """How many batches follow this one, and whether they lead to the end of the file.

        A record may hold the bytes of batches. Those lead nowhere: the rest of the record follows.
        """
        for number in range(_FOLLOWED_MAX):
            position += header.size_bytes
            if position == self._file.size_bytes:
                return number, True
            following = self.header_at(position)
            if following is None or following.base_offset < header.end_offset:
                return number, False
            header = following
        return _FOLLOWED_MAX, True

    def _belongs(self, header: BatchHeader, expected: int) -> bool:
        if self._end_offset is not None and header.end_offset > self._end_offset:
            return False
        return expected < header.base_offset <= self._base_offset + INT32_MAX

    def _magic_bytes_behind(self, position: int) -> Iterator[int]:
        """Where a batch might begin: 16 bytes before each byte that could be its magic."""
        end = min(self._file.size_bytes, position + REQUEST_BYTES_MAX)
        position += 1
        while position + HEADER_BYTES <= end:
            data = self._file.read(position, _SEARCH_BYTES + HEADER_BYTES)
            found = data.find(_MAGIC_BYTE, MAGIC_AT)
            while 0 <= found < _SEARCH_BYTES + MAGIC_AT:
                at = found - MAGIC_AT
                (base_offset,) = _BASE_OFFSET.unpack_from(data, at)
                if self._base_offset <= base_offset <= self._base_offset + INT32_MAX:
                    yield position + at
                found = data.find(_MAGIC_BYTE, found + 1)
            position += _SEARCH_BYTES
