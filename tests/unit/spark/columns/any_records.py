"""Records in all shapes that make columns different, and the two ways to read them again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from hypothesis import strategies as st

from tidelog.core.wire.record_batch import HEADER, HEADER_BYTES, BatchHeader, batches, renew_crc
from tidelog.core.wire.records import NewRecord, Record, iterate
from tidelog.spark.columns.decode import Aborted, ColumnDecoder, Decoded

FOREVER = 2**63 - 1
EXAMPLES = 40
"""Of properties whose examples are many records each."""

some_bytes = (
    st.none()
    | st.binary(max_size=40)
    | st.binary(max_size=20).map(lambda each: each * 10)
    | st.integers(min_value=8_180, max_value=8_200).map(lambda size: b"v" * size)
    | st.integers(min_value=2**14 - 20, max_value=2**14 + 20).map(lambda size: b"w" * size)
)
"""Lengths around which the varint of a field or of a record grows."""
some_headers = st.lists(st.tuples(st.text(max_size=20), st.none() | st.binary(max_size=80)))
some_times = st.integers(min_value=0, max_value=2**42)
mixed_records = st.lists(
    st.builds(
        NewRecord,
        value=some_bytes,
        key=some_bytes,
        timestamp_ms=some_times,
        headers=some_headers,
        offset_delta=st.none(),
    ),
    min_size=1,
    max_size=12,
)


@st.composite
def equal_records(draw: st.DrawFn) -> list[NewRecord]:
    """One shape for all; the deltas alone grow, and sometimes a record in between is different."""
    count = draw(st.integers(min_value=1, max_value=200))
    key = draw(st.none() | st.binary(max_size=12))
    value = draw(st.none() | st.binary(max_size=130))
    first_ms = draw(some_times)
    step_ms = draw(st.sampled_from([0, 0, 1, -1, 100, 10_000]))
    records = [
        NewRecord(value=value, key=key, timestamp_ms=max(0, first_ms + index * step_ms))
        for index in range(count)
    ]
    for index in draw(st.sets(st.integers(min_value=0, max_value=count - 1), max_size=3)):
        records[index] = draw(mixed_records)[0]
    return records


record_lists = mixed_records | equal_records()


@dataclass
class Seen:
    """Everything that a decoder gave."""

    records: list[Record] = field(default_factory=list)
    timestamp_types: list[int] = field(default_factory=list)
    skipped_aborted: int = 0
    skipped_control: int = 0
    next_offset: int = -1
    pieces: list[Decoded] = field(default_factory=list)

    def take(self, decoded: Decoded) -> None:
        decoded.columns.validate(full=True)
        assert decoded.columns.num_rows == decoded.records
        self.records += as_records(decoded.columns)
        self.timestamp_types += decoded.columns.column("timestampType").to_pylist()
        self.skipped_aborted += decoded.skipped_aborted
        self.skipped_control += decoded.skipped_control
        assert decoded.next_offset >= self.next_offset
        self.next_offset = decoded.next_offset
        self.pieces.append(decoded)


def see(
    *answers: bytes | bytearray,
    start_offset: int = 0,
    end_offset: int = FOREVER,
    aborted: Sequence[Aborted] | None = None,
    with_headers: bool = True,
) -> Seen:
    """What one decoder makes of these answers; it reads commits if it is told of aborted ones."""
    decoder = ColumnDecoder(
        start_offset=start_offset,
        end_offset=end_offset,
        is_read_committed=aborted is not None,
        with_headers=with_headers,
    )
    seen = Seen(next_offset=start_offset)
    for answer in answers:
        for decoded in decoder.decode(memoryview(answer), aborted or ()):
            seen.take(decoded)
            assert decoder.next_offset == decoded.next_offset
    assert decoder.next_offset == seen.next_offset
    return seen


def as_records(columns: pa.RecordBatch) -> list[Record]:
    """Rows as the plain reader gives them."""
    names = columns.schema.names
    none = [None] * columns.num_rows
    times_us = columns.column("timestamp").cast(pa.int64()).to_pylist()
    headers = columns.column("headers").to_pylist() if "headers" in names else none
    assert [] not in headers, "no headers are null, not an empty list"
    return [
        Record(offset, time_us // 1_000, key, value, [(h["key"], h["value"]) for h in own or ()])
        for offset, time_us, key, value, own in zip(
            columns.column("offset").to_pylist(),
            times_us,
            columns.column("key").to_pylist(),
            columns.column("value").to_pylist(),
            headers,
            strict=True,
        )
    ]


def plainly(view: bytes | bytearray) -> list[Record]:
    """The same bytes through the reader that takes one record after the other."""
    return [record for position, _ in batches(view) for record in iterate(view, position)]


def with_header(batch: bytes | bytearray, **fields: int) -> bytearray:
    """The same batch with other header fields and the right checksum."""
    header = BatchHeader._make(HEADER.unpack_from(batch))._replace(**fields)
    changed = bytearray(HEADER.pack(*header)) + batch[HEADER_BYTES:]
    renew_crc(changed)
    return changed


def record_columns(records: Iterable[NewRecord]) -> pa.RecordBatch:
    """What a sink would be given for these records."""
    rows = list(records)
    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    return pa.RecordBatch.from_pydict(
        {
            "key": pa.array([each.key for each in rows], pa.binary()),
            "value": pa.array([each.value for each in rows], pa.binary()),
            "headers": pa.array(
                [[{"key": k, "value": v} for k, v in each.headers] for each in rows],
                pa.list_(header),
            ),
            "timestamp": pa.array([each.timestamp_ms for each in rows], pa.timestamp("ms", "UTC")),
        }
    )
