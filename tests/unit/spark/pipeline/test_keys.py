"""Durations are read as people and Spark write them, and nothing else is."""

from __future__ import annotations

import pytest

from tidelog.spark.pipeline.file.keys import BadDuration, duration_ms


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("500ms", 500),
        ("5s", 5_000),
        ("1.5 s", 1_500),
        ("10 minutes", 600_000),
        ("1 hour", 3_600_000),
        ("2 Days", 172_800_000),
    ],
)
def test_a_duration_is_so_many_milliseconds(text: str, milliseconds: int) -> None:
    assert duration_ms(text) == milliseconds


@pytest.mark.parametrize(
    "text", ["", "5", "s", "-1s", "5 parsecs", "0s", "0.1ms", "400 days", "1s 2s"]
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(BadDuration, match="expected"):
        duration_ms(text)
