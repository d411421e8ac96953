"""Unpublished: a committed record of the source that a sink passed by."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from tidelog.spark.audit.findings import bare_finding, sentence

NAME = "unpublished"


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
        sentence("not published, though the sink has published offset ", f.col("reached_offset")),
    ).otherwise("not published, though the sink is finished")
    return bare_finding(missing.withColumn("value_sha256", f.lower(f.hex("digest"))), NAME, text)
