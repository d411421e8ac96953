"""Durations as people write and read them."""

from __future__ import annotations

import pytest

from tidelog.cluster.durations import duration_ms, in_words
from tidelog.cluster.errors import ClusterUsageError


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        *(("500ms", 500), ("3s", 3_000), ("1.5s", 1_500), ("2m", 120_000), ("1h", 3_600_000)),
        *(("3", 3_000), (" 3 S ", 3_000), ("0.001s", 1), ("168h", 604_800_000)),
    ],
)
def test_a_duration_is_understood(text: str, expected_ms: int) -> None:
    assert duration_ms(text) == expected_ms


@pytest.mark.parametrize(
    "text", ["", "s", "-1s", "3 seconds", "1e3s", "nan", "0s", "0.1ms", "8h2m"]
)
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(ClusterUsageError):
        duration_ms(text)


def test_a_week_is_the_most() -> None:
    with pytest.raises(ClusterUsageError, match="7 days"):
        duration_ms("169h")


@pytest.mark.parametrize(
    ("given_ms", "words"),
    [
        *((0, "0 ms"), (950, "950 ms"), (3_000, "3 s"), (1_540, "1.5 s"), (120_000, "2 min")),
        (61_400, "1 min 1 s"),
    ],
)
def test_a_duration_in_words(given_ms: int, words: str) -> None:
    assert in_words(given_ms) == words
