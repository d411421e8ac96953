"""What a sink published, as a DataFrame: a table of Parquet files, and what is about one topic."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tidelog.spark.audit.published_rows import OFFSET, PARTITION, TOPIC
from tidelog.spark.audit.refused import AuditRefused


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
