"""The walk over records accepts what the readers read, and nothing that they cannot."""

from __future__ import annotations

import random
from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AioBuilder
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatchBuilder as PythonBuilder

from tests.lying_batches import CONTENT_LIES
from tidelog.core.wire import record_runs, record_walk
from tidelog.core.wire.record_batch import HEADER_BYTES, CorruptBatch, read_header, renew_crc
from tidelog.core.wire.record_runs import RecordLayout
from tidelog.core.wire.record_walk import WalkedRecords, walk
from tidelog.core.wire.records import NewRecord, build, iterate
from tidelog.core.wire.varint import varint

BASE_MS = 1_700_000_000_000

small = st.one_of(st.none(), st.binary(max_size=90))
deltas = st.one_of(
    st.sampled_from([0, 1, 63, 64, 8_191, 8_192]), st.integers(min_value=-9_000, max_value=9_000)
)
headers = st.lists(st.tuples(st.text(max_size=5), small), max_size=2).map(tuple)
one_record = st.builds(
    lambda key, value, delta, headers: NewRecord(value, key, BASE_MS + delta, headers),
    small,
    small,
    deltas,
    headers,
)
runs = st.lists(st.tuples(one_record, st.sampled_from([1, 1, 2, 7, 70])), min_size=1, max_size=4)
"""Records of which some come many times in a row: as columns find them."""


def repeated(counted: list[tuple[NewRecord, int]]) -> list[NewRecord]:
    return [record for record, times in counted for _ in range(times)]


def walked(batch: bytes | bytearray) -> WalkedRecords:
    header = read_header(batch)
    data = memoryview(batch)[HEADER_BYTES:]
    return walk(data, header.records_count, header.base_timestamp_ms)


def test_a_batch_of_nothing_but_equal_records() -> None:
    batch = build([NewRecord(b"v" * 100, timestamp_ms=BASE_MS)] * 10_000)

    assert walked(batch).latest_delta_ms == 0


