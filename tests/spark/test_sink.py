"""The exactly-once sink in Spark: micro-batches as transactions, on Apache Kafka and Tidelog."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from tests.process.waiting import PATIENCE_S
from tests.process.wire import NO_GROUP
from tests.spark.brokers import ON_BOTH, Brokers
from tests.spark.sink_parts import wait_until_decided
from tests.spark.sink_streams import Stream, sink, values
from tests.spark.topics import NewTopic
from tidelog.client.events import BatchAborted, BatchCommitted, BatchSkipped
from tidelog.client.producer.partitioner import murmur2
from tidelog.client.sink.errors import SinkRefused

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> Stream:
    return Stream(spark, tmp_path)


@pytest.fixture
def topic(brokers: Brokers, new_topic: NewTopic) -> str:
    return new_topic(brokers, partitions=3, min_insync_replicas="2")


def records(bootstrap: str, topic: str, partitions: int) -> list[Any]:
    """Everything of a topic that is committed, as librdkafka gives it."""
    settings = {"bootstrap.servers": bootstrap, **NO_GROUP, "enable.partition.eof": True}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in range(partitions)])
    found, ended = [], 0
    while ended < partitions:
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        if message.error() is None:
            found.append(message)
        else:
            ended += 1
    consumer.close()
    return found


@ON_BOTH
def test_every_batch_is_published_and_a_replayed_one_is_skipped(
    brokers: Brokers, stream: Stream, topic: str
) -> None:
    """After the first run the note that batch 1 is done is taken away: Spark runs it again."""
    made, _ = sink(brokers, topic)
    stream.add("a", "b", "c")
    stream.add("d")
    stream.run(made)
    made.close()
    (stream.directory / "checkpoint" / "commits" / "1").unlink()
    (stream.directory / "checkpoint" / "commits" / ".1.crc").unlink(missing_ok=True)
    stream.add("e", "f")

    again, trace = sink(brokers, topic)
    stream.run(again)

    assert trace.of(BatchSkipped) == [BatchSkipped(batch_id=1)]
    committed: list[Any] = trace.of(BatchCommitted)
    assert [each.batch_id for each in committed] == [2]
    assert values(brokers, topic) == list("abcdef")
    again.close()


@ON_BOTH
def test_keys_headers_and_partitions_are_those_of_sparks_own_sink(
    brokers: Brokers, stream: Stream, topic: str
) -> None:
    made, _ = sink(brokers, topic, compression="zstd")
    stream.add(*[f"line {n}" for n in range(60)])

    def shape(frame: DataFrame) -> DataFrame:
        return frame.selectExpr(
            "value",
            "substring(value, 6) AS key",
            "array(struct('n' AS key, CAST(value AS BINARY) AS value),"
            " struct('null' AS key, CAST(NULL AS BINARY) AS value)) AS headers",
            "CASE WHEN value = 'line 7' THEN 1 END AS partition",
            "'ignored' AS topic",
        )

    stream.run(made, shape)

    wait_until_decided(brokers.bootstrap_servers, topic)
    found = records(brokers.bootstrap_servers, topic, 3)
    assert sorted(each.value() for each in found) == sorted(b"line %d" % n for n in range(60))
    for each in found:
        key = each.value().removeprefix(b"line ")
        by_key = (murmur2(key) & 0x7FFFFFFF) % 3
        assert each.key() == key
        assert each.partition() == (1 if key == b"7" else by_key)
        assert each.headers() == [("n", each.value()), ("null", None)]
    made.close()


def test_one_batch_goes_to_several_topics_at_once_and_in_order(
    brokers: Brokers, stream: Stream, new_topic: NewTopic
) -> None:
    from tidelog.spark import exactly_once

    topics = [new_topic(brokers, partitions=2), new_topic(brokers)]
    made = exactly_once(
        brokers.bootstrap_servers, topics[0], topics=topics, order_by="number", writers=2
    )
    stream.add(*[str(n * 37 % 50) for n in range(50)])

    def shape(frame: DataFrame) -> DataFrame:
        return frame.selectExpr(
            "value",
            "CAST(value AS INT) AS number",
            f"IF(CAST(value AS INT) % 2 = 0, '{topics[0]}', '{topics[1]}') AS topic",
        )

    stream.run(made, shape)

    wait_until_decided(brokers.bootstrap_servers, topics[0])
    even = records(brokers.bootstrap_servers, topics[0], 2)
    odd = records(brokers.bootstrap_servers, topics[1], 1)
    for partition in (0, 1):
        numbers = [int(each.value()) for each in even if each.partition() == partition]
        assert numbers == sorted(numbers) and len(numbers) > 5
    assert [int(each.value()) for each in odd] == list(range(1, 50, 2))
    made.close()


def test_a_batch_without_rows_is_a_batch(brokers: Brokers, stream: Stream, topic: str) -> None:
    made, trace = sink(brokers, topic)
    stream.add("a")
    stream.add("b")

    stream.run(made, lambda frame: frame.where("value = 'b'"))

    counts: list[Any] = trace.of(BatchCommitted)
    assert [each.records for each in counts] == [0, 1]
    made.close()


def test_a_batch_that_fails_in_spark_is_aborted_and_the_next_run_publishes_it(
    brokers: Brokers, stream: Stream, topic: str
) -> None:
    made, trace = sink(brokers, topic, writers=1)
    stream.add(*[f"row {n:05}" for n in range(2_000)], "broken")

    def breaks(frame: DataFrame) -> DataFrame:
        return frame.selectExpr("IF(value = 'broken', raise_error('planted'), value) AS value")

    with pytest.raises(Exception, match="planted"):
        stream.run(made, breaks)
    made.close()
    assert len(trace.of(BatchAborted)) == 1
    again, trace = sink(brokers, topic)
    stream.run(again)

    assert len(values(brokers, topic)) == 2_001
    again.close()


def test_a_query_that_lost_its_checkpoint_is_refused(
    brokers: Brokers, stream: Stream, topic: str
) -> None:
    made, _ = sink(brokers, topic)
    stream.add("a")
    stream.run(made)
    made.close()
    again, _ = sink(brokers, topic)

    with pytest.raises(Exception, match="another checkpoint"):
        stream.run(again, checkpoint="another")

    assert values(brokers, topic) == ["a"]
    again.close()


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        (["1 AS value"], r"column value must be a string or binary .*, and is int"),
        (["'v' AS words"], "needs a column value: this frame has words"),
        (["'v' AS value", "'a' AS headers"], "column headers must be array<struct"),
        (["'v' AS value", "'a' AS partition"], "column partition must be an int"),
    ],
)
def test_columns_that_a_sink_cannot_use_are_named(
    spark: SparkSession, columns: list[str], sentence: str
) -> None:
    from tidelog.spark.sink.shape import shaped

    with pytest.raises(SinkRefused, match=sentence):
        shaped(spark.range(1).selectExpr(*columns), topic="out")


def test_outside_of_a_streaming_query_the_sink_says_what_it_is_for(
    spark: SparkSession, brokers: Brokers, topic: str
) -> None:
    made, _ = sink(brokers, topic)

    with pytest.raises(SinkRefused, match="for foreachBatch of a streaming query"):
        made(spark.range(1).selectExpr("'v' AS value"), 0)
