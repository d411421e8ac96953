"""The trace renders the same text for the same events, whatever the hash seed is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from tidelog.worlds.simulator.trace import WorldTrace, render


class Colour(Enum):
    RED = 1


class Pair(NamedTuple):
    left: int
    right: str


@dataclass(frozen=True)
class Happened:
    names: frozenset[str]
    data: bytes
    pair: Pair


def test_a_dataclass_renders_field_by_field_and_sets_are_sorted() -> None:
    event = Happened(frozenset({"b", "a", "c"}), bytes(40), Pair(1, "x"))
    assert render(event) == (
        "Happened(names={'a', 'b', 'c'}, data=0x"
        + "00" * 16
        + "..40B, pair=Pair(left=1, right='x'))"
    )


def test_an_address_in_memory_never_shows() -> None:
    assert render(object()) == "<object>"
    assert render({"key": [Colour.RED, None, (1, 2)]}) == "{'key': [RED, None, [1, 2]]}"


def test_a_digest_differs_when_one_event_differs() -> None:
    def digest(value: int) -> str:
        trace = WorldTrace(lambda: 5)
        trace.of("broker-1").emit(Pair(value, "x"))
        return trace.digest()

    assert digest(1) == digest(1)
    assert digest(1) != digest(2)


def test_lines_carry_time_source_and_event_and_the_newest_can_be_asked_for() -> None:
    trace = WorldTrace(lambda: 1_500)
    trace.emit("a", Pair(1, "x"))
    trace.emit("b", Pair(2, "y"))

    lines = list(trace.lines(newest=1))

    assert len(lines) == 1
    assert lines[0].split() == ["1.500", "ms", "b", "Pair(left=2,", "right='y')"]
    assert trace.counts() == {"Pair": 2}
