"""Published from nothing: a sink names a source record that the topic does not hold."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from tidelog.spark.audit.findings import bare_finding, sentence

NAME = "published from nothing"


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
    text = sentence(
        *(f.col("place"), " was made of it, but the topic has no such record"),
    )
    return bare_finding(strange, NAME, text)
