"""Batches made of columns are, byte for byte, those that the plain writer makes of the records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.spark.columns.any_records import (
    EXAMPLES,
    plainly,
    record_columns,
    record_lists,
    see,
)
from tidelog.core.wire.compression import Compression
from tidelog.core.wire.record_batch import crc_is_valid, read_header
from tidelog.core.wire.records import NewRecord, build
from tidelog.spark.columns.encode import COMPRESSIONS, PLAIN, EncodedBatch, WriterIdentity, encode

NOW_MS = 1_700_000_000_000
MINE = WriterIdentity(producer_id=9, producer_epoch=4)
UNLIMITED = 2**30
SLACK_BYTES = 10
"""What a record may be thought to take more than it does."""
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def encoded(columns: pa.RecordBatch | Mapping[str, pa.Array], **how: Any) -> list[EncodedBatch]:
    """With what a test does not care about filled in."""
    if isinstance(columns, Mapping):
        columns = pa.RecordBatch.from_pydict(dict(columns))
    settings: dict[str, Any] = {
        "identity": PLAIN,
        "base_sequence": -1,
        "first_batch_records_max": None,
        "batch_bytes_max": UNLIMITED,
        "compression": "none",
        "now_ms": NOW_MS,
    }
    return list(encode(columns, **settings | how))


def values(count: int, *, size: int = 20) -> dict[str, pa.Array]:
    return {"value": pa.array([b"%0*d" % (size, index) for index in range(count)], pa.binary())}


def contents(batches: Iterable[EncodedBatch]) -> list[bytes | None]:
    return [record.value for batch in batches for record in plainly(batch.data)]


@settings(max_examples=EXAMPLES)
@given(record_lists, st.sampled_from(COMPRESSIONS))
def test_one_batch_is_that_of_the_plain_writer(records: list[NewRecord], compression: str) -> None:
    (batch,) = encoded(
        record_columns(records), identity=MINE, base_sequence=7, compression=compression
    )

    assert batch.data == build(
        records,
        producer_id=9,
        producer_epoch=4,
        base_sequence=7,
        transactional=True,
        compression=Compression[compression.upper()],
    )
    assert (batch.records, batch.base_sequence) == (len(records), 7)


@settings(max_examples=EXAMPLES)
@given(record_lists, st.integers(min_value=100, max_value=20_000))
def test_batches_are_nearly_as_full_as_the_limit_allows(
    records: list[NewRecord], limit: int
) -> None:
    batches = encoded(record_columns(records), batch_bytes_max=limit)
    start = 0
    for batch in batches:
        end = start + batch.records
        assert batch.data == build(records[start:end])
        assert len(batch.data) <= limit or batch.records == 1
        with_one_more = len(build(records[start : end + 1])) + SLACK_BYTES * (batch.records + 1)
        assert end == len(records) or with_one_more > limit
        start = end
    assert start == len(records)


@settings(max_examples=EXAMPLES)
@given(record_lists)
def test_what_is_written_is_read_again(records: list[NewRecord]) -> None:
    (batch,) = encoded(record_columns(records), compression="zstd")

    assert see(batch.data).records == plainly(batch.data)


def test_a_record_above_the_limit_goes_alone() -> None:
    sizes = [10, 10, 5_000, 10, 5_000, 5_000]
    column = pa.array([b"x" * size for size in sizes], pa.binary())
    batches = encoded({"value": column}, batch_bytes_max=1_000)

    assert [batch.records for batch in batches] == [2, 1, 1, 1, 1]
    assert contents(batches) == column.to_pylist()


@pytest.mark.parametrize(("most", "expected"), [(1, [1, 99]), (37, [37, 63]), (100, [100])])
def test_the_first_batch_may_be_made_smaller(most: int, expected: list[int]) -> None:
    """So that a second writer of the same rows differs in its sequences."""
    batches = encoded(values(100), first_batch_records_max=most)

    assert [batch.records for batch in batches] == expected
    assert contents(batches) == values(100)["value"].to_pylist()


def test_the_first_batch_keeps_the_limit_of_bytes_as_well() -> None:
    batches = encoded(values(100), first_batch_records_max=90, batch_bytes_max=61 + 10 * 28)

    assert batches[0].records == 10


def test_sequences_go_on_and_wrap() -> None:
    batches = encoded(
        values(10),
        identity=MINE,
        base_sequence=2**31 - 4,
        first_batch_records_max=3,
        batch_bytes_max=61 + 3 * 28,
    )

    assert [batch.records for batch in batches] == [3, 3, 3, 1]
    assert [batch.base_sequence for batch in batches] == [2**31 - 4, 2**31 - 1, 2, 5]
    assert [read_header(batch.data).base_sequence for batch in batches] == [
        *(2**31 - 4, 2**31 - 1, 2, 5)
    ]


def test_without_a_producer_there_are_no_sequences() -> None:
    batches = encoded(values(10), base_sequence=0, first_batch_records_max=3)
    headers = [read_header(batch.data) for batch in batches]

    assert [header.base_sequence for header in headers] == [-1, -1]
    assert {header.producer_id for header in headers} == {-1}
    assert not any(header.is_transactional for header in headers)


def test_an_idempotent_producer_without_transactions() -> None:
    identity = WriterIdentity(producer_id=5, producer_epoch=0, is_transactional=False)
    (batch,) = encoded(values(3), identity=identity, base_sequence=0)
    header = read_header(batch.data)

    assert (header.producer_id, header.base_sequence, header.is_transactional) == (5, 0, False)
    assert crc_is_valid(batch.data, 0, header)


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.large_binary(), pa.binary_view(), pa.string_view()]
)
def test_text_and_other_binary_columns_are_taken(kind: pa.DataType) -> None:
    column = pa.array(["one", None, "", "drei ü"]).cast(pa.large_string()).cast(kind)
    (batch,) = encoded({"key": column, "value": column})
    expected = [b"one", None, b"", "drei ü".encode()]

    assert [record.key for record in plainly(batch.data)] == expected
    assert contents([batch]) == expected


def test_a_slice_of_columns_is_only_that() -> None:
    records = [
        NewRecord(b"v%d" % index, None if index % 3 else b"k", index, [("h", b"x")])
        for index in range(20)
    ]
    (batch,) = encoded(record_columns(records).slice(5, 8))

    assert [record.value for record in plainly(batch.data)] == [b"v%d" % i for i in range(5, 13)]
    assert [record.key for record in plainly(batch.data)] == [
        record.key for record in records[5:13]
    ]


def test_keys_and_headers_that_are_all_null_are_none() -> None:
    nothing = {
        "key": pa.nulls(2),
        "headers": pa.nulls(2, record_columns([]).column("headers").type),
    }
    (batch,) = encoded({**nothing, **values(2)})

    assert [(record.key, record.headers) for record in plainly(batch.data)] == [(None, [])] * 2


@pytest.mark.parametrize(
    ("column", "expected_ms"),
    [
        (pa.array([5, None, 7], pa.int64()), [5, NOW_MS, 7]),
        (pa.array([5_999, None, 7_000], pa.timestamp("us", "UTC")), [5, NOW_MS, 7]),
        (pa.array([5_999_999, 6_000_000, 0], pa.timestamp("ns")), [5, 6, 0]),
        (pa.array([5, None, 7], pa.timestamp("s")), [5_000, NOW_MS, 7_000]),
        (None, [NOW_MS] * 3),
    ],
)
def test_timestamps_come_from_the_column_or_are_now(
    column: pa.Array | None, expected_ms: list[int]
) -> None:
    times = {} if column is None else {"timestamp": column}
    (batch,) = encoded({**values(3), **times})
    header = read_header(batch.data)

    assert [record.timestamp_ms for record in plainly(batch.data)] == expected_ms
    assert (header.base_timestamp_ms, header.max_timestamp_ms) == (expected_ms[0], max(expected_ms))


def test_no_rows_are_no_batch() -> None:
    assert encoded(values(0)) == []
    assert encoded(record_columns([])) == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"value": pa.array([1, 2, 3])}, "int64"),
        ({"key": pa.array([True] * 3)}, "bool"),
        ({"timestamp": pa.array(["yesterday"] * 3)}, "timestamp column of string"),
        ({"timestamp": pa.array([3, -1, 4], pa.int64())}, "row 1 is before 1970"),
        ({"headers": pa.array(["h"] * 3)}, "headers are an array"),
        ({"headers": pa.array([[1]] * 3)}, "headers are an array"),
        ({"headers": pa.array([[{"key": None, "value": b""}]] * 3, HEADERS)}, "without a key"),
        ({"headers": pa.array([[None]] * 3, HEADERS)}, "a header that is null"),
    ],
)
def test_columns_that_are_no_records_are_refused(change: dict[str, pa.Array], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        encoded({**values(3), **change})


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"compression": "brotli"}, "'brotli' is not one of none, gzip, snappy, lz4, zstd"),
        ({"first_batch_records_max": 0}, "a first batch of 0 records"),
    ],
)
def test_settings_that_make_no_sense_are_refused(how: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        encoded(values(3), **how)


def test_columns_without_a_value_are_refused() -> None:
    with pytest.raises(ValueError, match="no column named value among key"):
        encoded({"key": pa.array([b"k"])})
