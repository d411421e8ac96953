"""The 61-byte header of a record batch (format 2), read and rewritten in place.

A batch stays opaque on its way through the broker: the header is unpacked once, the CRC-32C covers
everything from the attributes on, and what the leader decides (base offset and leader epoch) lies
outside of it. Field values here are the wire's own, -1 for "none" included.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from tidelog.core.model.exceptions import TidelogError
from tidelog.core.wire.crc import crc32c

HEADER_BYTES = 61
MAGIC = 2
LENGTH_PREFIX_BYTES = 12
"""Base offset and length: the bytes that `batch_length` does not count."""
MAGIC_AT = 16
CRC_COVERS_FROM = 21
BATCH_LENGTH_MIN = HEADER_BYTES - LENGTH_PREFIX_BYTES

COMPRESSION_MASK = 0x07
LOG_APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40
"""The base timestamp is the time from which on compaction may drop the batch's tombstones."""

HEADER = struct.Struct(">qiibIhiqqqhii")
assert HEADER.size == HEADER_BYTES

_unpack_header = HEADER.unpack_from
_OFFSET = struct.Struct(">q")
_pack_offset = _OFFSET.pack_into
_INT32 = struct.Struct(">i")
_pack_int32 = _INT32.pack_into
_UINT32 = struct.Struct(">I")
_INT16 = struct.Struct(">h")

_BATCH_LENGTH_AT = 8
_LEADER_EPOCH_AT = 12
_CRC_AT = 17
_ATTRIBUTES_AT = 21
_MAX_TIMESTAMP_AT = 35


class CorruptBatch(TidelogError):
    """These bytes are not a record batch that anybody may trust."""


class UnsupportedMagic(CorruptBatch):
    """A message set of the formats before 2: well-formed perhaps, but not accepted any more."""

    def __init__(self, magic: int) -> None:
        super().__init__(f"magic {magic} instead of {MAGIC}")
        self.magic = magic


class BatchHeader(NamedTuple):
    """The raw header fields, in wire order."""

    base_offset: int
    batch_length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int

    @property
    def size_bytes(self) -> int:
        """The whole batch, from its base offset to its last byte."""
        return self.batch_length + LENGTH_PREFIX_BYTES

    @property
    def end_offset(self) -> int:
        """One past the last offset that this batch takes up."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression(self) -> int:
        """The codec's number: 0 to 4 are known, 5 to 7 unused."""
        return self.attributes & COMPRESSION_MASK

    @property
    def is_log_append_time(self) -> bool:
        return self.attributes & LOG_APPEND_TIME_BIT != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_BIT != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """When compaction may drop the tombstones of this batch; None: not decided yet."""
        return self.base_timestamp_ms if self.attributes & DELETE_HORIZON_BIT else None


def read_header(view: memoryview | bytes | bytearray, position: int = 0) -> BatchHeader:
    """The header at `position`. Nothing but its presence is checked."""
    if position < 0:
        raise CorruptBatch(f"a batch header at negative position {position}")
    try:
        return BatchHeader._make(_unpack_header(view, position))
    except struct.error:
        left = len(view) - position
        raise CorruptBatch(f"{left} bytes left for a header of {HEADER_BYTES}") from None


def crc_is_valid(view: memoryview | bytes | bytearray, position: int, header: BatchHeader) -> bool:
    """Whether the batch lies whole inside `view` and carries the checksum of its own bytes."""
    end = position + header.batch_length + LENGTH_PREFIX_BYTES
    if header.batch_length < BATCH_LENGTH_MIN or end > len(view):
        return False
    return crc32c(memoryview(view)[position + CRC_COVERS_FROM : end]) == header.crc


def rebase(
    view: memoryview | bytearray, position: int, *, base_offset: int, leader_epoch: int
) -> None:
    """Give the batch its place in the log. Neither field is under the CRC."""
    _pack_offset(view, position, base_offset)
    _pack_int32(view, position + _LEADER_EPOCH_AT, leader_epoch)


def stamp_log_append_time(
    view: memoryview | bytearray, position: int, *, timestamp_ms: int
) -> None:
    """Make `timestamp_ms` the time of every record in the batch, and the CRC right again."""
    header = read_header(view, position)
    attributes = header.attributes | LOG_APPEND_TIME_BIT
    _INT16.pack_into(view, position + _ATTRIBUTES_AT, attributes)
    _pack_offset(view, position + _MAX_TIMESTAMP_AT, timestamp_ms)
    renew_crc(view, position)


def renew_crc(view: memoryview | bytearray, position: int = 0) -> None:
    """Write the checksum that the bytes of this batch have now."""
    end = position + read_whole_header(view, position).size_bytes
    checksum = crc32c(memoryview(view)[position + CRC_COVERS_FROM : end])
    _UINT32.pack_into(view, position + _CRC_AT, checksum)


def read_whole_header(view: memoryview | bytes | bytearray, position: int = 0) -> BatchHeader:
    """The header of a batch of format 2 whose bytes are all there; otherwise CorruptBatch."""
    header = read_header(view, position)
    if header.magic != MAGIC:
        raise UnsupportedMagic(header.magic)
    if header.batch_length < BATCH_LENGTH_MIN:
        raise CorruptBatch(f"batch length {header.batch_length} is below {BATCH_LENGTH_MIN}")
    if position + header.size_bytes > len(view):
        left = len(view) - position
        raise CorruptBatch(f"{left} bytes left of a batch of {header.size_bytes}")
    return header


def batches(
    view: memoryview | bytes | bytearray,
) -> Iterator[tuple[int, BatchHeader]]:
    """Each whole batch with its position; a partial one at the end is left out silently.

    A file or an answer may stop in the middle of a batch, which is no damage. A length that
    no batch can have, or another magic, is: it raises CorruptBatch.
    """
    position = 0
    end = len(view)
    while end - position > MAGIC_AT:
        magic = memoryview(view)[position + MAGIC_AT]
        (batch_length,) = _INT32.unpack_from(view, position + _BATCH_LENGTH_AT)
        if 0 <= magic < MAGIC and batch_length > 0:
            raise UnsupportedMagic(magic)
        if magic != MAGIC:
            raise CorruptBatch(f"magic {magic} at position {position}")
        if batch_length < BATCH_LENGTH_MIN:
            raise CorruptBatch(f"batch length {batch_length} at position {position}")
        next_position = position + batch_length + LENGTH_PREFIX_BYTES
        if next_position > end:
            return
        yield position, BatchHeader._make(_unpack_header(view, position))
        position = next_position
