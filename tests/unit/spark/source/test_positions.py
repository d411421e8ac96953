"""Options become offsets, with what a cluster has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from tidelog.core.model.ids import TopicPartition
from tidelog.spark.source.bounds import AtOffsets, AtTime, AtTimes, Bound, Edge
from tidelog.spark.source.errors import DataLossPolicy, DataLost, OptionError
from tidelog.spark.source.positions import end_positions, start_positions

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)
BOTH = frozenset({A, B})


class View:
    """Two partitions: offsets 10 to 50 and 0 to 5; a record every second, from second 0 on."""

    firsts = {A: 10, B: 0}  # noqa: RUF012
    ends = {A: 50, B: 5}  # noqa: RUF012

    def earliest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {each: self.firsts[each] for each in partitions}

    def latest(
        self, partitions: Iterable[TopicPartition], *, known: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int]:
        return {each: self.ends[each] for each in partitions}

    def at_times(
        self, timestamps_ms: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int | None]:
        found: dict[TopicPartition, int | None] = {}
        for each, timestamp_ms in timestamps_ms.items():
            offset = max(self.firsts[each], -(-timestamp_ms // 1_000))
            found[each] = offset if offset < self.ends[each] else None
        return found


def start(bound: Bound, *, latest: bool = False, fails: bool = True) -> dict[TopicPartition, int]:
    return start_positions(
        View(), BOTH, bound, without_match_latest=latest, loss=DataLossPolicy(fails=fails)
    )


def end(bound: Bound, *, fails: bool = True) -> dict[TopicPartition, int]:
    return end_positions(View(), BOTH, bound, loss=DataLossPolicy(fails=fails))


def test_starts() -> None:
    assert start(Edge.EARLIEST) == {A: 10, B: 0}
    assert start(Edge.LATEST) == {A: 50, B: 5}
    assert start(AtOffsets("startingOffsets", {A: 20, B: -2})) == {A: 20, B: 0}
    assert start(AtOffsets("startingOffsets", {A: -1, B: 5})) == {A: 50, B: 5}
    assert start(AtTime("startingTimestamp", 3_000)) == {A: 10, B: 3}
    assert start(AtTimes("startingOffsetsByTimestamp", {A: 30_000, B: 1})) == {A: 30, B: 1}


def test_ends() -> None:
    assert end(Edge.LATEST) == {A: 50, B: 5}
    assert end(AtOffsets("endingOffsets", {A: 20, B: -1})) == {A: 20, B: 5}
    assert end(AtTime("endingTimestamp", 20_000)) == {A: 20, B: 5}, "no match: the end"
    assert end(AtTimes("endingOffsetsByTimestamp", {A: 60_000, B: 2_000})) == {A: 50, B: 2}


def test_a_start_after_all_records_is_an_error_or_the_end() -> None:
    late = AtTime("startingTimestamp", 10_000)
    with pytest.raises(OptionError, match="startingTimestamp: all records of orders-1 are older"):
        start(late)
    assert start(late, latest=True) == {A: 10, B: 5}


@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        ({A: 20}, "startingOffsets must name every partition that is read; missing: orders-1"),
        (
            {A: 20, B: 1, TopicPartition("payments", 0): 1},
            "startingOffsets names partitions that are not read: payments-0",
        ),
    ],
)
def test_offsets_name_exactly_what_is_read(
    offsets: dict[TopicPartition, int], message: str
) -> None:
    with pytest.raises(OptionError) as refused:
        start(AtOffsets("startingOffsets", offsets))
    assert message in str(refused.value)


def test_times_name_exactly_what_is_read() -> None:
    with pytest.raises(OptionError, match="endingOffsetsByTimestamp must name every partition"):
        end(AtTimes("endingOffsetsByTimestamp", {A: 1}))


@pytest.mark.parametrize(("offset", "clamped"), [(5, 10), (51, 50)])
def test_offsets_that_are_not_there_are_a_loss(offset: int, clamped: int) -> None:
    bound = AtOffsets("startingOffsets", {A: offset, B: 0})
    with pytest.raises(DataLost, match=f"startingOffsets of orders-0 is {offset}, but the log has"):
        start(bound)
    with pytest.warns(UserWarning, match="failOnDataLoss is false"):
        assert start(bound, fails=False) == {A: clamped, B: 0}
