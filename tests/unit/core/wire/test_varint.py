"""Variable-length integers at their edges."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.core.wire.malformed import MalformedMessage
from tidelog.core.wire.varint import (
    read_unsigned_varint,
    read_varint,
    read_varlong,
    unsigned_varint,
    varint,
    varlong,
)

UNSIGNED = [
    (0, "00"),
    (1, "01"),
    (127, "7f"),
    (128, "8001"),
    (300, "ac02"),
    (2**14 - 1, "ff7f"),
    (2**14, "808001"),
    (2**31 - 1, "ffffffff07"),
    (2**32 - 1, "ffffffff0f"),
]
SIGNED = [
    (0, "00"),
    (-1, "01"),
    (1, "02"),
    (-64, "7f"),
    (64, "8001"),
    (2**31 - 1, "feffffff0f"),
    (-(2**31), "ffffffff0f"),
]
LONG = [
    *SIGNED,
    (2**31, "8080808010"),
    (2**63 - 1, "feffffffffffffffff01"),
    (-(2**63), "ffffffffffffffffff01"),
]


@pytest.mark.parametrize(("value", "hexadecimal"), UNSIGNED)
def test_an_unsigned_varint_has_seven_bits_per_byte(value: int, hexadecimal: str) -> None:
    data = bytes.fromhex(hexadecimal)

    assert unsigned_varint(value) == data
    assert read_unsigned_varint(b"\xff" + data + b"\xff", 1) == (value, 1 + len(data))


@pytest.mark.parametrize(("value", "hexadecimal"), SIGNED)
def test_a_varint_is_zigzag_coded(value: int, hexadecimal: str) -> None:
    data = bytes.fromhex(hexadecimal)

    assert varint(value) == data
    assert read_varint(data, 0) == (value, len(data))


@pytest.mark.parametrize(("value", "hexadecimal"), LONG)
def test_a_varlong_is_zigzag_coded(value: int, hexadecimal: str) -> None:
    data = bytes.fromhex(hexadecimal)

    assert varlong(value) == data
    assert read_varlong(data, 0) == (value, len(data))


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_varlong_is_read_as_it_was_written(value: int) -> None:
    assert read_varlong(varlong(value), 0)[0] == value


@pytest.mark.parametrize(
    ("hexadecimal", "reason"),
    [
        ("", "ends too early"),
        ("80", "ends too early"),
        ("ffffffff", "ends too early"),
        ("ffffffffff", "longer than 5 bytes"),
        ("808080808001", "longer than 5 bytes"),
        ("ffffffff10", "too large"),
    ],
)
def test_a_bad_varint_is_refused(hexadecimal: str, reason: str) -> None:
    with pytest.raises(MalformedMessage, match=reason):
        read_unsigned_varint(bytes.fromhex(hexadecimal), 0)


def test_a_varlong_of_more_than_64_bits_is_refused() -> None:
    with pytest.raises(MalformedMessage, match="too large"):
        read_varlong(b"\xff" * 9 + b"\x02", 0)


@pytest.mark.parametrize(
    ("write", "value"),
    [
        (unsigned_varint, -1),
        (unsigned_varint, 2**32),
        (varint, 2**31),
        (varint, -(2**31) - 1),
        (varlong, 2**63),
        (varlong, -(2**63) - 1),
    ],
)
def test_a_number_that_does_not_fit_is_not_written(
    write: Callable[[int], bytes], value: int
) -> None:
    with pytest.raises(ValueError, match="bit number"):
        write(value)
