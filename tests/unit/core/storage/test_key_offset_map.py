"""The map of a round beside a dictionary, and its bounds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidelog.core.storage.key_offset_map import ENTRY_BYTES, KeyOffsetMap


@given(st.lists(st.binary(max_size=3), max_size=80), st.floats(0.1, 0.99))
def test_it_is_a_dictionary(keys: list[bytes], load_factor: float) -> None:
    table = KeyOffsetMap(keys=len(set(keys)), memory_bytes=2**20, load_factor=load_factor)
    model: dict[bytes, int] = {}
    for offset, key in enumerate(keys):
        table.put(key, offset)
        model[key] = offset

    assert table.count == len(model)
    assert {key: table.get(key) for key in model} == model
    assert table.get(b"never written") == -1


def test_its_memory_is_bounded_by_the_setting_and_by_the_need() -> None:
    assert KeyOffsetMap(keys=10**9, memory_bytes=2**20, load_factor=0.9).size_bytes <= 2**20
    assert KeyOffsetMap(keys=10, memory_bytes=2**30, load_factor=0.9).size_bytes < 50 * ENTRY_BYTES


def test_a_full_map_says_so_and_still_takes_what_it_knows() -> None:
    table = KeyOffsetMap(keys=1_000, memory_bytes=20 * ENTRY_BYTES, load_factor=0.9)
    offset = 0
    while not table.is_full:
        table.put(b"%d" % offset, offset)
        offset += 1

    assert table.count == table.keys_max == 18
    table.put(b"3", 99)
    assert table.get(b"3") == 99
