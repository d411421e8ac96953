"""Superseded: a compacted topic keeps the newest record of each key, so older ones may be gone.

A record may go once a later one has its key. A tombstone (null value) goes, too, after a while, and
takes everything of its key with it; so whatever was told before a tombstone, or is one, may be gone
without a trace.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

_ANY_TIME = 2**62


def with_superseded(missing: DataFrame, held: DataFrame, told: DataFrame) -> DataFrame:
    """The pairs with `is_superseded`: a later record of its key is there, or a tombstone was.

    `held` has partition, key and offset of what the topic holds, `told` the same with outcome,
    digest and `told_offset` of what producers were told.
    """
    latest = held.groupBy("partition", "key").agg(f.max("offset").alias("latest_offset"))
    tombstones = told.where("digest is null and outcome in ('ok', 'unknown')")
    # A tombstone of unknown fate, or without an offset, may stand anywhere.
    buried = tombstones.groupBy("partition", "key").agg(
        f.max(f.coalesce("told_offset", f.lit(_ANY_TIME))).alias("buried_offset")
    )
    is_superseded = f.coalesce(f.col("told_offset") < f.col("latest_offset"), f.lit(False))
    is_buried = f.coalesce(
        f.coalesce("told_offset", f.lit(0)) <= f.col("buried_offset"), f.lit(False)
    )
    # A record without an offset may have been anywhere before the newest one of its key.
    is_somewhere = f.col("told_offset").isNull() & f.col("latest_offset").isNotNull()
    return (
        missing.join(latest, ["partition", "key"], "left")
        .join(buried, ["partition", "key"], "left")
        .withColumn(
            "is_superseded",
            f.col("key").isNotNull() & (is_superseded | is_buried | is_somewhere),
        )
        .drop("latest_offset", "buried_offset")
    )