@pytest.mark.parametrize("count", [1, 2, 7, 8, 63, 64, 65, 66, 8_191, 8_192, 8_193, 8_300, 20_000])
@pytest.mark.parametrize("value_bytes", [0, 3, 54, 55, 56, 57, 58, 100])
def test_offset_deltas_grow_by_a_byte(count: int, value_bytes: int) -> None:
    """At 64 and at 8,192 a record's layout changes, and the walk goes on."""
    records = [
        NewRecord(bytes(value_bytes), timestamp_ms=BASE_MS + at // 50) for at in range(count)
    ]

    found = walked(build(records))

    assert found.latest_delta_ms == (count - 1) // 50
    assert found.has_null_key


@given(runs)
def test_what_our_encoder_writes_is_accepted_and_summed_up(
    counted: list[tuple[NewRecord, int]],
) -> None:
    records = repeated(counted)
    found = walked(build(records))
    times = [record.timestamp_ms - records[0].timestamp_ms for record in records]
    assert found.latest_delta_ms == max(times)
    assert found.earliest_delta_ms <= min(times)
    assert found.has_null_key == any(record.key is None for record in records)


@pytest.mark.parametrize("builder_type", [AioBuilder, PythonBuilder])
@given(counted=runs)
def test_what_other_clients_write_is_accepted(
    builder_type: Any, counted: list[tuple[NewRecord, int]]
) -> None:
    records = repeated(counted)
    builder = builder_type(2, 0, 0, -1, -1, -1, 2**24)
    for at, record in enumerate(records):
        timestamp_ms = record.timestamp_ms + at
        builder.append(at, timestamp_ms, record.key, record.value, list(record.headers))
    batch = builder.build()
    header = read_header(batch)
    found = walked(batch)
    assert header.base_timestamp_ms + found.latest_delta_ms == header.max_timestamp_ms


@given(runs, st.data())
def test_what_was_changed_is_accepted_only_if_readers_can_read_it(
    counted: list[tuple[NewRecord, int]], data: st.DataObject
) -> None:
    """Changed bytes, or bytes put in or taken out, anywhere in the records; also in columns."""
    batch = build(repeated(counted))
    changes = data.draw(st.lists(st.tuples(st.integers(0, 2**20), st.integers(0, 255)), max_size=3))
    for at, value in changes:
        batch[HEADER_BYTES + at % (len(batch) - HEADER_BYTES)] = value
    what = data.draw(st.sampled_from(["nothing", "cut", "more"]))
    if what == "cut":
        del batch[-data.draw(st.integers(1, 4)) :]
    elif what == "more":
        batch += bytes(data.draw(st.integers(1, 4)))
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    renew_crc(batch)
    try:
        found = walked(batch)
    except CorruptBatch:
        return
    records = list(iterate(batch))
    assert [record.offset for record in records] == list(range(len(records)))
    base_ms = read_header(batch).base_timestamp_ms
    assert found.latest_delta_ms == max(record.timestamp_ms - base_ms for record in records)
    assert found.earliest_delta_ms <= min(record.timestamp_ms - base_ms for record in records)
    assert found.has_null_key or all(record.key is not None for record in records)


@pytest.mark.parametrize("kind", ["equal", "mixed"])
def test_no_changed_byte_in_a_large_batch_gets_through(kind: str) -> None:
    """Each byte between the contents, in runs and between them, is looked at."""
    chance = random.Random(kind)
    sizes = [70 if kind == "equal" else chance.randrange(50, 90) for _ in range(150)]
    batch = build([NewRecord(b"v" * size, timestamp_ms=BASE_MS) for size in sizes])
    for at in range(HEADER_BYTES, len(batch)):
        if batch[at] == ord("v"):
            continue
        changed = bytearray(batch)
        changed[at] ^= 0x04
        try:
            walked(changed)
        except CorruptBatch:
            continue
        assert len(list(iterate(changed))) == len(sizes)


def test_long_numbers_for_small_ones_are_read_as_readers_do() -> None:
    """A varint may take more bytes than it needs; Kafka reads it, so do we."""
    body = b"\x00" + b"\x80\x00" + b"\x80\x80\x00" + varint(-1) + b"\x82\x00" + b"v" + b"\x80\x00"

    found = walk(varint(len(body)) + body, 1, BASE_MS)

    assert found == WalkedRecords(0, found.earliest_delta_ms, has_null_key=True)


def test_a_timestamp_beyond_64_bits_is_refused() -> None:
    batch = build([NewRecord(b"v", timestamp_ms=2**63 - 10)] * 2)
    assert walked(batch).latest_delta_ms == 0

    batch[HEADER_BYTES + 2] = 60
    with pytest.raises(CorruptBatch, match="timestamp"):
        walked(batch)


@pytest.mark.parametrize("lie", CONTENT_LIES)
def test_every_lie_is_found(lie: str) -> None:
    with pytest.raises(CorruptBatch):
        walked(CONTENT_LIES[lie](0))


def test_many_short_runs_do_not_cost_a_look_at_everything_for_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Or one batch of a quarter of a million records would stop a broker for minutes."""
    cut: list[int] = []
    column = record_runs._column

    def counted(data: bytes, first: int, length: int, size_bytes: int) -> bytes:
        cut.append(length)
        return column(data, first, length, size_bytes)

    monkeypatch.setattr(record_runs, "_column", counted)
    records = [NewRecord(bytes(30 + at // 9 % 2)) for at in range(20_000)]

    walked(build(records))

    assert sum(cut) < 50 * len(records)


def test_runs_are_walked_by_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand equal records take a handful of single steps, or appends would be slow."""
    steps: list[int] = []
    read = record_walk._read_layout

    def counted(data: bytes, start: int, index: int, base_ms: int) -> RecordLayout:
        steps.append(index)
        return read(data, start, index, base_ms)

    monkeypatch.setattr(record_walk, "_read_layout", counted)

    walked(build([NewRecord(b"v" * 100, timestamp_ms=BASE_MS)] * 10_000))

    assert steps == [0, 64, 8_192]
