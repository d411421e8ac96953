"""What a sink published, held against the topic it was made of.

A published record names its source in one of three ways (docs/spark-audit.md):

- a header `tidelog-source` with the text `TOPIC/PARTITION/OFFSET`;
- fields `source_partition` and `source_offset` (and `source_topic`) of a value that is JSON;
- columns of these names in a table.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial, reduce
from pathlib import Path

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tidelog.judge.anomalies import (
    ABORTED_BUT_READ,
    PUBLISHED_FROM_NOTHING,
    PUBLISHED_TWICE,
    UNPUBLISHED,
)
from tidelog.spark.audit.audited_topic import AuditedTopic
from tidelog.spark.audit.batches import Judged, RowBuffer, decoded
from tidelog.spark.audit.broker_frames import OffsetRange, ranges, read_range
from tidelog.spark.audit.broker_metadata import BrokerTopic, describe_topic
from tidelog.spark.audit.errors import AuditRefused
from tidelog.spark.audit.findings import bare_finding, sentence
from tidelog.spark.audit.pairs import Pairs
from tidelog.spark.audit.report import PublishedCounts
from tidelog.spark.audit.request import AuditRequest
from tidelog.spark.audit.tasks import per_item
from tidelog.spark.audit.transactions import ABORTED, COMMITTED

HEADER = "tidelog-source"
TOPIC, PARTITION, OFFSET = "source_topic", "source_partition", "source_offset"
PUBLISHED = pa.schema(
    [
        (TOPIC, pa.string()),
        (PARTITION, pa.int32()),
        (OFFSET, pa.int64()),
        ("place", pa.string()),
    ]
)
"""`place` says where it was published. Without a partition: it does not name its source."""
SPARK_PUBLISHED = "source_topic string, source_partition int, source_offset bigint, place string"
_SHOWN_MAX = 4


def judge_published(
    spark: SparkSession, request: AuditRequest, facts: AuditedTopic, pairs: Pairs, fences: DataFrame
) -> tuple[list[DataFrame], PublishedCounts, list[str]]:
    """Findings, counts and notes."""
    everything = _everything(spark, request).persist(StorageLevel.DISK_ONLY)
    of_it = of_topic(everything, facts.topic)
    held = pairs.held_rows
    committed = held.where((f.col("state") == COMMITTED) & f.col("is_visible"))
    found = [
        published_twice(of_it),
        published_from_nothing(of_it, held, fences, is_compacted=facts.is_compacted),
        aborted_published(of_it, held),
    ]
    missed = unpublished(committed, of_it, is_finished=request.is_strict)
    if not request.may_filter:
        found.append(missed)
    counted = _counted(everything, of_it, committed, missed if request.may_filter else None)
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


def _everything(spark: SparkSession, request: AuditRequest) -> DataFrame:
    frames = [table_frame(spark, each) for each in request.published_tables]
    for topic in request.published:
        if request.settings is None:
            raise AuditRefused(f"--published {topic} is read through brokers: say --bootstrap")
        described = describe_topic(request.settings, topic, timeout_s=request.timeout_s)
        frames.append(published_frame(spark, request.settings, described))
    return reduce(DataFrame.unionByName, frames)


def _counted(
    everything: DataFrame, of_it: DataFrame, committed: DataFrame, missed: DataFrame | None
) -> PublishedCounts:
    unnamed = everything.where(f.col(PARTITION).isNull()).count()
    counted = of_it.agg(
        f.count("*").alias("records"),
        f.count_distinct("partition", "offset").alias("sources"),
    ).collect()[0]
    reached = of_it.groupBy("partition").agg(f.max("offset").alias("reached_offset"))
    waiting = (
        committed.join(f.broadcast(reached), "partition", "left")
        .where("reached_offset is null or offset > reached_offset")
        .count()
    )
    return PublishedCounts(
        records=counted["records"],
        sources=counted["sources"],
        unnamed=unnamed,
        waiting=waiting,
        filtered=0 if missed is None else missed.count(),
    )


# What can be wrong.


def published_twice(published: DataFrame) -> DataFrame:
    """`published` has partition, offset and place; one row for each source record at fault."""
    often = (
        published.groupBy("partition", "offset")
        .agg(f.count("*").alias("times"), f.sort_array(f.collect_list("place")).alias("places"))
        .where("times > 1")
    )
    shown = f.array_join(f.slice("places", 1, _SHOWN_MAX), ", ")
    text = sentence("published {times} times: {shown}", shown=shown)
    return bare_finding(often, PUBLISHED_TWICE.name, text)


def published_from_nothing(
    published: DataFrame, held: DataFrame, fences: DataFrame, *, is_compacted: bool
) -> DataFrame:
    """Except where the source has forgotten: below its log's start, or by compaction."""
    named = published.join(f.broadcast(fences), "partition", "left").where(
        "log_start_offset is null or offset >= log_start_offset"
    )
    if is_compacted:
        named = named.where("log_start_offset is null or offset >= end_offset")
    strange = named.join(held.select("partition", "offset"), ["partition", "offset"], "left_anti")
    text = sentence("{place} was made of it, but the topic has no such record")
    return bare_finding(strange, PUBLISHED_FROM_NOTHING.name, text)


