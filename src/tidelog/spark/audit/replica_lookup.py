"""Whereabouts: which replicas have the very record that a finding is about on their disks."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from tidelog.spark.audit.segment_frames import record_frame_of_batches

BUCKET_OFFSETS = 4_096


def with_replicas(findings: DataFrame, batches: DataFrame) -> DataFrame:
    """The findings with `replicas` filled in, where nobody has done so yet.

    Only batches that reach over a finding's offset are unpacked. Offsets are put into buckets to
    find them: a batch that touches several is in each of them.
    """
    numbered = findings.withColumn("row", f.monotonically_increasing_id()).localCheckpoint()
    sought = numbered.where("offset is not null and replicas is null").select(
        "row",
        "partition",
        f.col("offset").alias("sought_offset"),
        f.col("key").alias("sought_key"),
        f.col("value_sha256").alias("sought_sha256"),
        f.floor(f.col("offset") / BUCKET_OFFSETS).alias("bucket"),
    )
    first = f.floor(f.col("base_offset") / BUCKET_OFFSETS)
    last = f.floor((f.col("end_offset") - 1) / BUCKET_OFFSETS)
    wanted = sought.select("partition", "bucket", "sought_offset").distinct()
    covering = (
        batches.where("trouble is null and not is_control")
        .withColumn("bucket", f.explode(f.sequence(first, last)))
        .join(wanted, ["partition", "bucket"])
        .where("base_offset <= sought_offset and sought_offset < end_offset")
        .select(*batches.columns)
        .distinct()
    )
    is_it = (
        (f.col("offset") == f.col("sought_offset"))
        & f.col("key").eqNullSafe(f.col("sought_key"))
        & f.lower(f.hex("digest")).eqNullSafe(f.col("sought_sha256"))
    )
    holders = (
        record_frame_of_batches(covering)
        .select("partition", "offset", "node", "key", "digest")
        .localCheckpoint()  # a join may stop reading, and Python's workers complain of that
        .join(sought, "partition")
        .where(is_it)
        .groupBy("row")
        .agg(f.sort_array(f.collect_set("node")).alias("holders"))
    )
    return (
        numbered.join(holders, "row", "left")
        .withColumn("replicas", f.coalesce("replicas", "holders", f.array().cast("array<int>")))
        .select(*findings.columns)
    )
