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
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.spark.sink.places import PLACE, Places
from tidelog.spark.sink.placing import placed
from tidelog.spark.sink.plan import SinkPlan, sink_plan
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
    plan = sink_plan(
        bootstrap,
        "arranged",
        topic=topic,
        topics=topics,
        writers=writers,
        order_by=order_by,
        settings=settings,
    )
    places = _places(plan)
    parallelism = frame.sparkSession.sparkContext.defaultParallelism
    count = min(len(places), plan.writers or parallelism)
    spread = placed(shaped(frame, topic=topic, order_by=plan.order_by), places, writers=count)
    names = sql.array(*[sql.lit(places.partition(each).topic) for each in range(len(places))])
    indexes = sql.array(*[sql.lit(places.partition(each).index) for each in range(len(places))])
    return (
        spread.withColumn(TOPIC, sql.element_at(names, sql.col(PLACE) + 1))
        .withColumn(PARTITION, sql.element_at(indexes, sql.col(PLACE) + 1))
        .drop(PLACE)
    )


def _places(plan: SinkPlan) -> Places:
    with Admin(plan.client_settings) as admin:
        told = admin.ask(describe_metadata(plan.topics))
    found: list[TopicPartition] = []
    for name in plan.topics:
        topic = told.topics.get(name)
        if topic is None or topic.error != ErrorCode.NONE:
            raise SinkRefused(f"topic {name} does not exist: the sink creates no topics")
        found += [TopicPartition(name, each) for each in range(len(topic.partitions))]
    return Places.of(found)
