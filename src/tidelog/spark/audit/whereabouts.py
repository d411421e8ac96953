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
    sought = (
        findings.where("offset is not null and replicas is null")
        .select("partition", "offset")
        .distinct()
        .withColumn("bucket", f.floor(f.col("offset") / BUCKET_OFFSETS))
    )
    spread = batches.where("trouble is null and not is_control").withColumn(
        "bucket",
        f.explode(
            f.sequence(
                f.floor(f.col("base_offset") / BUCKET_OFFSETS),
                f.floor((f.col("end_offset") - 1) / BUCKET_OFFSETS),
            )
        ),
    )
    covering = (
        spread.join(sought, ["partition", "bucket"])
        .where("base_offset <= offset and offset < end_offset")
        .select(*batches.columns)
        .distinct()
    )
    records = record_frame_of_batches(covering).select(
        "partition",
        "offset",
        "node",
        f.col("key").alias("held_key"),
        f.lower(f.hex("digest")).alias("held_sha256"),
    )
    numbered = findings.withColumn("row", f.monotonically_increasing_id()).persist()
    holders = (
        numbered.join(records, ["partition", "offset"])
        .where("held_key <=> key and held_sha256 <=> value_sha256")
        .groupBy("row")
        .agg(f.sort_array(f.collect_set("node")).alias("holders"))
    )
    return (
        numbered.join(holders, "row", "left")
        .withColumn("replicas", f.coalesce("replicas", "holders", f.array().cast("array<int>")))
        .select(*findings.columns)
    )
