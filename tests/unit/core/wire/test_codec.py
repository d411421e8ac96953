"""Generated codecs at the edges of every kind, as tables of bytes."""

from __future__ import annotations

from typing import Any

import pytest

from tidelog.core.wire.codec import MalformedMessage, decode, encode
from tidelog.core.wire.schema import (
    Message,
    Struct,
    array,
    boolean,
    bytes_,
    float64,
    int8,
    int16,
    int32,
    int64,
    nested,
    record_bytes,
    string,
    uint16,
    uint32,
    uuid,
)

CLASSIC, FLEXIBLE = 0, 1


class Inner(Struct):
    number: int = int16()
    word: str = string()


class Fixed(Message, versions="0-1", flexible_from=1):
    yes: bool = boolean()
    tiny: int = int8()
    small: int = int16()
    port: int = uint16()
    middle: int = int32()
    natural: int = uint32()
    large: int = int64()
    real: float = float64()
    identity: bytes = uuid()


class Text(Message, versions="0-1", flexible_from=1):
    value: str = string()


class MaybeText(Message, versions="0-1", flexible_from=1):
    value: str | None = string(nullable="0+", default=None)


class Blob(Message, versions="0-1", flexible_from=1):
    value: bytes | memoryview = bytes_()


class MaybeBlob(Message, versions="0-1", flexible_from=1):
    value: bytes | memoryview | None = record_bytes(nullable="0+", default=None)


class Numbers(Message, versions="0-1", flexible_from=1):
    value: list[int] = array(int32)


class MaybeNumbers(Message, versions="0-1", flexible_from=1):
    value: list[int] | None = array(int16, nullable="0+", default=None)


class Identities(Message, versions="0-1", flexible_from=1):
    value: list[bytes] = array(uuid)


class Words(Message, versions="0-1", flexible_from=1):
    value: list[str] = array(string)


class Structs(Message, versions="0-1", flexible_from=1):
    value: list[Inner] = array(Inner)


class OneStruct(Message, versions="0-1", flexible_from=1):
    value: Inner = nested(Inner)


class MaybeStruct(Message, versions="0-1", flexible_from=1):
    value: Inner | None = nested(Inner, nullable="0+", default=None)


class Tagged(Message, versions="0-2", flexible_from=1):
    number: int = int8()
    limit: int = int16("1+", tag=1, default=7)
    name: str | None = string("1+", nullable="1+", default=None, tag=0)
    inner: Inner = nested(Inner, "2+", tag=130)


class Aged(Message, versions="0-4", flexible_from=None):
    always: int = int8()
    young: int = int8("0-1")
    old: int = int8("3+", default=5)
    hint: int = int8("3+", ignorable=True)
    names: list[str] = array(string, "3+")
    inner: Inner = nested(Inner, "3+")
    nullable_late: str | None = string(nullable="2+")


ROWS: list[tuple[Message, int, str]] = [
    (
        Fixed(
            yes=True, tiny=-1, small=2, port=65535, middle=-2, natural=2**32 - 1, large=3, real=0.5
        ),
        CLASSIC,
        "01 ff 0002 ffff fffffffe ffffffff 0000000000000003 3fe0000000000000" + "00" * 16,
    ),
    (Fixed(identity=b"\xab" * 16), FLEXIBLE, "00" * 30 + "ab" * 16 + "00"),
    (Text(value=""), CLASSIC, "0000"),
    (Text(value="é"), CLASSIC, "0002 c3a9"),
    (Text(value=""), FLEXIBLE, "01 00"),
    (Text(value="a" * 126), FLEXIBLE, "7f" + "61" * 126 + "00"),
    (Text(value="a" * 127), FLEXIBLE, "8001" + "61" * 127 + "00"),
    (Text(value="a" * 32767), CLASSIC, "7fff" + "61" * 32767),
    (Text(value="a" * 32767), FLEXIBLE, "808002" + "61" * 32767 + "00"),
    (MaybeText(value=None), CLASSIC, "ffff"),
    (MaybeText(value=None), FLEXIBLE, "00 00"),
    (MaybeText(value=""), FLEXIBLE, "01 00"),
    (Blob(value=b""), CLASSIC, "00000000"),
    (Blob(value=b"xy"), CLASSIC, "00000002 7879"),
    (Blob(value=b"xy"), FLEXIBLE, "03 7879 00"),
    (MaybeBlob(value=None), CLASSIC, "ffffffff"),
    (MaybeBlob(value=None), FLEXIBLE, "00 00"),
    (MaybeBlob(value=b""), FLEXIBLE, "01 00"),
    (Numbers(value=[]), CLASSIC, "00000000"),
    (Numbers(value=[1, -1]), CLASSIC, "00000002 00000001 ffffffff"),
    (Numbers(value=[1, -1]), FLEXIBLE, "03 00000001 ffffffff 00"),
    (Numbers(value=[9] * 7), FLEXIBLE, "08" + "00000009" * 7 + "00"),
    (Numbers(value=[9] * 8), FLEXIBLE, "09" + "00000009" * 8 + "00"),
    (Numbers(value=[9] * 200), FLEXIBLE, "c901" + "00000009" * 200 + "00"),
    (MaybeNumbers(value=None), CLASSIC, "ffffffff"),
    (MaybeNumbers(value=None), FLEXIBLE, "00 00"),
    (MaybeNumbers(value=[]), FLEXIBLE, "01 00"),
    (Identities(value=[b"\x01" * 16, b"\x02" * 16]), FLEXIBLE, "03" + "01" * 16 + "02" * 16 + "00"),
    (Words(value=["a", ""]), CLASSIC, "00000002 0001 61 0000"),
    (Words(value=["a", ""]), FLEXIBLE, "03 02 61 01 00"),
    (Structs(value=[Inner(number=5, word="w")]), CLASSIC, "00000001 0005 0001 77"),
    (Structs(value=[Inner(number=5, word="w")]), FLEXIBLE, "02 0005 02 77 00 00"),
    (OneStruct(value=Inner(number=5, word="w")), CLASSIC, "0005 0001 77"),
    (OneStruct(value=Inner(number=5, word="w")), FLEXIBLE, "0005 02 77 00 00"),
    (MaybeStruct(value=None), FLEXIBLE, "ff 00"),
    (MaybeStruct(value=Inner(number=5)), FLEXIBLE, "01 0005 01 00 00"),
    (Tagged(number=3), CLASSIC, "03"),
    (Tagged(number=3), 1, "03 00"),
    (Tagged(number=3, limit=8), 1, "03 01 01 02 0008"),
    (Tagged(number=3, limit=8, name="n"), 1, "03 02 00 02 026e 01 02 0008"),
    (Tagged(inner=Inner(word="w")), 2, "00 01 8201 05 0000 02 77 00"),
]


