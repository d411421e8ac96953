"""Sorted pairs in a file, in memory, or partly both: the answers are the same."""

from __future__ import annotations

from bisect import bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.core.storage.given import Rig
from tidelog.core.storage import offset_index, time_index
from tidelog.core.storage.sparse_index import SparseIndex

PATH = "data/logs/index"

entries = st.lists(st.tuples(st.integers(1, 40), st.integers(0, 40)), max_size=150).map(
    lambda steps: _summed(steps)
)


def _summed(steps: list[tuple[int, int]]) -> list[tuple[int, int]]:
    key, value, found = 0, 0, []
    for key_step, value_step in steps:
        key, value = key + key_step, value + value_step
        found.append((key, value))
    return found


def filled(rig: Rig, pairs: list[tuple[int, int]]) -> SparseIndex:
    index = offset_index.new(rig.disk, PATH)
    for key, value in pairs:
        index.append(key, value)
    index.check()
    return index


@given(pairs=entries, released=st.booleans(), padded=st.booleans())
def test_the_floor_is_found_in_memory_and_in_the_file(
    pairs: list[tuple[int, int]], released: bool, padded: bool
) -> None:
    rig = Rig()
    index = filled(rig, pairs)
    if released:
        index.release()
    if released and padded:
        rig.disk.open(PATH).append(bytes(80))
        index = offset_index.existing(rig.disk, PATH)
    keys = [key for key, _ in pairs]

    for key in range(-1, (keys[-1] if keys else 0) + 3, 3):
        at = bisect_right(keys, key) - 1
        assert index.floor(key) == (pairs[at] if at >= 0 else None)

    assert len(index) == len(pairs)
    assert index.final_entry() == (pairs[-1] if pairs else None)
    assert index.entries() == pairs


@given(pairs=entries, kept=st.integers(0, 150), released=st.booleans())
def test_truncated_entries_are_gone_and_others_can_follow(
    pairs: list[tuple[int, int]], kept: int, released: bool
) -> None:
    rig = Rig()
    index = filled(rig, pairs)
    if released:
        index.release()
    kept = min(kept, len(pairs))

    index.truncate(kept)
    index.append(10_000, 10_000)
    index.release()

    again = offset_index.existing(rig.disk, PATH)
    assert again.entries() == [*pairs[:kept], (10_000, 10_000)]


def test_entries_reach_the_file_in_chunks() -> None:
    rig = Rig()
    index = filled(rig, [(at, at) for at in range(1, 70)])

    assert rig.disk.open(PATH).size_bytes == 64 * offset_index.ENTRY_BYTES
    index.write_out()
    assert rig.disk.open(PATH).size_bytes == 69 * offset_index.ENTRY_BYTES


def test_a_new_index_forgets_what_the_file_held() -> None:
    rig = Rig()
    filled(rig, [(1, 1), (2, 2)]).release()

    index = offset_index.new(rig.disk, PATH)
    index.append(7, 9)
    index.release()

    assert offset_index.existing(rig.disk, PATH).entries() == [(7, 9)]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", None),
        (b"\0\0\0\x05\0\0\0\x09", None),
        (b"\0\0\0\x05\0\0\0\x09\0", "cut"),
        (b"\0\0\0\x0a\0\0\0\x09", "outside"),
        (b"\0\0\0\x05\0\0\0\x63", "outside"),
        (b"\xff\0\0\x05\0\0\0\x09", "outside"),
    ],
)
def test_what_is_wrong_with_a_file_is_told(content: bytes, complaint: str | None) -> None:
    rig = Rig()
    rig.disk.open(PATH).append(content)
    index = offset_index.existing(rig.disk, PATH)

    found = index.complaint(keys_end=10, values_end=20)

    assert (found is None) == (complaint is None)
    assert complaint is None or complaint in str(found)


def test_a_missing_file_is_told() -> None:
    index = offset_index.existing(Rig().disk, PATH)

    assert index.complaint(keys_end=10, values_end=20) == "missing"
    assert (len(index), index.floor(5), index.final_entry()) == (0, None, None)


def test_the_time_index_takes_only_larger_timestamps() -> None:
    index = time_index.new(Rig().disk, PATH)
    for timestamp_ms, offset in ((5, 1), (5, 2), (4, 3), (9, 4)):
        time_index.add(index, timestamp_ms, offset)

    assert index.entries() == [(5, 1), (9, 4)]
