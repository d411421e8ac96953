"""Batches whose records contradict their header or their codec, each under a valid checksum."""

from __future__ import annotations

import struct
from collections.abc import Callable

from tests.golden.batches import OLD_TIME_MS, NewRecord, built, damaged
from tidelog.core.wire.compression import compress
from tidelog.core.wire.record_batch import HEADER_BYTES, LENGTH_PREFIX_BYTES, renew_crc

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
VALUES = (b"first", b"second", b"third")

_FIRST_SIZE_AT = 0
_FIRST_OFFSET_AT = 3
_FIRST_KEY_SIZE_AT = 4
_FIRST_VALUE_SIZE_AT = 5
_FIRST_HEADERS_AT = 11


def sound(codec: int = 0) -> bytes:
    """The batch that all the others were before somebody changed them."""
    return repacked(plain_records(), codec)


def plain_records() -> bytes:
    """Its records, uncompressed. Each begins with one byte per number."""
    return built([_record(value) for value in VALUES])[HEADER_BYTES:]


def repacked(records: bytes, codec: int, **fields: int) -> bytes:
    """A batch that says three records and has these bytes, compressed."""
    return with_payload(bytes(compress(codec, records)), codec, **fields)


def with_payload(payload: bytes, codec: int, **fields: int) -> bytes:
    """A batch that says three records and carries these bytes, whatever they are."""
    header = built([_record(value) for value in VALUES])[:HEADER_BYTES]
    batch = bytearray(damaged_header(header, attributes=codec, **fields) + payload)
    struct.pack_into(">i", batch, 8, len(batch) - LENGTH_PREFIX_BYTES)
    renew_crc(batch)
    return bytes(batch)


def damaged_header(header: bytes, **fields: int) -> bytes:
    return damaged(header, crc_follows=False, **fields)


def changed(at: int, value: int, codec: int) -> bytes:
    """The batch with one byte of its records changed before they were compressed."""
    records = bytearray(plain_records())
    records[at] = value
    return repacked(bytes(records), codec)


def _record(value: bytes) -> NewRecord:
    return NewRecord(value=value, timestamp_ms=OLD_TIME_MS)


# What is wrong, by codec. Zigzag: a byte of 2n says n, one of 2n - 1 says -n.
CONTENT_LIES: dict[str, Callable[[int], bytes]] = {
    "fewer records than counted": lambda codec: repacked(
        plain_records(), codec, records_count=4, last_offset_delta=3
    ),
    "far fewer records than counted": lambda codec: repacked(
        plain_records(), codec, records_count=200_000, last_offset_delta=199_999
    ),
    "more records than counted": lambda codec: repacked(
        plain_records(), codec, records_count=2, last_offset_delta=1
    ),
    "a byte behind the last record": lambda codec: repacked(plain_records() + b"\0", codec),
    "no records at all": lambda codec: repacked(b"", codec),
    "the last record is cut short": lambda codec: repacked(plain_records()[:-4], codec),
    "a record goes beyond the batch": lambda codec: changed(_FIRST_SIZE_AT, 126, codec),
    "a record ends before its fields": lambda codec: changed(_FIRST_SIZE_AT, 8, codec),
    "a record of negative size": lambda codec: changed(_FIRST_SIZE_AT, 3, codec),
    "a value goes beyond its record": lambda codec: changed(_FIRST_VALUE_SIZE_AT, 30, codec),
    "a key goes beyond the batch": lambda codec: changed(_FIRST_KEY_SIZE_AT, 126, codec),
    "an offset delta twice": lambda codec: changed(_FIRST_OFFSET_AT, 2, codec),
    "an offset delta beyond the last": lambda codec: changed(_FIRST_OFFSET_AT, 20, codec),
    "a negative offset delta": lambda codec: changed(_FIRST_OFFSET_AT, 1, codec),
    "a negative number of headers": lambda codec: changed(_FIRST_HEADERS_AT, 1, codec),
    "headers that are not there": lambda codec: changed(_FIRST_HEADERS_AT, 2, codec),
}
"""The bytes unpack, and are not the records that the header promises."""

CODEC_LIES: dict[str, Callable[[int], bytes]] = {
    "plain records that are said to be compressed": lambda codec: with_payload(
        plain_records(), codec
    ),
    "noise": lambda codec: with_payload(bytes(range(200, 250)), codec),
    "a stream that is cut short": lambda codec: with_payload(
        bytes(compress(codec, plain_records()))[:-6], codec
    ),
    "the wrong codec": lambda codec: with_payload(
        bytes(compress(codec % 4 + 1, plain_records())), codec
    ),
}
"""The bytes do not unpack."""
