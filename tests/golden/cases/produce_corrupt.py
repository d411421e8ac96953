"""Produce with batches that are damaged, forged, or of formats that no broker accepts any more."""

from __future__ import annotations

import struct

from tests.golden.batches import (
    GZIP,
    OLD_TIME_MS,
    ZSTD,
    NewRecord,
    batch,
    built,
    damaged,
    old_message,
)
from tests.golden.cases.asking import list_offsets, produce
from tests.golden.cases.registry import case
from tests.golden.talk import Talk

LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
HEADER_BYTES = 61


def refused(talk: Talk, version: int, records: bytes, **configs: str) -> None:
    """Produce it to a fresh topic, and see what the log holds afterwards."""
    topic = talk.new_topic(configs={key.replace("_", "."): value for key, value in configs.items()})
    produce(talk, version, topic, records)
    list_offsets(talk, 7, topic.name, -1)


@case("Produce", 3, 9, 13)
def wrong_crc(talk: Talk, version: int) -> None:
    """A batch whose checksum does not fit its bytes."""
    refused(talk, version, damaged(batch("a"), crc=1))


@case("Produce", 3, 13)
def flipped_bit_in_a_record(talk: Talk, version: int) -> None:
    """One flipped bit in the records is found by the checksum."""
    data = bytearray(batch("abc"))
    data[-2] ^= 0x10
    refused(talk, version, bytes(data))


@case("Produce", 3, 9, 13)
def magic_zero(talk: Talk, version: int) -> None:
    """A message of format 0."""
    refused(talk, version, old_message(0))


@case("Produce", 3, 13)
def magic_one(talk: Talk, version: int) -> None:
    """A message of format 1."""
    refused(talk, version, old_message(1))


@case("Produce", 3, 13)
def magic_three(talk: Talk, version: int) -> None:
    """A batch of a format of the future."""
    refused(talk, version, damaged(batch("a"), magic=3))


@case("Produce", 13)
def magic_negative(talk: Talk, version: int) -> None:
    """A batch of a negative format."""
    refused(talk, version, damaged(batch("a"), magic=-1))


@case("Produce", 13)
def magic_zero_in_a_batch(talk: Talk, version: int) -> None:
    """A batch of format 2 whose magic byte says 0."""
    refused(talk, version, damaged(batch("a"), magic=0))


@case("Produce", 3, 13)
def too_few_records_counted(talk: Talk, version: int) -> None:
    """The count says less than the batch holds."""
    refused(talk, version, damaged(batch("a", "b"), records_count=1))


@case("Produce", 3, 13)
def too_many_records_counted(talk: Talk, version: int) -> None:
    """The count says more than the batch holds."""
    refused(talk, version, damaged(batch("a", "b"), records_count=3))


@case("Produce", 3, 13)
def count_and_offsets_agree_but_not_the_records(talk: Talk, version: int) -> None:
    """Count and last offset delta say three records, the batch holds two."""
    refused(talk, version, damaged(batch("a", "b"), records_count=3, last_offset_delta=2))


@case("Produce", 13)
def count_and_offsets_agree_on_too_few(talk: Talk, version: int) -> None:
    """Count and last offset delta say one record, the batch holds two."""
    refused(talk, version, damaged(batch("a", "b"), records_count=1, last_offset_delta=0))


@case("Produce", 13)
def count_of_zero(talk: Talk, version: int) -> None:
    """A batch that says it holds no records."""
    refused(talk, version, damaged(batch("a"), records_count=0))


@case("Produce", 13)
def really_empty(talk: Talk, version: int) -> None:
    """A batch of a header alone, as compaction leaves them."""
    header_only = bytearray(batch("a")[:HEADER_BYTES])
    struct.pack_into(">i", header_only, 8, HEADER_BYTES - 12)
    refused(talk, version, damaged(bytes(header_only), records_count=0))


@case("Produce", 13)
def really_empty_with_negative_delta(talk: Talk, version: int) -> None:
    """A batch of a header alone whose last offset delta is -1."""
    header_only = bytearray(batch("a")[:HEADER_BYTES])
    struct.pack_into(">i", header_only, 8, HEADER_BYTES - 12)
    refused(talk, version, damaged(bytes(header_only), records_count=0, last_offset_delta=-1))


@case("Produce", 13)
def negative_count(talk: Talk, version: int) -> None:
    """A negative record count."""
    refused(talk, version, damaged(batch("a"), records_count=-1))


@case("Produce", 13)
def last_offset_delta_too_large(talk: Talk, version: int) -> None:
    """A last offset delta above the count."""
    refused(talk, version, damaged(batch("a", "b"), last_offset_delta=5))


@case("Produce", 13)
def last_offset_delta_negative(talk: Talk, version: int) -> None:
    """A negative last offset delta."""
    refused(talk, version, damaged(batch("a"), last_offset_delta=-1))


@case("Produce", 13)
def offset_deltas_with_a_gap(talk: Talk, version: int) -> None:
    """Records whose offset deltas leave a gap that the count does not show."""
    records = [
        NewRecord(value=b"a", timestamp_ms=OLD_TIME_MS, offset_delta=0),
        NewRecord(value=b"b", timestamp_ms=OLD_TIME_MS, offset_delta=4),
    ]
    refused(talk, version, damaged(built(records), last_offset_delta=1))


