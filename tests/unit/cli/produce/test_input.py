"""Lines become records, generated records have names of their own, and a pace is kept."""

from __future__ import annotations

import pytest

from tidelog.cli.produce.run import BadLine, Given, Pace, from_lines, generated


def test_a_line_is_a_record_without_its_end() -> None:
    lines = [b"one\n", b"two\r\n", b"\n", b"last"]
    assert [each.value for each in from_lines(lines)] == [b"one", b"two", b"", b"last"]


def test_the_key_stands_before_the_first_separator() -> None:
    found = list(from_lines([b"k:v:w\n", b":v\n"], separator=b":"))
    assert found == [Given(b"k", b"v:w"), Given(b"", b"v")]


def test_a_line_without_separator_is_named_after_those_before_it() -> None:
    records = from_lines([b"k:v\n", b"oops\n"], separator=b":")
    assert next(records) == Given(b"k", b"v")
    with pytest.raises(BadLine, match="line 2 has no ':'"):
        next(records)


def test_the_null_marker_is_null_on_both_sides() -> None:
    found = list(from_lines([b"k:NULL\n", b"NULL:v\n"], separator=b":", null_marker=b"NULL"))
    assert found == [Given(b"k", None), Given(None, b"v")]


def test_generated_values_have_the_size_and_are_all_different() -> None:
    values = [each.value for each in generated(100, size_bytes=40, run="run")]
    assert {len(value or b"") for value in values} == {40} and len(set(values)) == 100
    (short,) = generated(1, size_bytes=2, run="run")
    assert short.value == b"run-0 ", "a name is never cut"


def test_a_pace_counts_from_the_first_record() -> None:
    pace = Pace(10)
    assert pace.pause_s(0, 100.0) == 0
    assert pace.pause_s(1, 100.0) == pytest.approx(0.1)
    assert pace.pause_s(5, 100.4) == pytest.approx(0.1)
    assert pace.pause_s(5, 103.0) == 0, "what was missed is caught up"
    assert Pace(None).pause_s(1_000, 0.0) == 0
