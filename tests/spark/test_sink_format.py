"""`format("tidelog")` for writing: frames in one piece, streams with batches published once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tidelog
from tests.process.waiting import PATIENCE_S
from tests.spark.brokers import ON_BOTH, Brokers
from tests.spark.sink_parts import read_committed, wait_until_decided
from tests.spark.topics import NewTopic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamWriter


@pytest.fixture
def topic(brokers: Brokers, new_topic: NewTopic) -> str:
    return new_topic(brokers, partitions=3, min_insync_replicas="2")


def numbers(spark: SparkSession, count: int) -> DataFrame:
    return spark.range(count).selectExpr("CAST(id AS STRING) AS key", "CAST(id AS STRING) AS value")


def test_a_frame_is_written_in_one_piece(spark: SparkSession, brokers: Brokers, topic: str) -> None:
    from tidelog.spark import arranged

    frame = arranged(numbers(spark, 500), brokers.bootstrap_servers, topic=topic)

    writer = frame.write.format("tidelog").option("topic", topic).option("sinkId", topic)
    writer.option("kafka.bootstrap.servers", brokers.bootstrap_servers).mode("append").save()

    wait_until_decided(brokers.bootstrap_servers, topic)
    found = read_committed(brokers.bootstrap_servers, topic)
    assert sorted(map(int, found)) == list(range(500))


def test_a_frame_that_fails_leaves_nothing(
    spark: SparkSession, brokers: Brokers, topic: str
) -> None:
    frame = numbers(spark, 5_000).coalesce(1)
    broken = frame.selectExpr("key", "IF(key = '4999', raise_error('planted'), value) AS value")
    writer = broken.write.format("tidelog").option("topic", topic).option("sinkId", topic)

    with pytest.raises(Exception, match="planted"):
        writer.option("kafka.bootstrap.servers", brokers.bootstrap_servers).mode("append").save()

    wait_until_decided(brokers.bootstrap_servers, topic)
    assert read_committed(brokers.bootstrap_servers, topic) == []


@pytest.mark.long
def test_two_tasks_that_write_one_partition_are_told_what_to_do(
    spark: SparkSession, brokers: Brokers, topic: str
) -> None:
    frame = numbers(spark, 500).repartition(2)
    writer = frame.write.format("tidelog").option("topic", topic).option("sinkId", topic)

    with pytest.raises(Exception, match=r"tidelog\.spark\.arranged"):
        writer.option("kafka.bootstrap.servers", brokers.bootstrap_servers).mode("append").save()

    wait_until_decided(brokers.bootstrap_servers, topic)
    assert read_committed(brokers.bootstrap_servers, topic) == []


def test_overwriting_a_topic_is_refused(spark: SparkSession, brokers: Brokers, topic: str) -> None:
    writer = numbers(spark, 5).write.format("tidelog").option("topic", topic)

    with pytest.raises(Exception, match="can only be appended to"):
        writer.option("kafka.bootstrap.servers", brokers.bootstrap_servers).mode("overwrite").save()


@ON_BOTH
def test_a_stream_is_published_once_and_its_replay_skipped(
    spark: SparkSession, brokers: Brokers, topic: str, tmp_path: Path
) -> None:
    files = tmp_path / "in"
    files.mkdir()
    (files / "0.txt").write_text("a\nb\n")
    run = stream(spark, brokers, topic, tmp_path)
    run()
    (files / "1.txt").write_text("c\n")
    run()
    for name in ("1", ".1.crc"):
        (tmp_path / "checkpoint" / "commits" / name).unlink(missing_ok=True)
    (files / "2.txt").write_text("d\n")

    run()

    wait_until_decided(brokers.bootstrap_servers, topic)
    assert sorted(read_committed(brokers.bootstrap_servers, topic)) == ["a", "b", "c", "d"]


def stream(
    spark: SparkSession, brokers: Brokers, topic: str, directory: Path
) -> Callable[[], None]:
    from tidelog.spark import arranged

    def run() -> None:
        lines = spark.readStream.format("text").option("maxFilesPerTrigger", 1)
        frame = arranged(lines.load(str(directory / "in")), brokers.bootstrap_servers, topic=topic)
        writer: DataStreamWriter = frame.writeStream.format("tidelog").option("topic", topic)
        query = (
            writer.option("kafka.bootstrap.servers", brokers.bootstrap_servers)
            .option("sinkId", topic)
            .option("checkpointLocation", str(directory / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(int(PATIENCE_S)), "the query did not end"

    return run


@pytest.mark.long
def test_a_frame_for_an_unfit_cluster_is_refused_in_one_line(
    spark: SparkSession, unfit: tidelog.Cluster, new_topic: NewTopic
) -> None:
    topic = new_topic(unfit, replicas=1)
    writer = numbers(spark, 5).coalesce(1).write.format("tidelog").option("topic", topic)

    with pytest.raises(Exception, match=r"verification\.enable is not true on every broker"):
        writer.option("kafka.bootstrap.servers", unfit.bootstrap_servers).mode("append").save()