@case("Produce", 13)
def offset_deltas_with_a_gap_in_a_compressed_batch(talk: Talk, version: int) -> None:
    """The same, compressed."""
    records = [
        NewRecord(value=b"a", timestamp_ms=OLD_TIME_MS, offset_delta=0),
        NewRecord(value=b"b", timestamp_ms=OLD_TIME_MS, offset_delta=4),
    ]
    refused(talk, version, damaged(built(records, compression=GZIP), last_offset_delta=1))


@case("Produce", 3, 13)
def truncated(talk: Talk, version: int) -> None:
    """A batch that ends too early."""
    refused(talk, version, batch("a", "b")[:-3])


@case("Produce", 13)
def shorter_than_a_header(talk: Talk, version: int) -> None:
    """Fewer bytes than any header has."""
    refused(talk, version, batch("a")[:30])


@case("Produce", 13)
def length_too_large(talk: Talk, version: int) -> None:
    """A batch length beyond the bytes that came."""
    refused(talk, version, damaged(batch("a"), batch_length=4000))


@case("Produce", 13)
def length_too_small(talk: Talk, version: int) -> None:
    """A batch length below that of an empty batch."""
    refused(talk, version, damaged(batch("a"), batch_length=10))


@case("Produce", 13)
def length_negative(talk: Talk, version: int) -> None:
    """A negative batch length."""
    refused(talk, version, damaged(batch("a"), batch_length=-1))


@case("Produce", 13)
def length_one_too_small(talk: Talk, version: int) -> None:
    """A batch length that leaves one byte over."""
    data = batch("a")
    refused(talk, version, damaged(data, batch_length=len(data) - 13))


@case("Produce", 3, 13)
def two_batches(talk: Talk, version: int) -> None:
    """Two batches for one partition in one request."""
    refused(talk, version, batch("a") + batch("b"))


@case("Produce", 13)
def a_batch_and_half_of_another(talk: Talk, version: int) -> None:
    """A sound batch with half of another behind it."""
    refused(talk, version, batch("a") + batch("b")[:40])


@case("Produce", 13)
def a_batch_and_a_few_bytes(talk: Talk, version: int) -> None:
    """A sound batch with five zero bytes behind it."""
    refused(talk, version, batch("a") + bytes(5))


@case("Produce", 3, 13)
def control_batch(talk: Talk, version: int) -> None:
    """Clients must not write control batches."""
    refused(talk, version, batch("a", control=True))


@case("Produce", 13)
def control_batch_with_a_producer(talk: Talk, version: int) -> None:
    """Nor may they as transactional producers."""
    refused(
        talk,
        version,
        batch("a", control=True, producer_id=4711, producer_epoch=0, base_sequence=0),
    )


@case("Produce", 3, 13)
def transactional_batch_without_a_producer(talk: Talk, version: int) -> None:
    """A transactional batch that names no producer."""
    refused(talk, version, batch("a", transactional=True))


@case("Produce", 13)
def unknown_codec(talk: Talk, version: int) -> None:
    """A batch whose attributes name compression codec 6."""
    refused(talk, version, damaged(batch("a"), attributes=6))


@case("Produce", 13)
def not_really_gzip(talk: Talk, version: int) -> None:
    """A batch that says gzip and is not."""
    refused(talk, version, damaged(batch("a"), attributes=GZIP))


@case("Produce", 13)
def not_really_zstd(talk: Talk, version: int) -> None:
    """A batch that says zstd and is not."""
    refused(talk, version, damaged(batch("a"), attributes=ZSTD))


@case("Produce", 3, 13)
def log_append_time_from_a_client(talk: Talk, version: int) -> None:
    """Clients must not claim that the broker set the time."""
    refused(talk, version, damaged(batch("a"), attributes=LOG_APPEND_TIME))


@case("Produce", 13)
def unused_attribute_bits(talk: Talk, version: int) -> None:
    """Attribute bits that mean nothing yet are let through."""
    refused(talk, version, damaged(batch("a"), attributes=0x100))


@case("Produce", 13)
def value_length_too_large(talk: Talk, version: int) -> None:
    """A record whose value goes beyond the record."""
    data = bytearray(batch("abcdef"))
    data[-8] = 100  # the value's length: 50 instead of 6
    refused(talk, version, damaged(bytes(data)))


@case("Produce", 13)
def record_length_too_large(talk: Talk, version: int) -> None:
    """A record that goes beyond its batch."""
    data = bytearray(batch("abcdef"))
    data[HEADER_BYTES] = 120
    refused(talk, version, damaged(bytes(data)))


@case("Produce", 13)
def record_length_too_small(talk: Talk, version: int) -> None:
    """A record that ends before its fields do."""
    data = bytearray(batch("abcdef"))
    data[HEADER_BYTES] = 8
    refused(talk, version, damaged(bytes(data)))


@case("Produce", 13)
def base_offset_negative(talk: Talk, version: int) -> None:
    """A negative base offset is overwritten like any other."""
    refused(talk, version, damaged(batch("a"), base_offset=-5))


@case("Produce", 13)
def max_timestamp_that_is_not_the_largest(talk: Talk, version: int) -> None:
    """The header's largest timestamp is not that of the records."""
    refused(talk, version, damaged(batch("a", "b"), max_timestamp_ms=OLD_TIME_MS + 500))
