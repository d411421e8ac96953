"""The batch header: reading, rebasing, stamping and walking over batches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.core.wire.crc import _load_package, crc32c
from tidelog.core.wire.record_batch import (
    HEADER_BYTES,
    CorruptBatch,
    UnsupportedMagic,
    batches,
    crc_is_valid,
    read_header,
    rebase,
    stamp_log_append_time,
)
from tidelog.core.wire.records import NewRecord, build, iterate

ONE = NewRecord(b"value", b"key", 1_000)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
    ],
)
def test_the_checksum_is_castagnoli(data: bytes, expected: int) -> None:
    """The vectors of RFC 3720, appendix B.4."""
    assert crc32c(memoryview(data)) == expected
    assert _load_package()(data) == expected


def test_a_header_says_what_was_built() -> None:
    batch = build(
        [ONE, NewRecord(None, timestamp_ms=3_000), NewRecord(b"", timestamp_ms=2_000)],
        base_offset=7,
        leader_epoch=4,
        producer_id=9,
        producer_epoch=2,
        base_sequence=11,
        transactional=True,
    )
    header = read_header(memoryview(batch))

    assert header.base_offset == 7
    assert header.end_offset == 10
    assert header.size_bytes == len(batch)
    assert header.leader_epoch == 4
    assert header.magic == 2
    assert header.base_timestamp_ms == 1_000
    assert header.max_timestamp_ms == 3_000
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 2, 11)
    assert header.records_count == 3
    assert header.is_transactional
    assert not header.is_control
    assert not header.is_log_append_time
    assert header.compression == 0
    assert crc_is_valid(memoryview(batch), 0, header)


@pytest.mark.parametrize("length", [0, 1, HEADER_BYTES - 1])
def test_a_header_needs_all_its_bytes(length: int) -> None:
    with pytest.raises(CorruptBatch):
        read_header(memoryview(build([ONE]))[:length])
    with pytest.raises(CorruptBatch):
        read_header(memoryview(build([ONE])), -1)


def test_a_flipped_bit_under_the_checksum_is_seen() -> None:
    clean = build([ONE])
    for position in range(21, len(clean)):
        dirty = bytearray(clean)
        dirty[position] ^= 1
        assert not crc_is_valid(dirty, 0, read_header(dirty))


@pytest.mark.parametrize("batch_length", [-(2**31), -1, 0, 48, 10_000, 2**31 - 1])
def test_a_length_that_leaves_the_buffer_is_not_valid(batch_length: int) -> None:
    batch = build([ONE])
    assert not crc_is_valid(batch, 0, read_header(batch)._replace(batch_length=batch_length))


def test_rebasing_keeps_the_checksum_valid() -> None:
    data = bytearray(b"??") + build([ONE], base_offset=0)
    rebase(memoryview(data), 2, base_offset=2**40, leader_epoch=77)
    header = read_header(data, 2)

    assert (header.base_offset, header.leader_epoch) == (2**40, 77)
    assert crc_is_valid(data, 2, header)
    assert data[:2] == b"??"


def test_log_append_time_replaces_the_time_of_every_record() -> None:
    batch = build([ONE, NewRecord(b"x", timestamp_ms=5_000)])
    stamp_log_append_time(memoryview(batch), 0, timestamp_ms=9_999)
    header = read_header(batch)

    assert header.is_log_append_time
    assert header.max_timestamp_ms == 9_999
    assert crc_is_valid(batch, 0, header)
    assert [record.timestamp_ms for record in iterate(batch)] == [9_999, 9_999]


@given(st.integers(min_value=0, max_value=400))
def test_a_partial_tail_is_left_out(cut: int) -> None:
    whole = [bytes(build([ONE], base_offset=index)) for index in range(4)]
    data = b"".join(whole)[:cut]
    found = [(position, header.base_offset) for position, header in batches(memoryview(data))]

    assert found == [(n * len(whole[0]), n) for n in range(len(data) // len(whole[0]))]


@pytest.mark.parametrize(
    ("position", "value", "kind"),
    [(16, 0, UnsupportedMagic), (16, 1, UnsupportedMagic), (16, 3, CorruptBatch),
     (16, 255, CorruptBatch), (8, 0x80, CorruptBatch), (11, 20, CorruptBatch)],
)  # fmt: skip
def test_nonsense_is_refused_while_walking(
    position: int, value: int, kind: type[CorruptBatch]
) -> None:
    data = build([ONE])
    data[position] = value
    with pytest.raises(kind) as refusal:
        list(batches(memoryview(data)))
    assert type(refusal.value) is kind
