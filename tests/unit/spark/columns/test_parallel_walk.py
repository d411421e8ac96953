"""Guesses where records begin are right, or are found out: the starts are the true ones."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest

from tidelog.core.wire.varint import varint
from tidelog.spark.columns import parallel_walk
from tidelog.spark.columns.parallel_walk import BatchSection, starts_in_parallel
from tidelog.spark.columns.record_starts import record_starts
from tidelog.spark.columns.varints import DamagedSection

RECORDS = 3_000


def record(number: int, value: bytes, *, headers: bytes = b"\0") -> bytes:
    key = b"key %08d" % number
    body = b"\0\0" + varint(number) + varint(len(key)) + key + varint(len(value)) + value + headers
    return varint(len(body)) + body


def text(number: int, random: Random) -> bytes:
    return record(number, b"v" * random.randrange(20, 300))


def zeros(number: int, random: Random) -> bytes:
    return record(number, bytes(random.randrange(20, 300)))


def noise(number: int, random: Random) -> bytes:
    return record(number, random.randbytes(random.randrange(20, 300)))


def records_as_values(number: int, random: Random) -> bytes:
    """Whoever looks into a value sees what looks like records."""
    return record(number, b"".join(text(each, random) for each in range(3)))


def with_headers(number: int, random: Random) -> bytes:
    return record(number, b"v" * random.randrange(20, 300), headers=varint(1) + b"\x02h\x02x")


def now_and_then_long(number: int, random: Random) -> bytes:
    return record(number, b"v" * (20_000 if number % 500 == 100 else random.randrange(20, 300)))


def uneven(number: int, random: Random) -> bytes:
    """A walker of the second half has many times as many records as one of the first."""
    return record(number, b"v" * (2_000 if number < RECORDS // 8 else random.randrange(3)))


KINDS = (text, zeros, noise, records_as_values, with_headers, now_and_then_long, uneven)
GUESSED = (text, now_and_then_long, uneven)


def laid(
    make: Callable[[int, Random], bytes], *counts: int
) -> tuple[bytes, list[BatchSection], list[int]]:
    """Batches of so many records, with other bytes between them, and where the records begin."""
    random = Random(7)
    data, sections, starts = bytearray(), [], []
    for count in counts:
        data += b"\xfe" * 61
        first = len(data)
        for number in range(count):
            starts.append(len(data))
            data += make(number, random)
        sections.append(BatchSection(first, len(data), count))
    return bytes(data), sections, starts


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("counts", [(RECORDS,), (1, RECORDS, 0, 2, 500), (2,) * 200])
@pytest.mark.parametrize("walker_records", [2, 20])
def test_the_true_starts_are_found(
    make: Callable[[int, Random], bytes],
    counts: tuple[int, ...],
    walker_records: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parallel_walk, "_WALKER_RECORDS", walker_records)
    data, sections, starts = laid(make, *counts)

    assert record_starts(np.frombuffer(data, dtype=np.uint8), sections).tolist() == starts


@pytest.mark.parametrize("make", GUESSED)
def test_text_is_walked_in_many_places_at_once(make: Callable[[int, Random], bytes]) -> None:
    data, sections, starts = laid(make, RECORDS, 200)

    found = starts_in_parallel(np.frombuffer(data, dtype=np.uint8), sections)

    assert found is not None
    assert [len(each) for each in found] == [RECORDS, 200]
    assert np.concatenate(found).tolist() == starts


def test_a_wrong_guess_is_found_out() -> None:
    data, sections, _ = laid(records_as_values, RECORDS)

    assert starts_in_parallel(np.frombuffer(data, dtype=np.uint8), sections) is None


@pytest.mark.parametrize("at", [0, 1, RECORDS // 2, RECORDS - 1])
@pytest.mark.parametrize("length", [varint(3), varint(400), varint(2**30), b"\xff" * 6])
def test_damage_is_damage_whatever_the_way(at: int, length: bytes) -> None:
    data, sections, starts = laid(text, 5, RECORDS, 5)
    damaged = bytearray(data)
    damaged[starts[5 + at] : starts[5 + at] + len(length)] = length

    with pytest.raises(DamagedSection) as refusal:
        record_starts(np.frombuffer(damaged, dtype=np.uint8), sections)
    assert refusal.value.index == 1
