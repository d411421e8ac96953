"""Acknowledged offsets rise, from where the partition ended."""

from __future__ import annotations

import pytest

from tidelog.client.sink.errors import GuardFailed
from tidelog.client.sink.guards.rising_offsets import RisingOffsets
from tidelog.core.model.ids import TopicPartition

PLACE = TopicPartition("out", 3)


def test_offsets_may_have_gaps_for_what_others_wrote() -> None:
    offsets = RisingOffsets(PLACE, end_offset=100)

    offsets.accept(100, records=5)
    offsets.accept(105, records=5)
    offsets.accept(300, records=1)

    assert (offsets.base_offset, offsets.next_offset) == (100, 301)


def test_an_offset_from_before_the_attempt_is_somebody_elses() -> None:
    offsets = RisingOffsets(PLACE, end_offset=100)

    with pytest.raises(GuardFailed, match=r"out-3.*offset 99, before 100"):
        offsets.accept(99, records=5)


def test_an_offset_that_does_not_rise_is_somebody_elses() -> None:
    offsets = RisingOffsets(PLACE, end_offset=100)
    offsets.accept(100, records=5)

    with pytest.raises(GuardFailed, match="offset 104, before 105"):
        offsets.accept(104, records=5)
