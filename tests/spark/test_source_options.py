"""A wrong option stops a query with one clear sentence, before anything is read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tidelog
from tests.spark.source_data import write_numbered
from tests.spark.source_reading import OURS, read, stream
from tests.spark.topics import NewTopic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOBODY = "127.0.0.1:1"


def test_a_wrong_option_is_told_when_the_frame_is_made(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="startingOffsets must be earliest, latest or like"):
        read(spark, OURS, NOBODY, subscribe="orders", startingOffsets="first")


def test_a_missing_option_is_told_when_the_frame_is_made(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="exactly one of subscribe, subscribePattern, assign"):
        read(spark, OURS, NOBODY)


def test_what_only_a_batch_may_not_be_told_is_told_before_it_reads(spark: SparkSession) -> None:
    frame = read(spark, OURS, NOBODY, subscribe="orders", startingOffsets="latest")
    with pytest.raises(Exception, match="startingOffsets may not be latest in a batch"):
        frame.collect()


def test_a_stream_with_an_end_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="endingOffsets is only for batches"):
        stream(spark, OURS, NOBODY, tmp_path, subscribe="orders", endingOffsets="latest")


def test_another_schema_is_refused(spark: SparkSession) -> None:
    reader = spark.read.format(OURS).schema("key string")
    frame = reader.options(**{"kafka.bootstrap.servers": NOBODY, "subscribe": "orders"}).load()
    with pytest.raises(Exception, match="the schema of format tidelog is fixed"):
        frame.collect()


def test_a_topic_that_does_not_exist_is_named(
    spark: SparkSession, tidelog3: tidelog.Cluster
) -> None:
    frame = read(spark, OURS, tidelog3.bootstrap_servers, subscribe="nobody-made-this")
    with pytest.raises(Exception, match="subscribe: there is no topic nobody-made-this"):
        frame.collect()


def test_a_partition_that_does_not_exist_is_named(
    spark: SparkSession, tidelog3: tidelog.Cluster, new_topic: NewTopic
) -> None:
    topic = new_topic(tidelog3)
    frame = read(spark, OURS, tidelog3.bootstrap_servers, assign=f'{{"{topic}":[0,3]}}')
    with pytest.raises(Exception, match=f"assign: there is no partition {topic}-3"):
        frame.collect()


@pytest.mark.long
def test_offsets_that_are_not_there_are_named(
    spark: SparkSession, tidelog3: tidelog.Cluster, new_topic: NewTopic
) -> None:
    topic = new_topic(tidelog3)
    write_numbered(tidelog3.bootstrap_servers, topic, 5, partitions=1)
    ending = f'{{"{topic}":{{"0":9}}}}'
    asked = {"subscribe": topic, "endingOffsets": ending}
    frame = read(spark, OURS, tidelog3.bootstrap_servers, **asked)
    with pytest.raises(Exception, match=f"endingOffsets of {topic}-0 is 9, but the log has"):
        frame.collect()
    spared = read(spark, OURS, tidelog3.bootstrap_servers, failOnDataLoss="false", **asked)
    assert spared.count() == 5
