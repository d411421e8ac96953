"""Bytes of an enemy: they are refused as malformed, nothing worse, and they cost no memory."""

from __future__ import annotations

import tracemalloc
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.core.wire.any_message import full
from tidelog.core.wire.codec import MalformedMessage, decode, encode
from tidelog.core.wire.decoder import ITEMS_MAX
from tidelog.core.wire.headers import read_request_header
from tidelog.core.wire.messages import MESSAGES
from tidelog.core.wire.messages.api_00_produce import ProduceRequest
from tidelog.core.wire.messages.api_03_metadata import MetadataRequest
from tidelog.core.wire.messages.api_20_delete_topics import DeleteTopicsRequest
from tidelog.core.wire.schema import Message
from tidelog.core.wire.varint import unsigned_varint

ALL = [
    (message, version)
    for pair in MESSAGES.values()
    for message in pair
    for version in message.versions
]
IDS = [f"{message.__name__}-v{version}" for message, version in ALL]
LENGTHS = (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x0f", b"\x80\x00\x00\x00", b"\xff\xff\xff\xfe")


def read(message: type[Message], version: int, data: bytes | bytearray) -> Any:
    """The message, or None where it was refused as it should be."""
    try:
        return decode(message, memoryview(data), version)
    except MalformedMessage:
        return None


def mutated(data: bytes, random: Random) -> bytearray:
    """One to four bytes changed, hostile lengths written over others, or a piece cut out."""
    changed = bytearray(data)
    for _ in range(random.randrange(1, 5)):
        position = random.randrange(len(changed) or 1)
        match random.randrange(4):
            case 0:
                changed[position : position + 1] = bytes([random.randrange(256)])
            case 1:
                length = random.choice(LENGTHS)
                changed[position : position + len(length)] = length
            case 2:
                del changed[position : position + random.randrange(1, 9)]
            case _:
                changed[position:position] = random.randbytes(random.randrange(1, 9))
    return changed


@pytest.mark.parametrize(("message", "version"), ALL, ids=IDS)
def test_a_full_message_survives_the_way_through_its_bytes(
    message: type[Message], version: int
) -> None:
    instance = full(message, version)

    assert read(message, version, encode(instance, version)) == instance


@pytest.mark.parametrize(("message", "version"), ALL, ids=IDS)
def test_a_message_cut_short_is_refused(message: type[Message], version: int) -> None:
    data = encode(full(message, version), version)

    for size in range(len(data)):
        assert read(message, version, data[:size]) is None, size


@pytest.mark.parametrize(("message", "version"), ALL, ids=IDS)
def test_a_mutated_message_is_read_or_refused_but_never_breaks_the_reader(
    message: type[Message], version: int
) -> None:
    fuzz(message, version, rounds=60)


@pytest.mark.long
@pytest.mark.parametrize(("message", "version"), ALL, ids=IDS)
def test_many_mutated_messages_never_break_the_reader(message: type[Message], version: int) -> None:
    fuzz(message, version, rounds=3_000)


def fuzz(message: type[Message], version: int, *, rounds: int) -> None:
    random = Random(f"{message.__name__} {version}")
    data = encode(full(message, version), version)
    for _ in range(rounds):
        changed = mutated(data, random)
        instance = read(message, version, changed)
        if instance is not None:
            again = encode(instance, version)
            assert read(message, version, again) == instance, changed.hex()


@given(st.binary(max_size=40))
def test_any_bytes_are_a_request_header_or_refused(data: bytes) -> None:
    try:
        header = read_request_header(memoryview(data))
    except MalformedMessage:
        return
    assert 10 <= header.body_position <= len(data)


COUNT = (2**31 - 1).to_bytes(4)
COMPACT_COUNT = unsigned_varint(2**31)
HOSTILE: list[tuple[type[Message], int, bytes]] = [
    (MetadataRequest, 1, COUNT),
    (MetadataRequest, 13, COMPACT_COUNT),
    (MetadataRequest, 13, unsigned_varint(2**32 - 1)),
    (ProduceRequest, 3, b"\xff\xff\x00\x01\x00\x00\x00\x01" + COUNT),
    (ProduceRequest, 13, b"\x00\x00\x01\x00\x00\x00\x01" + COMPACT_COUNT),
    (DeleteTopicsRequest, 1, COUNT),
    (DeleteTopicsRequest, 5, COMPACT_COUNT),
]


@pytest.mark.parametrize(("message", "version", "data"), HOSTILE)
def test_a_hostile_count_allocates_nothing(
    message: type[Message], version: int, data: bytes
) -> None:
    """A few bytes promise two thousand million items; so does the same in a long frame."""
    for padding in (0, 20, 1_000_000):
        frame = memoryview(data + bytes(padding))
        read(message, version, data)  # the decoder itself is made once

        tracemalloc.start()
        with pytest.raises(MalformedMessage, match="items"):
            decode(message, frame, version)
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()

        assert peak_bytes < 10_000


def test_a_hostile_length_allocates_nothing() -> None:
    head = b"\xff\xff\x00\x01\x00\x00\x00\x01" + (1).to_bytes(4) + b"\x00\x01t" + (1).to_bytes(4)
    frame = memoryview(head + (0).to_bytes(4) + COUNT + bytes(1_000_000))
    with pytest.raises(MalformedMessage):
        decode(ProduceRequest, frame, 3)

    tracemalloc.start()
    with pytest.raises(MalformedMessage, match="records has the length 2147483647"):
        decode(ProduceRequest, frame, 3)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak_bytes < 10_000


def test_a_frame_full_of_the_smallest_items_is_refused_before_it_is_unfolded() -> None:
    """Items that really are there still cost many times their bytes: their number has an end."""
    too_many = unsigned_varint(ITEMS_MAX + 2) + b"\x01" * (ITEMS_MAX + 1) + bytes(5)
    view = memoryview(too_many)
    read(DeleteTopicsRequest, 5, b"")

    tracemalloc.start()
    with pytest.raises(MalformedMessage, match=f"{ITEMS_MAX + 1} items"):
        decode(DeleteTopicsRequest, view, 5)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak_bytes < 10_000


def test_the_most_items_allowed_are_read() -> None:
    data = unsigned_varint(ITEMS_MAX + 1) + b"\x01" * ITEMS_MAX + bytes(5)

    assert len(decode(DeleteTopicsRequest, memoryview(data), 5).topic_names) == ITEMS_MAX


def test_a_frame_of_endless_unknown_tags_is_read_once_and_refused() -> None:
    """Four thousand million tags are promised, a thousand come: the end of the bytes ends it."""
    all_topics, no_flags = b"\x00", bytes(2)
    data = all_topics + no_flags + unsigned_varint(2**32 - 1) + b"\x63\x00" * 1_000

    with pytest.raises(MalformedMessage, match="ends too early"):
        decode(MetadataRequest, memoryview(data), 13)
