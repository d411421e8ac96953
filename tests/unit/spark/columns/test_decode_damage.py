"""Bytes that nobody may trust: refused with the offset, never read past, never believed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.spark.columns.any_records import (
    EXAMPLES,
    mixed_records,
    plainly,
    record_lists,
    see,
    with_header,
)
from tidelog.core.wire.compression import Compression
from tidelog.core.wire.record_batch import (
    CRC_COVERS_FROM,
    HEADER_BYTES,
    CorruptBatch,
    renew_crc,
)
from tidelog.core.wire.records import NewRecord, Record, build
from tidelog.core.wire.varint import varint

BASE_OFFSET = 70
_MAGIC_AT = 16
_RECORDS_COUNT_AT = 57
_TIMESTAMP_MS_MAX = (2**63 - 1) // 1_000


def sealed(*records: bytes, count: int | None = None) -> bytearray:
    """A batch with a valid checksum around records that were written by hand."""
    body = b"".join(records)
    batch = build([NewRecord(value=b"")], base_offset=BASE_OFFSET)[:HEADER_BYTES] + body
    count = len(records) if count is None else count
    length = len(batch) - 12
    return with_header(
        batch, batch_length=length, records_count=count, last_offset_delta=max(0, count - 1)
    )


def of_an_old_format() -> bytearray:
    batch = sealed(GOOD)
    batch[_MAGIC_AT] = 1
    return batch


def sized(body: bytes) -> bytes:
    return varint(len(body)) + body


GOOD = sized(b"\x00\x00\x00\x01\x02v\x00")
"""No key, the value `v`, no headers."""


def test_a_record_by_hand_is_read() -> None:
    assert see(sealed(GOOD, sized(b"\x00\x00\x02\x01\x02w\x00"))).records == [
        Record(BASE_OFFSET, -1, None, b"v", []),
        Record(BASE_OFFSET + 1, -1, None, b"w", []),
    ]


@pytest.mark.parametrize(
    "batch",
    [
        pytest.param(sealed(GOOD, count=2), id="fewer records than counted"),
        pytest.param(sealed(GOOD, GOOD, count=1), id="more records than counted"),
        pytest.param(sealed(GOOD, count=0), id="records where none are counted"),
        pytest.param(sealed(GOOD, count=-1), id="a negative count"),
        pytest.param(sealed(GOOD, count=2**31 - 1), id="a count beyond the bytes"),
        pytest.param(sealed(b"\x01" * 7), id="records of negative size"),
        pytest.param(sealed(b"\x00" * 7), id="a record of no size"),
        pytest.param(sealed(sized(b"\x00\x00\x00\x01\x02v\x00\x00")), id="bytes after the fields"),
        pytest.param(sealed(sized(b"\x00\x00\x00\x01\x04v\x00")), id="a value beyond its record"),
        pytest.param(sealed(sized(b"\x00\x00\x00\xff\xff\xff\xff\x0f")), id="fields are missing"),
        pytest.param(
            sealed(sized(b"\x00\x00\x00" + varint(2**31 - 1) + b"\x02v\x00")), id="a huge key"
        ),
        pytest.param(sealed(sized(b"\x00\x00\x00\x01" + varint(2**30))), id="a huge value"),
        pytest.param(sealed(sized(b"\x00\x00\x00\x01\x02v\x01")), id="minus one headers"),
        pytest.param(
            sealed(sized(b"\x00\x00\x00\x01\x02v" + varint(2**31 - 1))), id="too many headers"
        ),
        pytest.param(
            sealed(sized(b"\x00\x00\x00\x01\x02v\x02\x01\x01")), id="a header without a name"
        ),
        pytest.param(
            sealed(sized(b"\x00\x00\x00\x01\x02v\x02\x00\x04x")), id="a header beyond its record"
        ),
        pytest.param(
            sealed(sized(b"\x00\x00\x00\x01\x02v\x02\x00\x01x")), id="bytes after the headers"
        ),
        pytest.param(sealed(sized(b"\x00\x00\x02\x01\x02v\x00")), id="an offset beyond its batch"),
        pytest.param(sealed(sized(b"\x00\x00\x01\x01\x02v\x00")), id="an offset before its batch"),
        pytest.param(
            with_header(sealed(GOOD), last_offset_delta=-1), id="a batch that ends before it begins"
        ),
        pytest.param(
            with_header(sealed(GOOD), base_timestamp_ms=2**60), id="a time without microseconds"
        ),
        pytest.param(
            with_header(sealed(sized(b"\x00\x02\x00\x01\x02v\x00")), base_timestamp_ms=2**63 - 1),
            id="a time of more than 64 bits",
        ),
        pytest.param(with_header(sealed(GOOD), attributes=5), id="an unknown codec"),
        pytest.param(with_header(sealed(GOOD), attributes=Compression.ZSTD), id="not even packed"),
        pytest.param(of_an_old_format(), id="an old format"),
    ],
)
def test_it_is_refused_with_its_offset(batch: bytearray) -> None:
    first = build([NewRecord(value=b"x")], base_offset=BASE_OFFSET - 1)

    with pytest.raises(CorruptBatch, match=f"offset {BASE_OFFSET}"):
        see(first + batch)


def test_a_base_offset_at_the_end_of_all_offsets_is_refused() -> None:
    with pytest.raises(CorruptBatch):
        see(with_header(sealed(GOOD), base_offset=2**63 - 1), end_offset=2**63)


def test_batches_that_go_back_are_refused() -> None:
    batch = build([NewRecord(value=b"x")] * 3, base_offset=BASE_OFFSET)
    overlapping = build([NewRecord(value=b"x")], base_offset=BASE_OFFSET + 2)

    with pytest.raises(CorruptBatch, match=f"offset {BASE_OFFSET + 2}"):
        see(batch + overlapping)


def test_headers_that_nobody_asked_for_are_not_looked_at() -> None:
    batch = sealed(sized(b"\x00\x00\x00\x01\x02v\x02\x01\x01"))

    assert [record.value for record in see(batch, with_headers=False).records] == [b"v"]


@settings(max_examples=EXAMPLES)
@given(record_lists, st.sampled_from(list(Compression)), st.data())
def test_a_flipped_bit_under_the_checksum_is_noticed(
    records: list[NewRecord], codec: Compression, data: st.DataObject
) -> None:
    batch = build(records, base_offset=BASE_OFFSET, compression=codec)
    at = data.draw(st.integers(min_value=CRC_COVERS_FROM, max_value=len(batch) - 1))
    batch[at] ^= 1 << data.draw(st.integers(min_value=0, max_value=7))

    with pytest.raises(CorruptBatch, match=f"offset {BASE_OFFSET}"):
        see(batch)


@given(mixed_records, st.data())
def test_damage_under_a_valid_checksum_is_seen_as_the_plain_reader_sees_it(
    records: list[NewRecord], data: st.DataObject
) -> None:
    batch = build(records, base_offset=BASE_OFFSET)
    for _ in range(data.draw(st.integers(min_value=1, max_value=3))):
        at = data.draw(st.integers(min_value=_RECORDS_COUNT_AT, max_value=len(batch) - 1))
        batch[at] = data.draw(st.integers(min_value=0, max_value=255))
    renew_crc(batch)
    try:
        expected = plainly(batch)
    except CorruptBatch:
        expected = None
    if expected is None or any(abs(each.timestamp_ms) > _TIMESTAMP_MS_MAX for each in expected):
        with pytest.raises(CorruptBatch):
            see(batch)
    else:
        assert see(batch).records == [_repaired(record) for record in expected]


@settings(max_examples=EXAMPLES)
@given(record_lists, st.sampled_from(list(Compression)), st.data())
def test_no_damage_raises_anything_else(
    records: list[NewRecord], codec: Compression, data: st.DataObject
) -> None:
    batch = build(records, base_offset=BASE_OFFSET, compression=codec)
    for _ in range(data.draw(st.integers(min_value=1, max_value=4))):
        at = data.draw(st.integers(min_value=0, max_value=len(batch) - 1))
        batch[at] = data.draw(st.integers(min_value=0, max_value=255))
    try:
        renew_crc(batch)
    except CorruptBatch:
        pass
    try:
        see(batch)
    except CorruptBatch:
        pass


def _repaired(record: Record) -> Record:
    """Names of headers as Java would show them."""
    return record._replace(
        headers=[
            (name.encode("utf-8", "surrogateescape").decode("utf-8", "replace"), value)
            for name, value in record.headers
        ]
    )
