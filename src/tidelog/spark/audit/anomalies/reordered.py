"""Reordered: a record stands behind one that its producer sent later to the same partition.

Long partitions are cut into pieces by offset, so that no task gets a whole one: within a piece the
records are looked at in order, and for each piece it is known what the pieces before it hold.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from tidelog.spark.audit.findings import found, sentence

NAME = "reordered"
PIECE_OFFSETS = 2**18


def reordered(kept: DataFrame, *, piece_offsets: int = PIECE_OFFSETS) -> DataFrame:
    """Among pairs that are kept; a run whose journal two producers wrote has no order."""
    numbered = kept.where("not is_mixed").withColumn(
        "piece", f.floor(f.col("offset") / piece_offsets)
    )
    within = Window.partitionBy("run", "partition", "piece").orderBy("offset")
    before = within.rowsBetween(Window.unboundedPreceding, -1)
    pieces = Window.partitionBy("run", "partition").orderBy("piece")
    earlier = (
        numbered.groupBy("run", "partition", "piece")
        .agg(f.max("number").alias("newest"))
        .withColumn(
            "newest_before",
            f.max("newest").over(pieces.rowsBetween(Window.unboundedPreceding, -1)),
        )
        .drop("newest")
    )
    ahead = f.greatest("newest_here", "newest_before")
    late = (
        numbered.withColumn("newest_here", f.max("number").over(before))
        .join(f.broadcast(earlier), ["run", "partition", "piece"])
        .withColumn("ahead", ahead)
        .where(f.col("number") < f.col("ahead"))
    )
    evidence = sentence(
        "record ",
        f.col("number"),
        " stands at ",
        f.col("offset"),
        ", behind record ",
        f.col("ahead"),
        " of the same producer, which was sent later",
    )
    return found(late, NAME, evidence)
