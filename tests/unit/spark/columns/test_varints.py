"""Varints of many rows are those that the wire's own functions read and write one by one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.core.wire import varint as plain
from tidelog.spark.columns.varints import (
    DamagedRow,
    read_varints,
    read_varlongs,
    varint_rows,
    varint_widths,
)

EDGES = [
    sign * 2**bits + step for bits in range(0, 63, 1) for sign in (1, -1) for step in (-1, 0, 1)
]
LONGS = [*EDGES, 2**63 - 1, -(2**63)]
INTS = [each for each in LONGS if -(2**31) <= each < 2**31]
some_longs = st.lists(
    st.integers(min_value=-(2**63), max_value=2**63 - 1) | st.sampled_from(LONGS), min_size=1
)


def as_data(encoded: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """All numbers one after the other, and where each begins."""
    starts = np.cumsum([0, *map(len, encoded)])[:-1]
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), starts.astype(np.int64)


@given(some_longs)
def test_longs_are_read_as_one_by_one(numbers: list[int]) -> None:
    encoded = [plain.varlong(number) for number in numbers]
    data, starts = as_data(encoded)
    read, after = read_varlongs(data, starts)

    assert read.tolist() == numbers
    assert after.tolist() == (starts + [len(each) for each in encoded]).tolist()


@pytest.mark.parametrize("numbers", [INTS, [0, -1, 63, -64], [64, -65, 8191, -8192], [2**31 - 1]])
def test_ints_are_read_as_one_by_one(numbers: list[int]) -> None:
    data, starts = as_data([plain.varint(number) for number in numbers])

    assert read_varints(data, starts)[0].tolist() == numbers


@given(some_longs, some_longs)
def test_columns_are_laid_out_as_if_written_one_by_one(one: list[int], other: list[int]) -> None:
    rows = min(len(one), len(other))
    columns: list[npt.NDArray[np.int64] | int]
    columns = [np.array(one[:rows]), 7, np.array(other[:rows], dtype=np.int64)]
    data, sizes = varint_rows(columns)
    expected = [
        plain.varlong(a) + b"\x07" + plain.varlong(b)
        for a, b in zip(one[:rows], other[:rows], strict=True)
    ]

    assert data.tobytes() == b"".join(expected)
    assert sizes.tolist() == [len(each) for each in expected]


def test_widths_are_those_of_the_written_numbers() -> None:
    widths = varint_widths(np.array(LONGS, dtype=np.int64)).tolist()

    assert widths == [len(plain.varlong(number)) for number in LONGS]
    assert varint_widths(np.array([0], dtype=np.int64)).tolist() == [1]


@pytest.mark.parametrize(
    "damaged",
    [
        pytest.param(b"\xff\xff\xff\xff\x1f", id="33 bits"),
        pytest.param(b"\x80\x80\x80\x80\x80\x00", id="six bytes"),
        pytest.param(b"\xff" * 12, id="no end"),
    ],
)
def test_a_number_of_more_than_32_bits_names_its_row(damaged: bytes) -> None:
    data, starts = as_data([b"\x02", b"\x80\x02", damaged, b"\x04"])

    with pytest.raises(DamagedRow) as refusal:
        read_varints(data, starts)
    assert refusal.value.index == 2


def test_a_number_of_more_than_64_bits_is_refused() -> None:
    data, starts = as_data([b"\xff" * 9 + b"\x02"])

    with pytest.raises(DamagedRow):
        read_varlongs(data, starts)


def test_a_position_beyond_the_data_goes_on_growing() -> None:
    """The caller compares it with the end of its record."""
    data, _ = as_data([b"\x02\x04"])
    _, after = read_varints(data, np.array([50], dtype=np.int64))

    assert after.tolist() == [51]
