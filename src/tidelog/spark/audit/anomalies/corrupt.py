"""Corrupt: a replica cannot read a batch that is committed."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from tidelog.spark.audit.findings import bare_finding, sentence

NAME = "corrupt"


def corrupt(batches: DataFrame, floors: DataFrame) -> DataFrame:
    """Batches in trouble below what their replica knew to be committed.

    What lies above may be unfinished: whoever restarts the broker cuts it off. `floors` has for
    each node and partition its `committed_offset`.
    """
    bad = (
        batches.where("trouble is not null")
        .join(f.broadcast(floors), ["node", "partition"])
        .where("base_offset < committed_offset")
    )
    evidence = sentence(
        "replica ",
        f.col("node"),
        " cannot read offsets ",
        f.col("base_offset"),
        " and following: ",
        f.col("trouble"),
        " at byte ",
        f.col("position"),
        " of ",
        f.col("path"),
    )
    rows = bad.withColumn("offset", f.col("base_offset")).withColumn("replicas", f.array("node"))
    return bare_finding(rows, NAME, evidence)
