"""Which task reads what, by tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.core.model.ids import TopicPartition
from tidelog.spark.source.slices import OffsetSlice, limit_offsets, make_slices, open_slices

A, B, C = (TopicPartition("orders", index) for index in range(3))


def cut(
    start: dict[TopicPartition, int],
    end: dict[TopicPartition, int],
    partitions_min: int | None = None,
    partition_records_max: int | None = None,
) -> list[OffsetSlice]:
    return make_slices(
        start,
        end,
        partitions_min=partitions_min,
        partition_records_max=partition_records_max,
    )


def test_a_partition_is_a_slice_and_an_empty_one_is_none() -> None:
    assert cut({A: 0, B: 5, C: 7}, {A: 10, B: 5, C: 9}) == [
        OffsetSlice(A, 0, 10),
        OffsetSlice(C, 7, 9),
    ]
    assert cut({A: 3}, {A: 3}) == []
    assert cut({}, {}) == []


def test_a_range_that_went_backwards_is_no_slice() -> None:
    assert cut({A: 9}, {A: 3}) == []


@pytest.mark.parametrize(
    ("sizes", "partitions_min", "expected"),
    [
        # Enough partitions already: one slice each.
        ({A: 100, B: 100}, 2, [(A, 0, 100), (B, 0, 100)]),
        # Even parts.
        ({A: 100}, 4, [(A, 0, 25), (A, 25, 50), (A, 50, 75), (A, 75, 100)]),
        # What does not divide goes to the later ones.
        ({A: 10}, 3, [(A, 0, 3), (A, 3, 6), (A, 6, 10)]),
        # Large ones are cut, small ones stay whole.
        ({A: 1, B: 1_000}, 4, [(A, 0, 1), (B, 0, 333), (B, 333, 666), (B, 666, 1_000)]),
        # No more slices than offsets.
        ({A: 2}, 5, [(A, 0, 1), (A, 1, 2)]),
    ],
)
def test_min_partitions_cuts_in_proportion(
    sizes: dict[TopicPartition, int],
    partitions_min: int,
    expected: list[tuple[TopicPartition, int, int]],
) -> None:
    found = cut(dict.fromkeys(sizes, 0), sizes, partitions_min)
    assert [(each.partition, each.start, each.end) for each in found] == expected


def test_max_records_per_partition_bounds_every_slice() -> None:
    found = cut({A: 0, B: 10}, {A: 25, B: 15}, partition_records_max=10)
    assert [(each.partition, each.start, each.end) for each in found] == [
        (A, 0, 8),
        (A, 8, 16),
        (A, 16, 25),
        (B, 10, 15),
    ]


def test_open_ends_are_those_of_a_partitions_first_and_last_slice() -> None:
    """Also of a partition that has nothing yet: a later action may find something there."""
    found = [OffsetSlice(A, 0, 5), OffsetSlice(A, 5, 9), OffsetSlice(B, 3, 4)]
    start = {A: 0, B: 3, C: 8}
    assert open_slices(found, start, open_starts={A, C}, open_ends={A, C}) == [
        OffsetSlice(A, 0, 5, is_start_open=True),
        OffsetSlice(A, 5, 9, is_end_open=True),
        OffsetSlice(B, 3, 4),
        OffsetSlice(C, 8, 8, is_start_open=True, is_end_open=True),
    ]
    assert open_slices(found, start, open_starts=set(), open_ends=set()) == found


@given(
    st.dictionaries(
        st.sampled_from([A, B, C]), st.tuples(st.integers(0, 10**6), st.integers(0, 10**6))
    ),
    st.integers(1, 40),
    st.one_of(st.none(), st.integers(1, 10**5)),
)
def test_slices_cover_every_offset_once(
    ranges: dict[TopicPartition, tuple[int, int]], partitions_min: int, most: int | None
) -> None:
    start = {each: first for each, (first, _) in ranges.items()}
    end = {each: first + size for each, (first, size) in ranges.items()}
    most = None if most is None else max(most, 10**4)
    found = cut(start, end, partitions_min, most)
    for partition in ranges:
        mine = [each for each in found if each.partition == partition]
        edges = [start[partition], *(each.end for each in mine)]
        assert [each.start for each in mine] == edges[:-1] and edges[-1] == end[partition]
        assert all(len(each) > 0 for each in mine)
        assert most is None or all(len(each) <= most for each in mine)


@pytest.mark.parametrize(
    ("start", "latest", "most", "expected"),
    [
        ({A: 0, B: 0}, {A: 10, B: 10}, 100, {A: 10, B: 10}),
        ({A: 0, B: 0}, {A: 100, B: 300}, 40, {A: 10, B: 30}),
        ({A: 50}, {A: 100}, 20, {A: 70}),
        # None starves.
        ({A: 0, B: 0}, {A: 1, B: 1_000}, 10, {A: 1, B: 9}),
        # What has nothing new stays where it is.
        ({A: 5, B: 0}, {A: 5, B: 100}, 10, {A: 5, B: 10}),
        # A log that was cut is not rate limited; that is reported elsewhere.
        ({A: 50, B: 0}, {A: 20, B: 100}, 10, {A: 20, B: 10}),
    ],
)
def test_max_offsets_per_trigger_is_shared_in_proportion(
    start: dict[TopicPartition, int],
    latest: dict[TopicPartition, int],
    most: int,
    expected: dict[TopicPartition, int],
) -> None:
    assert limit_offsets(start, latest, offsets_max=most) == expected


@given(
    st.dictionaries(
        st.sampled_from([A, B, C]),
        st.tuples(st.integers(0, 10**12), st.integers(0, 10**12)),
        min_size=1,
    ),
    st.integers(1, 10**6),
)
def test_a_limited_stream_always_gets_to_its_end(
    ranges: dict[TopicPartition, tuple[int, int]], most: int
) -> None:
    start = {each: first for each, (first, _) in ranges.items()}
    latest = {each: first + size for each, (first, size) in ranges.items()}
    end = limit_offsets(start, latest, offsets_max=most)
    taken = {each: end[each] - start[each] for each in ranges}
    assert all(0 <= taken[each] <= latest[each] - start[each] for each in ranges)
    assert sum(taken.values()) <= max(most, 0) + len(ranges)
    assert all(taken[each] > 0 for each in ranges if latest[each] > start[each])
