"""A stream's positions from batch to batch, on a cluster that a test moves by hand."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

from tidelog.core.model.ids import TopicPartition
from tidelog.spark.source.errors import DataLost, OptionError
from tidelog.spark.source.slices import OffsetSlice
from tidelog.spark.source.stream_reader import StreamReader

A, B, C = (TopicPartition("orders", index) for index in range(3))
GIVEN = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "orders"}


class FakeView:
    """Partitions and their fences, as a cluster would tell them."""

    def __init__(self, **logs: tuple[int, int]) -> None:
        self.logs = {TopicPartition("orders", "ABC".index(name)): log for name, log in logs.items()}
        self.is_closed = False

    def partitions(self) -> frozenset[TopicPartition]:
        return frozenset(self.logs)

    def partitions_after(self, known: Iterable[TopicPartition]) -> frozenset[TopicPartition]:
        return frozenset(self.logs)

    def earliest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {each: self.logs[each][0] for each in partitions}

    def latest(
        self, partitions: Iterable[TopicPartition], *, known: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int]:
        return {each: self.logs[each][1] for each in partitions}

    def close(self) -> None:
        self.is_closed = True


def reader(view: FakeView, **options: str) -> StreamReader:
    made = StreamReader({**GIVEN, **options})
    made._view = view  # type: ignore[assignment]
    return made


def through_json(offset: Any) -> Any:
    """As Spark gives it back."""
    return json.loads(json.dumps(offset))


def batch(stream: StreamReader, start: Any) -> tuple[Any, list[OffsetSlice]]:
    """What Spark does for one batch: its end, and what the tasks read."""
    end = through_json(stream.latestOffset(start, stream.getDefaultReadLimit()))
    return end, [each.value for each in stream.partitions(start, end)]


def test_offsets_look_like_sparks_own() -> None:
    stream = reader(FakeView(A=(0, 17), B=(3, 5)), startingOffsets="earliest")
    assert stream.initialOffset() == {"orders": {"0": 0, "1": 3}}


def test_a_stream_goes_from_batch_to_batch() -> None:
    view = FakeView(A=(0, 10), B=(0, 4))
    stream = reader(view, startingOffsets="earliest")

    start = through_json(stream.initialOffset())
    first, read = batch(stream, start)
    assert read == [OffsetSlice(A, 0, 10), OffsetSlice(B, 0, 4)]

    view.logs[A] = (0, 12)
    second, read = batch(stream, first)
    assert read == [OffsetSlice(A, 10, 12)]
    assert second == {"orders": {"0": 12, "1": 4}}
    assert stream.reportLatestOffset() == second

    assert batch(stream, second) == (second, []), "nothing new: the same offset, no batch"


def test_latest_is_found_once() -> None:
    """Spark asks for the initial offset again when it plans the batch."""
    view = FakeView(A=(0, 10))
    stream = reader(view)
    assert stream.initialOffset() == {"orders": {"0": 10}}
    view.logs[A] = (0, 20)
    assert stream.initialOffset() == {"orders": {"0": 10}}


def test_a_crash_in_the_first_batch_does_not_move_its_start() -> None:
    """The checkpoint has only the end of the batch; the next run finds another latest."""
    view = FakeView(A=(0, 10))
    stream = reader(view)
    start = through_json(stream.initialOffset())
    view.logs[A] = (0, 15)
    end, read = batch(stream, start)
    assert read == [OffsetSlice(A, 10, 15)]

    view.logs[A] = (0, 40)
    again = reader(view)
    anew = through_json(again.initialOffset())
    assert anew == {"orders": {"0": 40}}
    assert [each.value for each in again.partitions(anew, end)] == read

    after, read = batch(again, end)
    assert (after, read) == ({"orders": {"0": 40}}, [OffsetSlice(A, 15, 40)])


def test_the_end_of_a_first_batch_without_news_is_the_start_itself() -> None:
    view = FakeView(A=(0, 10))
    stream = reader(view)
    start = through_json(stream.initialOffset())
    assert stream.latestOffset(start, ReadAllAvailable()) == start
    assert stream.partitions(start, start) == []


def test_new_partitions_begin_at_their_first_record() -> None:
    view = FakeView(A=(0, 10))
    stream = reader(view)
    start = through_json(stream.initialOffset())
    view.logs[B] = (0, 3)
    _, read = batch(stream, start)
    assert read == [OffsetSlice(B, 0, 3)]


def test_a_new_partition_that_has_lost_records_is_reported() -> None:
    view = FakeView(A=(0, 10))
    stream = reader(view)
    start = through_json(stream.initialOffset())
    view.logs[B] = (2, 5)
    with pytest.raises(DataLost, match="orders-1 is new, but begins with offset 2"):
        batch(stream, start)


def test_partitions_that_are_gone_are_reported() -> None:
    view = FakeView(A=(0, 10), B=(0, 10))
    for fails in ("true", "false"):
        stream = reader(view, startingOffsets="earliest", failOnDataLoss=fails)
        start = through_json(stream.initialOffset())
        first, _ = batch(stream, start)
        left = FakeView(A=(0, 12))
        stream._view = left  # type: ignore[assignment]
        if fails == "true":
            with pytest.raises(DataLost, match="Partitions are gone: orders-1"):
                batch(stream, first)
        else:
            with pytest.warns(UserWarning, match="Partitions are gone: orders-1"):
                _, read = batch(stream, first)
            assert read == [OffsetSlice(A, 10, 12)]


def test_a_log_that_was_cut_is_reported() -> None:
    view = FakeView(A=(0, 10))
    stream = reader(view, startingOffsets="earliest")
    first, _ = batch(stream, through_json(stream.initialOffset()))
    view.logs[A] = (0, 4)
    with pytest.raises(DataLost, match="orders-0 was read up to offset 10, but ends at 4"):
        batch(stream, first)


def test_max_offsets_per_trigger_limits_every_batch() -> None:
    view = FakeView(A=(0, 100), B=(0, 300))
    stream = reader(view, startingOffsets="earliest", maxOffsetsPerTrigger="40")
    assert stream.getDefaultReadLimit() == ReadMaxRows(40)
    start = through_json(stream.initialOffset())
    first, read = batch(stream, start)
    assert read == [OffsetSlice(A, 0, 10), OffsetSlice(B, 0, 30)]
    assert stream.reportLatestOffset() == {"orders": {"0": 100, "1": 300}}
    second, read = batch(stream, first)
    assert read == [OffsetSlice(A, 10, 20), OffsetSlice(B, 30, 60)]
    assert second == {"orders": {"0": 20, "1": 60}}


def test_everything_is_given_if_spark_asks_for_everything() -> None:
    """Trigger.Once does, whatever the options say."""
    stream = reader(FakeView(A=(0, 100)), startingOffsets="earliest", maxOffsetsPerTrigger="40")
    start = through_json(stream.initialOffset())
    end = stream.latestOffset(start, ReadAllAvailable())
    assert [each.value for each in stream.partitions(start, end)] == [OffsetSlice(A, 0, 100)]


def test_available_now_ends_where_the_topic_ended_when_it_began() -> None:
    view = FakeView(A=(0, 100))
    stream = reader(view, startingOffsets="earliest", maxOffsetsPerTrigger="60")
    stream.prepareForTriggerAvailableNow()
    offset = through_json(stream.initialOffset())
    offset, read = batch(stream, offset)
    assert read == [OffsetSlice(A, 0, 60)]

    view.logs[A], view.logs[B] = (0, 500), (0, 9)
    offset, read = batch(stream, offset)
    assert read == [OffsetSlice(A, 60, 100)]
    assert batch(stream, offset) == (offset, [])


def test_a_batch_waits_for_its_minimum() -> None:
    view = FakeView(A=(0, 5))
    stream = reader(view, startingOffsets="earliest", minOffsetsPerTrigger="10")
    assert stream.getDefaultReadLimit() == ReadMinRows(10)
    start = through_json(stream.initialOffset())
    first, read = batch(stream, start)
    assert read == [OffsetSlice(A, 0, 5)], "the first batch does not wait"

    view.logs[A] = (0, 14)
    assert batch(stream, first) == (first, []), "nine are too few"
    view.logs[A] = (0, 15)
    assert batch(stream, first)[1] == [OffsetSlice(A, 5, 15)]


def test_a_batch_does_not_wait_longer_than_it_may() -> None:
    view = FakeView(A=(0, 5))
    stream = reader(
        view, startingOffsets="earliest", minOffsetsPerTrigger="10", maxTriggerDelay="0s"
    )
    first, _ = batch(stream, through_json(stream.initialOffset()))
    view.logs[A] = (0, 6)
    assert batch(stream, first)[1] == [OffsetSlice(A, 5, 6)]


def test_available_now_does_not_wait_for_more() -> None:
    view = FakeView(A=(0, 100))
    stream = reader(
        view,
        startingOffsets="earliest",
        minOffsetsPerTrigger="50",
        maxOffsetsPerTrigger="70",
    )
    stream.prepareForTriggerAvailableNow()
    offset, _ = batch(stream, through_json(stream.initialOffset()))
    assert batch(stream, offset)[1] == [OffsetSlice(A, 70, 100)]


def test_min_partitions_cuts_batches() -> None:
    stream = reader(FakeView(A=(0, 10)), startingOffsets="earliest", minPartitions="2")
    _, read = batch(stream, through_json(stream.initialOffset()))
    assert read == [OffsetSlice(A, 0, 5), OffsetSlice(A, 5, 10)]


def test_it_travels_to_tasks_without_its_connections() -> None:
    view = FakeView(A=(0, 10))
    stream = reader(view)
    stream.initialOffset()
    copy = pickle.loads(pickle.dumps(stream))
    assert copy._view is None
    stream.stop()
    assert view.is_closed


def test_a_wrong_option_is_told_when_it_is_made() -> None:
    with pytest.raises(OptionError, match="endingOffsets is only for batches"):
        StreamReader({**GIVEN, "endingOffsets": "latest"})
