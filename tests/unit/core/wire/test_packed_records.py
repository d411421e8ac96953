"""Records taken out of a batch and put back: the same bytes, unless a delete horizon moves them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidelog.core.wire.record_batch import crc_is_valid, read_header
from tidelog.core.wire.records import (
    NewRecord,
    build,
    iterate,
    packed_records,
    rebased,
    rebuild,
)

RECORDS = st.lists(
    st.builds(
        NewRecord,
        key=st.none() | st.binary(max_size=5),
        value=st.none() | st.binary(max_size=200),
        timestamp_ms=st.integers(0, 2**41),
        offset_delta=st.none(),
        headers=st.lists(
            st.tuples(st.sampled_from(["h", "é"]), st.none() | st.binary(max_size=3)), max_size=2
        ),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=40)
@given(RECORDS, st.integers(0, 4), st.data())
def test_what_is_left_reads_as_before_at_its_offsets(
    records: list[NewRecord], compression: int, data: st.DataObject
) -> None:
    before = build(records, base_offset=100, compression=compression, producer_id=3)
    kept = data.draw(st.lists(st.booleans(), min_size=len(records), max_size=len(records)))
    horizon_ms = data.draw(st.none() | st.integers(0, 2**41))
    header = read_header(before)
    left = [each for each, stays in zip(packed_records(before), kept, strict=True) if stays]
    if horizon_ms is not None:
        left = [rebased(each, from_ms=header.base_timestamp_ms, to_ms=horizon_ms) for each in left]

    after = rebuild(header, left, delete_horizon_ms=horizon_ms)

    found = read_header(after)
    assert crc_is_valid(after, 0, found)
    assert (found.base_offset, found.end_offset) == (header.base_offset, header.end_offset)
    assert found.delete_horizon_ms == (horizon_ms if left else None)
    wanted = [each for each, stays in zip(iterate(before), kept, strict=True) if stays]
    assert list(iterate(after)) == wanted
    if wanted:
        assert found.max_timestamp_ms == max(each.timestamp_ms for each in wanted)


@pytest.mark.parametrize("compression", range(5))
def test_an_empty_batch_has_a_header_only_and_keeps_its_largest_timestamp(compression: int) -> None:
    header = read_header(build([NewRecord(b"v", timestamp_ms=77)], compression=compression))

    empty = rebuild(header, ())

    assert len(empty) == 61
    found = read_header(empty)
    assert (found.records_count, found.compression, found.max_timestamp_ms) == (0, 0, 77)
    assert list(iterate(empty)) == []
