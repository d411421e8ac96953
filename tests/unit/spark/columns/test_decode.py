"""Columns hold what the plain reader reads, in every shape, codec, range and cut."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.spark.columns.any_records import (
    EXAMPLES,
    FOREVER,
    equal_records,
    plainly,
    record_lists,
    see,
    with_header,
)
from tidelog.core.wire.compression import Compression
from tidelog.core.wire.record_batch import HEADER_BYTES
from tidelog.core.wire.records import NewRecord, build
from tidelog.spark.columns.chunks import CHUNK_BYTES
from tidelog.spark.columns.decode import ColumnDecoder, record_schema

CODECS = list(Compression)
FIRST_MS = 1_700_000_000_000

some_batches = st.lists(
    st.tuples(record_lists, st.sampled_from(CODECS), st.integers(min_value=0, max_value=3)),
    min_size=1,
    max_size=4,
)


def laid_out(drawn: list[tuple[list[NewRecord], Compression, int]]) -> list[bytearray]:
    """Batches one after the other in a log, some with a gap before them."""
    batches, next_offset = [], 0
    for records, codec, gap in drawn:
        batches.append(build(records, base_offset=next_offset + gap, compression=codec))
        next_offset += gap + len(records)
    return batches


def numbered(count: int, *, base_offset: int = 0, **how: int) -> bytearray:
    """A batch of distinguishable records."""
    records = [
        NewRecord(value=b"v%d" % (base_offset + index), timestamp_ms=FIRST_MS + index)
        for index in range(count)
    ]
    return build(records, base_offset=base_offset, **how)  # type: ignore[arg-type]


def offsets(view: bytes | bytearray, **how: int) -> list[int]:
    return [record.offset for record in see(view, **how).records]  # type: ignore[arg-type]


@settings(max_examples=EXAMPLES)
@given(some_batches)
def test_columns_hold_what_the_plain_reader_reads(
    drawn: list[tuple[list[NewRecord], Compression, int]],
) -> None:
    data = b"".join(laid_out(drawn))
    seen = see(data)

    assert seen.records == plainly(data)
    assert seen.next_offset == seen.records[-1].offset + 1


@settings(max_examples=EXAMPLES)
@given(some_batches, st.data())
def test_a_cut_batch_is_left_for_the_next_answer(
    drawn: list[tuple[list[NewRecord], Compression, int]], data: st.DataObject
) -> None:
    batches = laid_out(drawn)
    whole = b"".join(batches)
    cut = data.draw(st.integers(min_value=0, max_value=len(whole)))
    complete: list[bytearray] = []
    size = 0
    while len(complete) < len(batches) and size + len(batches[len(complete)]) <= cut:
        size += len(batches[len(complete)])
        complete.append(batches[len(complete)])
    first = see(whole[:cut])

    assert first.records == plainly(b"".join(complete))
    assert see(whole[:cut], whole[size:]).records == plainly(whole)
    assert (first.pieces == []) == (complete == [])


@settings(max_examples=EXAMPLES)
@given(some_batches, st.data())
def test_a_range_is_cut_at_both_ends(
    drawn: list[tuple[list[NewRecord], Compression, int]], data: st.DataObject
) -> None:
    whole = b"".join(laid_out(drawn))
    records = plainly(whole)
    log_end_offset = records[-1].offset + 1
    start = data.draw(st.integers(min_value=0, max_value=log_end_offset))
    end = data.draw(st.integers(min_value=start, max_value=log_end_offset + 5))
    seen = see(whole, start_offset=start, end_offset=end)

    assert seen.records == [record for record in records if start <= record.offset < end]
    assert seen.next_offset == max(start, min(end, log_end_offset))


@settings(max_examples=EXAMPLES)
@given(equal_records(), st.sampled_from(CODECS))
def test_headers_that_nobody_asked_for_are_no_column(
    records: list[NewRecord], codec: Compression
) -> None:
    batch = build(records, compression=codec)
    seen = see(batch, with_headers=False)

    assert seen.records == [record._replace(headers=[]) for record in plainly(batch)]
    assert seen.pieces[0].columns.schema == record_schema(with_headers=False)


def test_the_columns_are_those_of_sparks_kafka_source() -> None:
    schema = see(numbered(2)).pieces[0].columns.schema

    assert schema.names == ["key", "value", "offset", "timestamp", "timestampType", "headers"]
    assert schema.field("timestamp").type == pa.timestamp("us", tz="UTC")
    assert schema.field("timestampType").type == pa.int32()
    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    assert schema.field("headers").type.value_type == header


def test_many_small_batches_and_all_of_them_at_once() -> None:
    """So many that their records are walked side by side."""
    batches = [numbered(index % 7 + 1, base_offset=10 * index) for index in range(400)]
    data = b"".join(batches)

    assert see(data).records == plainly(data)


def test_a_broker_that_stamps_records_gives_one_time_to_all_of_a_batch() -> None:
    stamped_ms = FIRST_MS + 5_000
    data = numbered(3) + numbered(2, base_offset=3, log_append_time_ms=stamped_ms)
    seen = see(data)

    assert seen.timestamp_types == [0, 0, 0, 1, 1]
    assert [record.timestamp_ms for record in seen.records] == [
        *(FIRST_MS, FIRST_MS + 1, FIRST_MS + 2),
        *(stamped_ms, stamped_ms),
    ]


def test_records_without_a_timestamp_have_that_of_the_wire() -> None:
    seen = see(build([NewRecord(value=b"x", timestamp_ms=-1)]))

    assert seen.records[0].timestamp_ms == -1


def test_nothing_and_empty_are_different() -> None:
    shapes = [(None, None), (b"", b""), (None, b"v"), (b"k", None), (b"", None)] * 20
    batch = build([NewRecord(key=key, value=value) for key, value in shapes])

    assert [(record.key, record.value) for record in see(batch).records] == shapes


@pytest.mark.parametrize("kept", [[0, 1, 2], [0, 4, 9], [7], [9]])
def test_compaction_leaves_gaps_that_count_as_seen(kept: list[int]) -> None:
    records = [NewRecord(value=b"x", offset_delta=delta) for delta in kept]
    batch = with_header(build(records, base_offset=100), last_offset_delta=9)
    seen = see(batch, start_offset=100)

    assert [record.offset for record in seen.records] == [100 + delta for delta in kept]
    assert seen.next_offset == 110


def test_a_batch_that_compaction_emptied_counts_as_seen() -> None:
    empty = with_header(
        numbered(1, base_offset=5)[:HEADER_BYTES],
        batch_length=HEADER_BYTES - 12,
        records_count=0,
        last_offset_delta=4,
    )
    seen = see(empty, start_offset=5)

    assert seen.records == []
    assert seen.next_offset == 10
    assert offsets(numbered(5) + empty + numbered(2, base_offset=10)) == [0, 1, 2, 3, 4, 10, 11]


def test_a_batch_after_the_range_shows_that_the_rest_was_a_gap() -> None:
    seen = see(numbered(3) + numbered(3, base_offset=50), end_offset=20)

    assert len(seen.records) == 3
    assert seen.next_offset == 20
    assert see(numbered(3, base_offset=50), start_offset=3, end_offset=20).next_offset == 20


def test_batches_before_the_range_are_not_seen_again() -> None:
    data = numbered(3) + numbered(3, base_offset=3)

    assert offsets(data, start_offset=4, end_offset=FOREVER) == [4, 5]
    assert see(numbered(3), start_offset=8).next_offset == 8


@pytest.mark.parametrize("codec", CODECS)
def test_what_unpacks_to_much_comes_in_pieces(codec: Compression) -> None:
    record = NewRecord(value=bytes(CHUNK_BYTES))
    batches = [build([record], base_offset=at, compression=codec) for at in range(4)]
    seen = see(b"".join(batches))

    assert [piece.records for piece in seen.pieces] == [1, 1, 1, 1]
    assert [piece.next_offset for piece in seen.pieces] == [1, 2, 3, 4]


def test_the_columns_are_copies() -> None:
    """The buffer of an answer is used again for the next one."""
    answer = numbered(3)
    decoder = ColumnDecoder(
        start_offset=0, end_offset=9, is_read_committed=False, with_headers=True
    )
    (decoded,) = decoder.decode(memoryview(answer), ())
    answer[:] = bytes(len(answer))

    assert decoded.columns.column("value").to_pylist() == [b"v0", b"v1", b"v2"]


def test_no_answer_is_no_piece() -> None:
    assert see(b"").pieces == []
    assert see(numbered(3)[:40]).pieces == []


def test_a_header_name_that_is_not_utf_8_is_repaired() -> None:
    headers = [("a\udcff", b"1"), ("b", None)]
    batch = build([NewRecord(value=b"x", headers=headers), NewRecord(value=b"y")])

    assert [record.headers for record in see(batch).records] == [
        [("a\ufffd", b"1"), ("b", None)],
        [],
    ]


@pytest.mark.parametrize("others", [0, 40])
def test_a_record_with_very_many_headers(others: int) -> None:
    """One alone is read in a plain loop, beside others in steps with them."""
    headers = [(f"h{index % 300}", b"x" * (index % 90)) for index in range(3_000)]
    few = [NewRecord(value=b"few", headers=headers[:2])] * others
    batch = build([*few, NewRecord(value=b"many", headers=headers), *few])

    assert see(batch).records == plainly(batch)
