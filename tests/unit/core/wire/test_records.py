"""Records go into a batch and come out equal, here and in other implementations."""

from __future__ import annotations

from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AioBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AioBuilder
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch as PythonBatch
from kafka.record.default_records import DefaultRecordBatchBuilder as PythonBuilder

from tidelog.core.wire.compression import Compression, compress, decompress
from tidelog.core.wire.record_batch import CorruptBatch, crc_is_valid, read_header, renew_crc
from tidelog.core.wire.records import NewRecord, Record, build, iterate, recompress

CODECS = list(Compression)
PLAIN_CODECS = [Compression.NONE, Compression.GZIP]  # kafka-python needs libraries for the others
OTHERS: list[Any] = [
    pytest.param(AioBatch, AioBuilder, CODECS, id="aiokafka"),
    pytest.param(PythonBatch, PythonBuilder, PLAIN_CODECS, id="kafka-python"),
]

some_bytes = st.none() | st.binary(max_size=200) | st.binary(max_size=20).map(lambda b: b * 400)
some_headers = st.lists(st.tuples(st.text(max_size=20), some_bytes), max_size=4)
some_times = st.integers(min_value=0, max_value=2**42)
some_records = st.lists(
    st.tuples(some_bytes, some_bytes, some_times, some_headers).map(
        lambda parts: NewRecord(*parts)
    ),
    min_size=1,
    max_size=12,
)


def as_read(records: list[NewRecord], base_offset: int) -> list[Record]:
    return [
        Record(base_offset + index, new.timestamp_ms, new.key, new.value, list(new.headers))
        for index, new in enumerate(records)
    ]


@given(some_records, st.sampled_from(CODECS), st.integers(min_value=0, max_value=2**62))
def test_what_goes_in_comes_out(
    records: list[NewRecord], codec: Compression, base_offset: int
) -> None:
    batch = build(records, base_offset=base_offset, compression=codec)

    assert crc_is_valid(batch, 0, read_header(batch))
    assert list(iterate(memoryview(batch))) == as_read(records, base_offset)


@given(some_records, st.sampled_from(CODECS), st.sampled_from(CODECS))
def test_another_codec_changes_nothing_but_the_packing(
    records: list[NewRecord], before: Compression, after: Compression
) -> None:
    batch = build(records, base_offset=3, leader_epoch=5, producer_id=8, compression=before)
    other = recompress(batch, compression=after)
    old, new = read_header(batch), read_header(other)

    assert list(iterate(other)) == list(iterate(batch))
    assert new.compression == after
    assert crc_is_valid(other, 0, new)
    for changing in ("batch_length", "crc", "attributes"):
        new = new._replace(**{changing: getattr(old, changing)})
    assert new == old


@settings(max_examples=50)
@given(records=some_records, data=st.data())
@pytest.mark.parametrize(("reader", "builder", "codecs"), OTHERS)
def test_other_implementations_read_our_batches(
    reader: Any, builder: Any, codecs: list[int], records: list[NewRecord], data: st.DataObject
) -> None:
    codec = data.draw(st.sampled_from(codecs))
    batch = reader(bytes(build(records, base_offset=41, compression=codec)))

    assert batch.validate_crc()
    found = [
        Record(r.offset, r.timestamp, _plain(r.key), _plain(r.value), _headers(r)) for r in batch
    ]
    assert found == as_read(records, 41)


@settings(max_examples=50)
@given(records=some_records, data=st.data())
@pytest.mark.parametrize(("reader", "builder", "codecs"), OTHERS)
def test_we_read_the_batches_of_other_implementations(
    reader: Any, builder: Any, codecs: list[int], records: list[NewRecord], data: st.DataObject
) -> None:
    codec = data.draw(st.sampled_from(codecs))
    theirs = builder(
        magic=2, compression_type=int(codec), is_transactional=0, producer_id=5, producer_epoch=1,
        base_sequence=2, batch_size=10**7,
    )  # fmt: skip
    for index, new in enumerate(records):
        theirs.append(index, new.timestamp_ms, new.key, new.value, list(new.headers))
    batch = bytes(theirs.build())

    assert crc_is_valid(batch, 0, read_header(batch))
    assert list(iterate(batch)) == as_read(records, 0)


@given(some_records, st.sampled_from(CODECS), st.data())
def test_a_damaged_batch_is_corrupt_and_nothing_worse(
    records: list[NewRecord], codec: Compression, data: st.DataObject
) -> None:
    batch = build(records, compression=codec)
    for _ in range(data.draw(st.integers(min_value=1, max_value=4))):
        position = data.draw(st.integers(min_value=0, max_value=len(batch) - 1))
        batch[position] = data.draw(st.integers(min_value=0, max_value=255))
    cut = data.draw(st.none() | st.integers(min_value=0, max_value=len(batch)))
    damaged = memoryview(batch)[:cut]
    try:
        found = list(iterate(damaged, decompressed_bytes_max=2**20))
    except CorruptBatch:
        return
    assert len(found) == read_header(damaged).records_count


