"""Producer snapshots, Kafka's `.snapshot` files: version, CRC-32C, one entry for each producer."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from tidelog.core.model.exceptions import TidelogError
from tidelog.core.wire.crc import crc32c

VERSION = 1

_HEADER = Struct(">hIi")
_ENTRY = Struct(">qhiqiqiq")
_CRC_COVERS_FROM = 6
_NONE = -1


class CorruptSnapshot(TidelogError):
    """Not a snapshot that anybody may trust: go back to an older one, or to the log."""


class SnapshotEntry(NamedTuple):
    """One producer with its newest batch."""

    producer_id: int
    producer_epoch: int
    sequence: int | None
    """Of the newest batch's final record; None: it is not numbered."""
    offset: int | None
    """Of the same record; None: there is no batch."""
    offset_delta: int
    timestamp_ms: int
    coordinator_epoch: int | None
    transaction_first_offset: int | None


def encode_snapshot(entries: Sequence[SnapshotEntry]) -> bytes:
    packed = [
        _ENTRY.pack(*(_NONE if field is None else field for field in each)) for each in entries
    ]
    body = len(packed).to_bytes(4, "big") + b"".join(packed)
    return VERSION.to_bytes(2, "big") + crc32c(body).to_bytes(4, "big") + body


def decode_snapshot(data: bytes) -> list[SnapshotEntry]:
    """CorruptSnapshot if it was not written to its end, or changed since."""
    try:
        version, crc, count = _HEADER.unpack_from(data)
    except struct.error:
        raise CorruptSnapshot(f"{len(data)} bytes") from None
    if version != VERSION:
        raise CorruptSnapshot(f"version {version}")
    if len(data) != _HEADER.size + count * _ENTRY.size:
        raise CorruptSnapshot(f"{len(data)} bytes for {count} producers")
    if crc32c(memoryview(data)[_CRC_COVERS_FROM:]) != crc:
        raise CorruptSnapshot("wrong checksum")
    return [_entry(*fields) for fields in _ENTRY.iter_unpack(data[_HEADER.size :])]


def _entry(
    producer_id: int,
    producer_epoch: int,
    sequence: int,
    offset: int,
    offset_delta: int,
    timestamp_ms: int,
    coordinator_epoch: int,
    transaction_first_offset: int,
) -> SnapshotEntry:
    return SnapshotEntry(
        producer_id,
        producer_epoch,
        _optional(sequence),
        _optional(offset),
        offset_delta,
        timestamp_ms,
        _optional(coordinator_epoch),
        _optional(transaction_first_offset),
    )


def _optional(number: int) -> int | None:
    return None if number < 0 else number
