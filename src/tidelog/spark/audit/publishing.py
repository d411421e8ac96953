"""What a sink published, held against the topic it was made of."""

from __future__ import annotations

from functools import reduce

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tidelog.spark.audit.anomalies.aborted_read import aborted_published
from tidelog.spark.audit.anomalies.published_from_nothing import published_from_nothing
from tidelog.spark.audit.anomalies.published_twice import published_twice
from tidelog.spark.audit.anomalies.unpublished import unpublished
from tidelog.spark.audit.broker_facts import ask_brokers
from tidelog.spark.audit.broker_frames import published_frame
from tidelog.spark.audit.facts import TopicFacts
from tidelog.spark.audit.pairs import Pairs
from tidelog.spark.audit.published import of_topic, table_frame
from tidelog.spark.audit.published_rows import HEADER, OFFSET, PARTITION
from tidelog.spark.audit.refused import AuditRefused
from tidelog.spark.audit.report import Published
from tidelog.spark.audit.transactions import COMMITTED
from tidelog.spark.audit.wish import Wish


def judge_published(
    spark: SparkSession, wish: Wish, facts: TopicFacts, pairs: Pairs, fences: DataFrame
) -> tuple[list[DataFrame], Published, list[str]]:
    """Findings, counts and notes."""
    everything = _everything(spark, wish).persist(StorageLevel.DISK_ONLY)
    of_it = of_topic(everything, facts.topic)
    held = pairs.held_rows
    committed = held.where((f.col("state") == COMMITTED) & f.col("is_visible"))
    found = [
        published_twice(of_it),
        published_from_nothing(of_it, held, fences, is_compacted=facts.is_compacted),
        aborted_published(of_it, held),
    ]
    missed = unpublished(committed, of_it, is_finished=wish.is_strict)
    if not wish.may_filter:
        found.append(missed)
    counted = _counted(everything, of_it, committed, missed if wish.may_filter else None)
    notes = []
    if counted.unnamed:
        notes.append(
            f"{counted.unnamed:,} published records do not say what they were made of: they have "
            f"no header {HEADER}, and their value no {PARTITION} and {OFFSET}"
        )
    if counted.records == 0:
        raise AuditRefused(
            f"nothing that was published names a record of {facts.topic}: see the header {HEADER} "
            f"and the columns {PARTITION} and {OFFSET} in docs/spark-audit.md"
        )
    return found, counted, notes


def _everything(spark: SparkSession, wish: Wish) -> DataFrame:
    frames = [table_frame(spark, each) for each in wish.published_tables]
    for topic in wish.published:
        if wish.settings is None:
            raise AuditRefused(f"--published {topic} is read through brokers: say --bootstrap")
        told = ask_brokers(wish.settings, topic, timeout_s=wish.timeout_s)
        frames.append(published_frame(spark, wish.settings, told))
    return reduce(DataFrame.unionByName, frames)


def _counted(
    everything: DataFrame, of_it: DataFrame, committed: DataFrame, missed: DataFrame | None
) -> Published:
    unnamed = everything.where(f.col(PARTITION).isNull()).count()
    told = of_it.agg(
        f.count("*").alias("records"),
        f.count_distinct("partition", "offset").alias("sources"),
    ).collect()[0]
    reached = of_it.groupBy("partition").agg(f.max("offset").alias("reached_offset"))
    waiting = (
        committed.join(f.broadcast(reached), "partition", "left")
        .where("reached_offset is null or offset > reached_offset")
        .count()
    )
    return Published(
        records=told["records"],
        sources=told["sources"],
        unnamed=unnamed,
        waiting=waiting,
        filtered=0 if missed is None else missed.count(),
    )
