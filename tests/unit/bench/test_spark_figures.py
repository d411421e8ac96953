"""Rows per second side by side: ratios of medians, and bars that are met or not."""

from __future__ import annotations

from bench.spark_figures import CONFLUENT, OURS, THEIRS, Line, Speeds

READ = Line(title="read", bar=3.0)
WRITE = Line(title="write", bar=1.5)


def speeds(line: Line, **seconds: list[float]) -> Speeds:
    found = Speeds()
    add(found, line, **seconds)
    return found


def add(found: Speeds, line: Line, **seconds: list[float]) -> None:
    for who, label in (("ours", OURS), ("theirs", THEIRS), ("confluent", CONFLUENT)):
        for took_s in seconds.get(who, []):
            found.add(line, label, records=6_000, took_s=took_s)


def test_a_ratio_is_that_of_the_medians() -> None:
    found = speeds(READ, ours=[1, 2, 60], theirs=[6, 1, 7], confluent=[3])

    assert found.ratio(READ) == 3.0
    assert found.is_met(READ)
    row = found.table().splitlines()[-1]
    for cell in ("3.00 (0.10–6.00)", "1.00 (0.86–6.00)", "2.00", "3.00x", "≥ 3x", "yes"):
        assert f" {cell} |" in row


def test_what_is_missed_is_named() -> None:
    found = speeds(READ, ours=[1], theirs=[3])
    add(found, WRITE, ours=[1], theirs=[1.4])

    assert found.summary() == "1 of 2 met; not met: write"
    assert [figure["met"] for figure in found.plain()] == [True, False]


def test_nothing_is_said_where_there_is_nothing_to_compare_with() -> None:
    found = speeds(READ, ours=[1])

    assert found.is_met(READ) is None
    assert found.summary() == "0 of 0 met"
