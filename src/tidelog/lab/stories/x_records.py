"""Batches that lie about their records: a leader that took one would stop all its readers for ever.

The checksum of such a batch is right, so only whoever opens it can tell.
"""

from __future__ import annotations

import struct

from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.compression import Compression, compress
from tidelog.core.wire.record_batch import HEADER_BYTES, LENGTH_PREFIX_BYTES, renew_crc
from tidelog.core.wire.records import NewRecord, build
from tidelog.lab.audit import CLEAN
from tidelog.lab.lab import Lab
from tidelog.lab.stories.baseline import orders
from tidelog.lab.stories.cast import ok
from tidelog.lab.story import story

INVALID = ErrorCode.INVALID_RECORD
UNREADABLE = ErrorCode.UNKNOWN_SERVER_ERROR
"""What Kafka answers where a codec fails."""
COUNT_AT = 57
LAST_OFFSET_DELTA_AT = 23
FIRST_RECORD_SIZE = 2
"""It says that the record ends after its first byte."""


@story("X-48")
def a_batch_lies_about_its_records(lab: Lab) -> None:
    """Count, length and codec are lies, in every codec: refused, and readers notice nothing."""
    orders(lab)
    reader = lab.consumer("reader")
    writer = lab.writer("writer")
    lab.step("X-48", "each lie is refused in each codec, with Kafka's error, and nothing is stored")
    lab.same("the write before", writer.write("before"), ok(10))
    records = bytes(build([NewRecord(b"one"), NewRecord(b"two")]))[HEADER_BYTES:]
    for codec in Compression:
        name = codec.name.lower()
        cut_record = bytes([FIRST_RECORD_SIZE]) + records[1:]
        lab.same(f"{name}, three counted", _answer(lab, records, codec, count=3), INVALID)
        lab.same(f"{name}, one counted", _answer(lab, records, codec, count=1), INVALID)
        lab.same(f"{name}, a wrong length", _answer(lab, cut_record, codec, count=2), INVALID)
        if codec != Compression.NONE:
            plain = lab.writer("liar").write_bytes(_batch(records, codec, count=2))
            lab.same(f"{name} that is none", plain.error, UNREADABLE)
    lab.same("the end of the log", lab.end(1), 11)

    lab.step("X-48", "a reader gets what lies before and behind")
    lab.same("the write behind", writer.write("behind"), ok(11))
    reader.read_to(12)
    lab.same("its last records", reader.payloads[-2:], ["before", "behind"])
    lab.same("the audit", lab.audit(), CLEAN)


def _answer(lab: Lab, records: bytes, codec: Compression, *, count: int) -> ErrorCode | None:
    data = _batch(bytes(compress(codec, records)), codec, count=count)
    return lab.writer("liar").write_bytes(data).error


def _batch(payload: bytes, codec: Compression, *, count: int) -> bytes:
    """A batch that claims so many records of this codec, under a checksum that is right."""
    batch = bytearray(build([NewRecord(b"", timestamp_ms=-1)], compression=codec))[:HEADER_BYTES]
    batch += payload
    struct.pack_into(">i", batch, 8, len(batch) - LENGTH_PREFIX_BYTES)
    struct.pack_into(">i", batch, LAST_OFFSET_DELTA_AT, count - 1)
    struct.pack_into(">i", batch, COUNT_AT, count)
    renew_crc(batch)
    return bytes(batch)
