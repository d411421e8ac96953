"""Whatever way along the lengths is taken, it leads to the same starts."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from tidelog.core.wire.varint import varint
from tidelog.spark.columns import parallel_walk
from tidelog.spark.columns.parallel_walk import BatchSection
from tidelog.spark.columns.record_starts import record_starts
from tidelog.spark.columns.varints import DamagedSection

Sizes = list[list[int]]

EQUAL: Sizes = [[100] * 300]
STEPS: Sizes = [[20] * 64 + [21] * 1_000 + [22] * 5 + [20] * 40]
GROWING: Sizes = [[*range(6, 500)]]
LARGE: Sizes = [[20_000, 6, 20_000, 6, 2**21]]
HUGE_RUN: Sizes = [[17_000] * 40]
ALTERNATING: Sizes = [[10, 11] * 100, [70, 7] * 50]
RANDOM: Sizes = [[Random(5).randrange(6, 300) for _ in range(700)]]
EMPTY: Sizes = [[], [9], [], [9, 9, 9, 9], []]
MANY: Sizes = [[Random(seed).randrange(6, 90) for _ in range(seed % 40)] for seed in range(500)]
MANY_EQUAL: Sizes = [[50] * 90] * 200
ONE_IS_LONG: Sizes = [*[[8]] * 120, [8, 9] * 300, *[[7] * 3] * 10]


def laid(batches: Sizes, *, between: int = 61) -> tuple[np.ndarray, list[BatchSection], list[int]]:
    """Records of these sizes, with other bytes between the batches; where they truly begin."""
    data, sections, starts = bytearray(), [], []
    for sizes in batches:
        data += b"\xfe" * between
        first = len(data)
        for size in sizes:
            starts.append(len(data))
            data += varint(size) + b"\x01" * size
        sections.append(BatchSection(first, len(data), len(sizes)))
    return np.frombuffer(bytes(data), dtype=np.uint8), sections, starts


SHAPES = {
    name: shape
    for name, shape in list(globals().items())
    if name.isupper() and isinstance(shape, list)
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_the_starts_are_found(shape: Sizes) -> None:
    data, sections, starts = laid(shape)

    assert record_starts(data, sections).tolist() == starts


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("walkers_min", [1, 10**9])
def test_side_by_side_or_one_by_one(
    shape: Sizes, walkers_min: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel_walk, "_WALKERS_MIN", walkers_min)
    data, sections, starts = laid(shape)

    assert record_starts(data, sections).tolist() == starts


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("walkers_min", [1, 96, 10**9])
@pytest.mark.parametrize("change", [-1, 1])
def test_a_wrong_count_is_refused(
    shape: Sizes, walkers_min: int, change: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel_walk, "_WALKERS_MIN", walkers_min)
    data, sections, _ = laid(shape)
    at = len(sections) // 2
    sections[at] = sections[at]._replace(records_count=sections[at].records_count + change)

    with pytest.raises(DamagedSection) as refusal:
        record_starts(data, sections)
    assert refusal.value.index == at


@pytest.mark.parametrize("walkers_min", [1, 10**9])
@pytest.mark.parametrize(
    "length",
    [
        pytest.param(varint(93), id="longer"),
        pytest.param(varint(1_000), id="far longer"),
        pytest.param(varint(2**31 - 1), id="the longest"),
        pytest.param(b"\xff" * 6, id="no end"),
    ],
)
def test_a_wrong_length_is_refused(
    length: bytes, walkers_min: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel_walk, "_WALKERS_MIN", walkers_min)
    data, sections, starts = laid([[90] * 5, [90] * 5, [90] * 5])
    damaged = bytearray(data.tobytes())
    damaged[starts[9] : starts[9] + len(length)] = length

    with pytest.raises(DamagedSection) as refusal:
        record_starts(np.frombuffer(damaged, dtype=np.uint8), sections)
    assert refusal.value.index == 1


def test_a_count_that_cannot_be_is_refused_before_anything_is_reserved_for_it() -> None:
    data, sections, _ = laid([[10] * 3])
    for count in (-1, 2**31 - 1):
        with pytest.raises(DamagedSection, match=f"{count} records"):
            record_starts(data, [sections[0]._replace(records_count=count)])
