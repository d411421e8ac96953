"""Record batches for cases, sound and damaged, and a readable description of those in answers."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from tidelog.core.wire.record_batch import (
    BatchHeader,
    batches,
    crc_is_valid,
    read_header,
    renew_crc,
)
from tidelog.core.wire.records import NewRecord, build, iterate

OLD_TIME_MS = 1_600_000_000_000
"""The timestamp of records in cases that are not about time."""

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)

_FIELD_FORMATS = {
    "base_offset": (0, ">q"),
    "batch_length": (8, ">i"),
    "leader_epoch": (12, ">i"),
    "magic": (16, ">b"),
    "crc": (17, ">I"),
    "attributes": (21, ">h"),
    "last_offset_delta": (23, ">i"),
    "base_timestamp_ms": (27, ">q"),
    "max_timestamp_ms": (35, ">q"),
    "producer_id": (43, ">q"),
    "producer_epoch": (51, ">h"),
    "base_sequence": (53, ">i"),
    "records_count": (57, ">i"),
}


def batch(*values: str | None, timestamp_ms: int = OLD_TIME_MS, **options: Any) -> bytes:
    """One sound batch with a record per value; options as `records.build` has them."""
    records = [
        NewRecord(value=None if value is None else value.encode(), timestamp_ms=timestamp_ms + at)
        for at, value in enumerate(values or ("a",))
    ]
    return bytes(build(records, **options))


def keyed(*pairs: tuple[str | None, str | None], **options: Any) -> bytes:
    """One sound batch of records with keys."""
    records = [
        NewRecord(
            key=None if key is None else key.encode(),
            value=None if value is None else value.encode(),
            timestamp_ms=OLD_TIME_MS + at,
        )
        for at, (key, value) in enumerate(pairs)
    ]
    return bytes(build(records, **options))


def built(records: Sequence[NewRecord], **options: Any) -> bytes:
    """One sound batch of any records."""
    return bytes(build(records, **options))


def numbered(
    producer_id: int, producer_epoch: int, base_sequence: int, count: int = 1, **options: Any
) -> bytes:
    """One batch of an idempotent producer."""
    return batch(
        *(f"{base_sequence}+{at}" for at in range(count)),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        **options,
    )


def damaged(data: bytes, *, crc_follows: bool = True, **fields: int) -> bytes:
    """The batch with header fields overwritten; the CRC is made right again unless told not to."""
    changed = bytearray(data)
    for name, value in fields.items():
        position, layout = _FIELD_FORMATS[name]
        struct.pack_into(layout, changed, position, value)
    if crc_follows and not {"batch_length", "magic", "crc"} & set(fields):
        renew_crc(changed)
    return bytes(changed)


def old_message(magic: int, value: bytes = b"old") -> bytes:
    """A message of the formats before batches (magic 0 or 1)."""
    import zlib

    body = struct.pack(">bb", magic, 0)
    body += struct.pack(">q", OLD_TIME_MS) if magic == 1 else b""
    body += struct.pack(">i", -1) + struct.pack(">i", len(value)) + value
    message = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", 0, len(message)) + message


def describe(data: bytes) -> list[dict[str, Any]]:
    """What an answer's records hold: each whole batch, and how many bytes of a cut one follow."""
    found: list[dict[str, Any]] = []
    end = 0
    for position, header in batches(data):
        found.append(_batch(data, position, header))
        end = position + header.size_bytes
    if end < len(data):
        found.append({"cut_bytes": len(data) - end})
    return found


def _batch(data: bytes, position: int, header: BatchHeader) -> dict[str, Any]:
    fields = header._asdict()
    del fields["crc"], fields["batch_length"]
    fields["crc_is_valid"] = crc_is_valid(data, position, header)
    fields["size_bytes"] = header.size_bytes if header.compression == NONE else "<compressed>"
    if header.is_control:
        fields["contents"] = [
            {"offset": record.offset, "key": _hex(record.key), "value": _hex(record.value)}
            for record in iterate(data, position)
        ]
        return fields
    fields["contents"] = [
        {
            "offset": record.offset,
            "timestamp_ms": record.timestamp_ms,
            "key": record.key,
            "value": record.value
            if len(record.value or b"") < 100
            else f"<{len(record.value or b'')} bytes>",
            "headers": [[name, content] for name, content in record.headers],
        }
        for record in iterate(data, position)
    ]
    return fields


def _hex(data: bytes | memoryview | None) -> str | None:
    """What a control record says: version and type in its key, coordinator epoch in its value."""
    return None if data is None else bytes(data).hex()


__all__ = [
    "GZIP",
    "LZ4",
    "NONE",
    "OLD_TIME_MS",
    "SNAPPY",
    "ZSTD",
    "NewRecord",
    "batch",
    "built",
    "damaged",
    "describe",
    "keyed",
    "numbered",
    "old_message",
    "read_header",
]
