"""Markers decide, and readers skip what brokers announce: both are known, apart from each other."""

from __future__ import annotations

import pytest

from tidelog.spark.audit.transactions import (
    ABORTED,
    COMMITTED,
    OPEN,
    Decisions,
    Readers,
    TransactionMarker,
)

MARKERS = [
    TransactionMarker(10, 7, True),
    TransactionMarker(20, 7, False),
    TransactionMarker(15, 8, True),
]


@pytest.mark.parametrize(
    ("producer_id", "offset", "state"),
    [
        (7, 0, COMMITTED),
        (7, 9, COMMITTED),
        (7, 11, ABORTED),
        (7, 19, ABORTED),
        (7, 21, OPEN),
        (8, 14, COMMITTED),
        (8, 16, OPEN),
        (9, 0, OPEN),
    ],
)
def test_the_next_marker_of_the_producer_decides(producer_id: int, offset: int, state: int) -> None:
    assert Decisions(MARKERS).state(producer_id, offset) == state


def test_readers_skip_from_the_first_offset_to_the_marker() -> None:
    readers = Readers()
    readers.hear([(12, 7)])
    assert not readers.skips(7, 5, 10)
    assert not readers.skips(8, 10, 12)
    assert readers.skips(7, 12, 14)
    assert not readers.skips(8, 14, 15)
    assert readers.skips(7, 15, 20)
    readers.meets(TransactionMarker(20, 7, False))
    assert not readers.skips(7, 21, 22)


def test_what_is_announced_again_by_the_next_answer_counts_once() -> None:
    readers = Readers()
    readers.hear([(12, 7)])
    assert readers.skips(7, 12, 13)
    readers.meets(TransactionMarker(13, 7, False))
    readers.hear([(30, 7)])
    assert not readers.skips(7, 20, 21)
    assert readers.skips(7, 30, 31)
