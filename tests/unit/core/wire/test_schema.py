"""The language of schemas: versions, defaults, slots and equality."""

from __future__ import annotations

import pytest

from tidelog.core.wire.schema import (
    Message,
    Struct,
    array,
    boolean,
    bytes_,
    includes,
    int16,
    int32,
    nested,
    string,
    uuid,
)


class Collar(Struct):
    colour: str = string(default="red")


class Pet(Struct):
    name: str = string()
    friend: str | None = string("2+", nullable="2+", default=None)
    toys: list[int] = array(int32)
    collar: Collar = nested(Collar)
    chip: bytes = uuid()
    tail: bool = boolean(default=True)
    photo: bytes | memoryview = bytes_()


class Pets(Message, api_key=7, versions="1-4", flexible_from=3):
    pets: list[Pet] | None = array(Pet, nullable="0+", default=None)
    error_code: int = int16(default=-1)


class Single(Message, versions="2", flexible_from=None):
    pass


@pytest.mark.parametrize(
    ("versions", "inside", "outside"),
    [
        ("0+", [0, 1, 99], []),
        ("3+", [3, 4, 99], [0, 2]),
        ("0-12", [0, 12], [13]),
        ("7-12", [7, 12], [6, 13]),
        ("7", [7], [6, 8]),
        ("", [], [0, 1]),
    ],
)
def test_versions_are_written_as_in_kafkas_tables(
    versions: str, inside: list[int], outside: list[int]
) -> None:
    assert all(includes(versions, version) for version in inside)
    assert not any(includes(versions, version) for version in outside)


def test_a_message_knows_its_key_and_versions() -> None:
    assert (Pets.api_key, Pets.versions, Pets.flexible_from) == (7, range(1, 5), 3)
    assert (Single.versions, Single.flexible_from) == (range(2, 3), None)


def test_fields_have_kafkas_defaults_unless_given() -> None:
    pet = Pet(name="Rex")

    assert pet == Pet(
        name="Rex",
        friend=None,
        toys=[],
        collar=Collar(colour="red"),
        chip=bytes(16),
        tail=True,
        photo=b"",
    )
    assert Pets() == Pets(pets=None, error_code=-1)


def test_lists_and_structs_are_not_shared_between_instances() -> None:
    first, second = Pet(), Pet()
    first.toys.append(1)
    first.collar.colour = "blue"

    assert second.toys == []
    assert second.collar.colour == "red"


def test_a_given_null_is_not_taken_for_a_missing_value() -> None:
    class Loud(Struct):
        names: list[str] | None = array(string, nullable="0+")

    assert Loud().names == []
    assert Loud(names=None).names is None


def test_an_instance_has_slots_and_only_its_fields() -> None:
    with pytest.raises(AttributeError):
        Pet().nmae = "Rex"  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="nmae"):
        Pet(nmae="Rex")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Pet("Rex")  # type: ignore[call-arg]
    assert not hasattr(Pet(), "__dict__")


def test_equality_is_by_class_and_value() -> None:
    class Double(Struct):
        colour: str = string(default="red")

    assert Collar() == Collar()
    assert Collar() != Collar(colour="blue")
    assert Collar() != Double()
    with pytest.raises(TypeError):
        hash(Collar())


def test_an_instance_shows_its_fields() -> None:
    assert repr(Collar()) == "Collar(colour='red')"