def row_name(value: Any) -> str | None:
    if isinstance(value, Message):
        return type(value).__name__
    return value[:12].strip() if isinstance(value, str) else None


@pytest.mark.parametrize(("message", "version", "hexadecimal"), ROWS, ids=row_name)
def test_a_message_is_written_and_read_as_its_bytes(
    message: Message, version: int, hexadecimal: str
) -> None:
    data = bytes.fromhex(hexadecimal)

    assert encode(message, version) == data
    assert decode(type(message), memoryview(data), version) == message


@pytest.mark.parametrize(("message", "version", "hexadecimal"), ROWS, ids=row_name)
def test_a_message_may_begin_later_in_its_view_but_end_earlier_only_where_allowed(
    message: Message, version: int, hexadecimal: str
) -> None:
    data = bytes.fromhex(hexadecimal)

    assert decode(type(message), memoryview(b"12345" + data), version, 5) == message
    with pytest.raises(MalformedMessage, match="1 bytes are left"):
        decode(type(message), memoryview(data + b"\0"), version)
    longer = memoryview(data + b"\1\0")
    assert decode(type(message), longer, version, rest_allowed=True) == message


@pytest.mark.parametrize(("message", "version", "hexadecimal"), ROWS, ids=row_name)
def test_a_message_that_is_cut_anywhere_is_refused(
    message: Message, version: int, hexadecimal: str
) -> None:
    data = bytes.fromhex(hexadecimal)

    for size in range(0, len(data), 1 + len(data) // 300):
        with pytest.raises(MalformedMessage):
            decode(type(message), memoryview(data)[:size], version)


BAD: list[tuple[type[Message], int, str, str]] = [
    (Text, CLASSIC, "ffff", "Text.value may not be null"),
    (Text, CLASSIC, "fffe", "Text.value has the length -2"),
    (Text, CLASSIC, "0005 61", "length 5, with 1 bytes left"),
    (Text, CLASSIC, "0001 ff", "bad string"),
    (Text, CLASSIC, "0003 eda080", "bad string"),
    (Text, FLEXIBLE, "00 00", "Text.value may not be null"),
    (Text, FLEXIBLE, "818002" + "61" * 32768 + "00", "length 32768"),
    (Text, FLEXIBLE, "ffffffff0f 00", "length 4294967294"),
    (Text, FLEXIBLE, "ffffffffff 00", "longer than 5 bytes"),
    (MaybeText, CLASSIC, "fffe", "length -2"),
    (Blob, CLASSIC, "ffffffff", "may not be null"),
    (Blob, CLASSIC, "80000000", "length -2147483648"),
    (Blob, CLASSIC, "7fffffff", "length 2147483647"),
    (MaybeBlob, CLASSIC, "fffffffe", "length -2"),
    (MaybeBlob, FLEXIBLE, "09 00", "length 8"),
    (Numbers, CLASSIC, "ffffffff", "may not be null"),
    (Numbers, CLASSIC, "00000002 00000001 ffffff", "2 items, with 7 bytes left"),
    (Numbers, FLEXIBLE, "00 00", "may not be null"),
    (MaybeNumbers, CLASSIC, "fffffffe", "-2 items"),
    (Words, CLASSIC, "7fffffff", "2147483647 items"),
    (Words, CLASSIC, "00000001 ffff", "Words.value may not be null"),
    (Structs, CLASSIC, "00000002 0000 0000 0000", "2 items, with 6 bytes left"),
    (Structs, FLEXIBLE, "03 0000 01 00 0000 01", "2 items, with 7 bytes left"),
    (Structs, CLASSIC, "00000001 0000 ffff", "Structs.value.word may not be null"),
    (Tagged, 1, "00 01 00", "ends too early"),
    (Tagged, 1, "00 01 05 09 00", "tagged field 5 of Tagged has a wrong size"),
    (Tagged, 1, "00 01 01 01 0008", "tagged field 1 of Tagged has a wrong size"),
    (Tagged, 1, "00 01 01 03 0008 00", "tagged field 1 of Tagged has a wrong size"),
    (Text, FLEXIBLE, "01 01 09 7f 00", "unknown tagged field 9 is longer"),
    (Text, FLEXIBLE, "01 ffffffff0f 0900", "ends too early"),
]


@pytest.mark.parametrize(("message", "version", "hexadecimal", "reason"), BAD)
def test_bad_bytes_are_refused_with_the_field_and_the_reason(
    message: type[Message], version: int, hexadecimal: str, reason: str
) -> None:
    with pytest.raises(MalformedMessage, match=reason):
        decode(message, memoryview(bytes.fromhex(hexadecimal)), version)


@pytest.mark.parametrize(
    ("hexadecimal", "expected"),
    [
        ("03 01 05 00", Tagged(number=3)),  # an unknown tag without content
        ("03 02 05 02 ffff 7f 00", Tagged(number=3)),
        ("03 02 05 01 ff 01 02 0008", Tagged(number=3, limit=8)),
        ("03 02 01 02 0008 00 02 026e", Tagged(number=3, limit=8, name="n")),  # out of order
        ("03 02 01 02 0008 01 02 0009", Tagged(number=3, limit=9)),  # twice: the last one holds
        ("03 01 01 02 0007", Tagged(number=3)),  # a default that was sent all the same
        ("03 01 00 01 00", Tagged(number=3)),
        ("03 8001" + "0500" * 128, Tagged(number=3)),
    ],
)
def test_unknown_tags_are_skipped_and_known_ones_may_come_in_any_order(
    hexadecimal: str, expected: Tagged
) -> None:
    assert decode(Tagged, memoryview(bytes.fromhex(hexadecimal)), 1) == expected


def test_a_tagged_field_of_a_later_version_is_unknown_to_an_earlier_one() -> None:
    data = encode(Tagged(inner=Inner(word="w")), 2)

    assert decode(Tagged, memoryview(data), 1) == Tagged()


def test_bytes_are_slices_of_the_view_and_not_copies() -> None:
    frame = bytearray(encode(Blob(value=b"abc"), CLASSIC))
    message = decode(Blob, memoryview(frame), CLASSIC)
    frame[-1] = ord("z")

    assert isinstance(message.value, memoryview)
    assert bytes(message.value) == b"abz"


def test_fields_of_other_versions_have_their_defaults() -> None:
    assert decode(Aged, memoryview(b"\x01\x02\0\0"), 1) == Aged(always=1, young=2)
    assert decode(Aged, memoryview(b"\x01\0\0"), 2) == Aged(always=1)


@pytest.mark.parametrize(
    ("message", "version", "reason"),
    [
        (Aged(young=1), 2, "Aged.young is set but does not exist in version 2"),
        (Aged(old=0), 2, "Aged.old"),
        (Aged(names=["a"]), 2, "Aged.names"),
        (Aged(inner=Inner(word="a")), 2, "Aged.inner"),
        (Aged(nullable_late=None), 1, "Aged v1 cannot be encoded"),
        (Aged(always=128), 2, "Aged v2 cannot be encoded"),
        (Aged(), 5, "Aged has no version 5"),
        (Aged(), -1, "Aged has no version -1"),
        (Tagged(limit=8), 0, "Tagged.limit"),
        (Text(value=None), CLASSIC, "Text v0 cannot be encoded"),  # type: ignore[arg-type]
        (Text(value="a" * 32768), CLASSIC, "Text v0 cannot be encoded"),
        (Text(value="a" * 32768), FLEXIBLE, "longer than 32767"),
        (Text(value="\ud800"), CLASSIC, "surrogates"),
        (Fixed(identity=b"short"), CLASSIC, "does not have 16 bytes"),
        (Identities(value=[b"short"]), FLEXIBLE, "does not have 16 bytes"),
    ],
)
def test_what_a_version_cannot_hold_is_not_encoded(
    message: Message, version: int, reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        encode(message, version)


def test_an_ignorable_field_is_silently_left_out() -> None:
    assert encode(Aged(always=1, hint=9), 2) == b"\x01\0\0"
    assert encode(Aged(nullable_late=None), 2) == b"\0\xff\xff"


def test_an_unknown_version_is_not_decoded() -> None:
    with pytest.raises(ValueError, match="no version 5"):
        decode(Aged, memoryview(b""), 5)
