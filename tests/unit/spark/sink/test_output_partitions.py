"""The place of each row: by its partition, its key, or evenly."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from tidelog.client.producer.partitioner import murmur2
from tidelog.core.model.ids import TopicPartition
from tidelog.spark.sink.output_partitions import OutputPartitions, RowRefused

ONE = OutputPartitions((("out", 4),))
TWO = OutputPartitions((("a", 2), ("b", 3)))


def test_places_are_counted_over_all_topics() -> None:
    partitions = [TopicPartition("b", 2), TopicPartition("a", 1), TopicPartition("b", 0)]

    assert OutputPartitions.of([*partitions, TopicPartition("a", 0), TopicPartition("b", 1)]) == TWO
    assert len(TWO) == 5
    assert [str(TWO.partition(place)) for place in range(5)] == ["a-0", "a-1", "b-0", "b-1", "b-2"]


def test_keys_go_where_java_sends_them() -> None:
    keys = [f"key {n}".encode() for n in range(100)]

    places = ONE.of_rows(topics=None, keys=pa.array(keys), partitions=None, rows=len(keys), task=0)

    assert places.tolist() == [(murmur2(key) & 0x7FFFFFFF) % 4 for key in keys]


@pytest.mark.parametrize("rows", [1, 3, 4, 5, 100, 10_000])
def test_rows_without_a_key_are_spread_evenly_and_always_the_same(rows: int) -> None:
    keys = pa.nulls(rows, pa.binary())

    spread = [
        ONE.of_rows(topics=None, keys=keys, partitions=None, rows=rows, task=task).tolist()
        for task in (0, 1, 1)
    ]

    assert spread[1] == spread[2]
    assert max(Counter(spread[0]).values()) <= -(-rows // 4)
    assert spread[0][0] == 0 and spread[1][0] == 1


def test_a_partition_that_a_row_names_goes_before_its_key() -> None:
    keys = pa.array([b"a", b"a", None])
    by_key = ONE.of_rows(topics=None, keys=keys, partitions=None, rows=3, task=0).tolist()

    places = ONE.of_rows(
        topics=None, keys=keys, partitions=pa.array([3, None, 2], pa.int32()), rows=3, task=0
    )

    assert places.tolist() == [3, by_key[1], 2]


@pytest.mark.parametrize("partition", [4, -1, 99])
def test_a_partition_that_is_not_there_is_refused(partition: int) -> None:
    given = pa.array([0, partition, None], pa.int32())

    with pytest.raises(RowRefused, match=f"partition {partition}, and the topic has 4"):
        ONE.of_rows(topics=None, keys=None, partitions=given, rows=3, task=0)


def test_each_row_goes_to_its_topic() -> None:
    topics = pa.array(["b", "a", "b", "a"])
    given = pa.array([2, 1, 0, 0], pa.int32())

    places = TWO.of_rows(topics=topics, keys=None, partitions=given, rows=4, task=0)

    assert places.tolist() == [4, 1, 2, 0]
    assert places.dtype == np.int32


@pytest.mark.parametrize(
    ("topic", "sentence"),
    [("c", "names topic 'c', which is not among the sink's topics: a, b"), (None, "no topic")],
)
def test_a_topic_that_was_not_given_is_refused(topic: str | None, sentence: str) -> None:
    with pytest.raises(RowRefused, match=sentence):
        TWO.of_rows(topics=pa.array(["a", topic]), keys=None, partitions=None, rows=2, task=0)
