"""What a sink published, as a DataFrame: of which source record each published one was made.

A published record names its source in one of three ways (docs/spark-audit.md):

- a header `tidelog-source` with the text `TOPIC/PARTITION/OFFSET`;
- fields `source_partition` and `source_offset` (and `source_topic`) of a value that is JSON;
- columns of these names in a table.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tidelog.spark.audit.batches import Judged, decoded
from tidelog.spark.audit.refused import AuditRefused
from tidelog.spark.audit.tasks import RowBuffer

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
        told = json.loads(value or b"")
    except ValueError:
        return None, None, None
    if not isinstance(told, dict):
        return None, None, None
    partition, offset = told.get(PARTITION), told.get(OFFSET)
    if type(partition) is not int or type(offset) is not int:
        return None, None, None
    topic = told.get(TOPIC)
    return topic if isinstance(topic, str) else None, partition, offset


def _from_header(text: object) -> tuple[str | None, int | None, int | None]:
    topic, _, place = (text if isinstance(text, bytes) else b"").rpartition(b"/")
    topic, _, partition = topic.rpartition(b"/")
    if not partition.isdigit() or not place.isdigit():
        return None, None, None
    return topic.decode(errors="replace") or None, int(partition), int(place)


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
