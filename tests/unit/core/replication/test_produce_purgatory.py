"""Produce requests wait exactly until the high watermark covers what they wrote."""

from __future__ import annotations

import pytest

from tidelog.core.model.errors import ErrorCode
from tidelog.core.replication.produce_purgatory import ProducePurgatory


class Parked:
    def __init__(self) -> None:
        self.covered = 0
        self.is_done = False

    def on_covered(self) -> None:
        self.covered += 1

    def on_partition_gone(self, partition: object, code: ErrorCode) -> None:
        raise AssertionError("nobody said so")


def test_nobody_is_released_before_the_high_watermark_covers_its_end() -> None:
    waiting = ProducePurgatory(high_watermark=10)
    first, second = Parked(), Parked()
    waiting.park(first, required_end_offset=11)
    waiting.park(second, required_end_offset=15)

    waiting.on_high_watermark(14)
    assert (first.covered, second.covered) == (1, 0)

    waiting.on_high_watermark(15)
    assert (first.covered, second.covered) == (1, 1)
    assert len(waiting) == 0


def test_a_duplicate_of_an_earlier_batch_waits_behind_the_later_ones() -> None:
    waiting = ProducePurgatory(high_watermark=0)
    later, duplicate = Parked(), Parked()
    waiting.park(later, required_end_offset=20)
    waiting.park(duplicate, required_end_offset=5)
    waiting.check()

    waiting.on_high_watermark(10)
    assert duplicate.covered == 0

    waiting.on_high_watermark(20)
    assert duplicate.covered == 1


def test_what_is_already_covered_may_not_be_parked() -> None:
    waiting = ProducePurgatory(high_watermark=10)

    with pytest.raises(AssertionError, match="already covered"):
        waiting.park(Parked(), required_end_offset=10)


def test_the_high_watermark_never_goes_back() -> None:
    waiting = ProducePurgatory(high_watermark=10)

    with pytest.raises(AssertionError, match="never goes back"):
        waiting.on_high_watermark(9)


def test_those_answered_otherwise_are_forgotten() -> None:
    waiting = ProducePurgatory(high_watermark=0)
    expired, alive = Parked(), Parked()
    waiting.park(expired, required_end_offset=1)
    waiting.park(alive, required_end_offset=2)
    expired.is_done = True

    waiting.drop_done()
    waiting.on_high_watermark(2)

    assert (expired.covered, alive.covered) == (0, 1)
