"""`arranged(frame, ...)`: a frame whose rows know their partition, each partition in one task.

For `format("tidelog")`, which cannot move rows itself; `exactly_once` does it by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from tidelog.client.admin.descriptions import describe_metadata
from tidelog.client.shells.blocking_clients import Admin
from tidelog.client.sink.errors import SinkRefused
from tidelog.client.sink.options import SinkOptions
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.spark.sink.output_partitions import OUTPUT, OutputPartitions
from tidelog.spark.sink.repartition import repartitioned
from tidelog.spark.sink.shape import PARTITION, TOPIC, shaped


def arranged(
    frame: DataFrame,
    bootstrap: str,
    *,
    topic: str | None = None,
    topics: Sequence[str] = (),
    writers: int | None = None,
    order_by: str | Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
) -> DataFrame:
    """The columns of a sink with `partition` and `topic` filled in; batches and streams alike."""
    options = SinkOptions(
        bootstrap=bootstrap,
        sink_id="arranged",
        topic=topic,
        topics=topics,
        writers=writers,
        order_by=order_by,
        settings=dict(settings or {}),
    )
    outputs = _output_partitions(options)
    parallelism = frame.sparkSession.sparkContext.defaultParallelism
    count = min(len(outputs), options.writers or parallelism)
    spread = repartitioned(
        shaped(frame, topic=topic, order_by=options.order_columns), outputs, writers=count
    )
    names = sql.array(*[sql.lit(outputs.partition(each).topic) for each in range(len(outputs))])
    indexes = sql.array(*[sql.lit(outputs.partition(each).index) for each in range(len(outputs))])
    return (
        spread.withColumn(TOPIC, sql.element_at(names, sql.col(OUTPUT) + 1))
        .withColumn(PARTITION, sql.element_at(indexes, sql.col(OUTPUT) + 1))
        .drop(OUTPUT)
    )


def _output_partitions(options: SinkOptions) -> OutputPartitions:
    with Admin(options.client_settings) as admin:
        metadata = admin.ask(describe_metadata(options.topic_names))
    found: list[TopicPartition] = []
    for name in options.topic_names:
        topic = metadata.topics.get(name)
        if topic is None or topic.error != ErrorCode.NONE:
            raise SinkRefused(f"topic {name} does not exist: the sink creates no topics")
        found += [TopicPartition(name, each) for each in range(len(topic.partitions))]
    return OutputPartitions.of(found)