@given(st.binary(max_size=300), st.sampled_from(CODECS[1:]))
def test_garbage_does_not_unpack(garbage: bytes, codec: Compression) -> None:
    try:
        unpacked = decompress(codec, garbage, bytes_max=2**16)
    except CorruptBatch:
        return
    assert len(unpacked) <= 2**16


@pytest.mark.parametrize("codec", CODECS[1:])
def test_a_bomb_is_refused_at_its_bound(codec: Compression) -> None:
    size = 8 * 2**20
    bomb = compress(codec, bytes(size))

    assert len(decompress(codec, bomb, bytes_max=size)) == size
    with pytest.raises(CorruptBatch, match="more than"):
        decompress(codec, bomb, bytes_max=size - 1)


def test_an_unknown_codec_is_corrupt() -> None:
    batch = build([NewRecord(b"x")])
    batch[22] |= 5
    with pytest.raises(CorruptBatch, match="codec 5"):
        list(iterate(batch))


def test_snappy_is_read_raw_and_framed_and_framed_twice() -> None:
    from cramjam import snappy

    plain = b"abc" * 40_000
    framed = bytes(compress(Compression.SNAPPY, plain))

    assert framed.startswith(b"\x82SNAPPY\x00")
    assert decompress(2, bytes(snappy.compress_raw(plain)), bytes_max=10**6) == plain
    assert decompress(2, framed, bytes_max=10**6) == plain
    assert decompress(2, framed + framed, bytes_max=10**6) == plain * 2


def test_gzip_members_follow_each_other() -> None:
    first, second = compress(1, b"first "), compress(1, b"second")
    assert decompress(1, bytes(first) + bytes(second), bytes_max=100) == b"first second"
    with pytest.raises(CorruptBatch, match="too early"):
        decompress(1, bytes(first)[:-3], bytes_max=100)


def test_lz4_blocks_are_independent_because_java_refuses_others() -> None:
    flags = bytes(compress(Compression.LZ4, b"x" * 200_000))[4]
    assert flags & 0b0010_0000, "block independence"
    assert not flags & 0b0000_0100, "content checksum"


def test_lz4_of_kafkas_default_level_is_the_fast_one_and_other_levels_pack_more() -> None:
    text = b"".join(b'{"order": %d, "amount": %d}' % (each, each * 7_919) for each in range(9_000))
    fast, by_default, by_nine, slow, slowest = (
        bytes(compress(Compression.LZ4, text, level=level)) for level in (1, None, 9, 8, 17)
    )

    assert by_default == by_nine == fast
    assert len(slowest) <= len(slow) < len(fast) < len(text)
    for packed in (fast, slow, slowest):
        assert decompress(Compression.LZ4, packed, bytes_max=len(text)) == text


def test_gaps_between_offsets_survive() -> None:
    batch = build(
        [NewRecord(b"a", offset_delta=2), NewRecord(b"b", offset_delta=9)], base_offset=100
    )

    assert [record.offset for record in iterate(batch)] == [102, 109]
    assert read_header(batch).end_offset == 110


def test_a_header_name_that_is_not_text_survives() -> None:
    batch = build([NewRecord(b"v", headers=[("\udcff", b"1")])])
    assert b"\xff" in batch
    assert next(iterate(batch)).headers == [("\udcff", b"1")]


@pytest.mark.parametrize(
    ("position", "value", "reason"),
    [
        (60, 0, "bytes after the last record"),
        (60, 2, "beyond the end"),
        (57, 0x80, "records"),
        (61, 0x7E, "are left"),
        (61, 0x00, "left in its record"),
        (61, 0x01, "are left"),
        (64, 0x04, "offset delta"),
        (65, 0x7E, "field of 63"),
        (66, 0x7E, "field of 63"),
        (68, 0x7E, "record headers"),
        (68, 0x01, "record headers"),
        (68, 0x00, "whose fields"),
        (69, 0x01, "without a name"),
    ],
)
def test_every_length_inside_is_checked(position: int, value: int, reason: str) -> None:
    """One record: 61 size, 62 attributes, 63 time, 64 offset, 65 key, 66 value, 68 headers."""
    batch = build([NewRecord(b"v", headers=[("h", b"1")])])
    batch[position] = value
    renew_crc(batch)
    with pytest.raises(CorruptBatch, match=reason):
        list(iterate(batch))


def _plain(part: Any) -> bytes | None:
    return None if part is None else bytes(part)


def _headers(record: Any) -> list[tuple[str, bytes | None]]:
    return [(name, _plain(content)) for name, content in record.headers]
