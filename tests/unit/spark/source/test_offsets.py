"""Lag, from what Spark's progress shows of a source."""

from __future__ import annotations

from types import SimpleNamespace

from tidelog.core.model.ids import TopicPartition
from tidelog.spark.source.offsets import lag

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)


def test_lag_is_what_there_is_less_what_was_read() -> None:
    source = SimpleNamespace(
        endOffset='{"orders":{"0":7,"1":3}}', latestOffset='{"orders":{"0":10,"1":3}}'
    )
    assert lag(source) == {A: 3, B: 0}


def test_lag_of_a_first_batch_and_of_new_partitions() -> None:
    """The first batch says where it began, which is not an offset; a new partition waits."""
    source = {
        "endOffset": {"orders": {"0": 7}, "(from)": {"orders": {"0": 2}}},
        "latestOffset": {"orders": {"0": 9, "1": 4}},
    }
    assert lag(source) == {A: 2}


def test_no_lag_is_known_before_the_first_batch() -> None:
    assert lag({"endOffset": None, "latestOffset": None}) == {}
    assert lag(SimpleNamespace(endOffset="null", latestOffset='{"orders":{"0":1}}')) == {}