def unpublished(committed: DataFrame, published: DataFrame, *, is_finished: bool) -> DataFrame:
    """Records below the newest published one of their partition that were not published.

    Those above it wait for their turn, unless somebody says that the sink is finished.
    `committed` has partition, offset, leader_epoch, key and digest.
    """
    reached = published.groupBy("partition").agg(f.max("offset").alias("reached_offset"))
    missing = committed.join(
        published.select("partition", "offset"), ["partition", "offset"], "left_anti"
    ).join(f.broadcast(reached), "partition", "left")
    if not is_finished:
        missing = missing.where("offset < reached_offset")
    text = f.when(
        f.col("offset") < f.col("reached_offset"),
        sentence("not published, though the sink has published offset {reached_offset}"),
    ).otherwise("not published, though the sink is finished")
    return bare_finding(
        missing.withColumn("value_sha256", f.lower(f.hex("digest"))), UNPUBLISHED.name, text
    )


def aborted_published(published: DataFrame, held: DataFrame) -> DataFrame:
    """What a sink published of records whose transaction was aborted."""
    aborted = held.where(f.col("state") == ABORTED).select("partition", "offset", "leader_epoch")
    read = published.join(aborted, ["partition", "offset"])
    text = sentence("its transaction was aborted, but {place} was made of it")
    return bare_finding(read, ABORTED_BUT_READ.name, text)


# Where it is read from.


def published_frame(
    spark: SparkSession, settings: Mapping[str, str], topic: BrokerTopic
) -> DataFrame:
    """Of what the records of this topic were made, as readers of commits see them."""
    stable = [each for each in ranges(settings, topic) if each.is_stable]
    return per_item(spark, stable, partial(read_range, sources), SPARK_PUBLISHED)


def sources(part: OffsetRange, view: memoryview, judged: list[Judged]) -> Iterator[pa.RecordBatch]:
    return published_rows(
        view,
        judged,
        topic=part.topic,
        partition=part.partition,
        start_offset=part.start_offset,
        end_offset=part.end_offset,
    )


def table_frame(spark: SparkSession, directory: Path) -> DataFrame:
    """A Parquet table as a sink of Spark leaves it: only what was committed to it."""
    if not directory.is_dir():
        raise AuditRefused(f"--published-table {directory}: there is no such directory")
    try:
        rows = spark.read.parquet(str(directory))
    except Exception as error:
        reason = str(error).strip().splitlines()[0]
        raise AuditRefused(f"--published-table {directory}: no Parquet table ({reason})") from None
    missing = [name for name in (PARTITION, OFFSET) if name not in rows.columns]
    if missing:
        raise AuditRefused(
            f"--published-table {directory} has no column {' and no column '.join(missing)}: "
            f"they say which record a row was made of; it has {', '.join(rows.columns)}"
        )
    topic = f.col(TOPIC) if TOPIC in rows.columns else f.lit(None)
    return rows.select(
        topic.cast("string").alias(TOPIC),
        f.col(PARTITION).cast("int").alias(PARTITION),
        f.col(OFFSET).cast("bigint").alias(OFFSET),
        f.regexp_extract(f.input_file_name(), r"([^/]+)$", 1).alias("place"),
    )


def of_topic(published: DataFrame, topic: str) -> DataFrame:
    """What was made of this topic, as partition, offset and place."""
    return published.where(
        f.col(PARTITION).isNotNull() & f.coalesce(f.col(TOPIC) == topic, f.lit(True))
    ).select(f.col(PARTITION).alias("partition"), f.col(OFFSET).alias("offset"), "place")


# In tasks.


def published_rows(
    view: memoryview,
    judged: list[Judged],
    *,
    topic: str,
    partition: int,
    start_offset: int,
    end_offset: int,
) -> Iterator[pa.RecordBatch]:
    """The sources of what readers of commits are given of these batches."""
    shown = [each for each in judged if each.is_visible]
    found = RowBuffer(PUBLISHED)
    for columns in decoded(
        view, shown, start_offset=start_offset, end_offset=end_offset, with_headers=True
    ):
        rows = zip(
            columns.column("offset").to_pylist(),
            columns.column("value").to_pylist(),
            columns.column("headers").to_pylist(),
            strict=True,
        )
        for offset, value, headers in rows:
            source = source_of(value, headers)
            found.append(*source, f"{topic}-{partition} at {offset}")
            if found.is_full:
                yield found.take()
    yield found.take()


def source_of(
    value: bytes | None, headers: list[dict[str, object]] | None
) -> tuple[str | None, int | None, int | None]:
    """Topic, partition and offset of the source; None where the record does not say."""
    for header in headers or ():
        if header["key"] == HEADER:
            return _from_header(header["value"])
    try:
        fields = json.loads(value or b"")
    except ValueError:
        return None, None, None
    if not isinstance(fields, dict):
        return None, None, None
    partition, offset = fields.get(PARTITION), fields.get(OFFSET)
    if type(partition) is not int or type(offset) is not int:
        return None, None, None
    topic = fields.get(TOPIC)
    return topic if isinstance(topic, str) else None, partition, offset


def _from_header(text: object) -> tuple[str | None, int | None, int | None]:
    topic, _, offset = (text if isinstance(text, bytes) else b"").rpartition(b"/")
    topic, _, partition = topic.rpartition(b"/")
    if not partition.isdigit() or not offset.isdigit():
        return None, None, None
    return topic.decode(errors="replace") or None, int(partition), int(offset)
