"""What can be wrong with replicas on disk: batches that cannot be read, records that differ."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from tidelog.judge.anomalies import CORRUPT, DIVERGED
from tidelog.spark.audit.findings import bare_finding, sentence

_SAME = ("partition", "base_offset", "end_offset", "leader_epoch", "crc")
_AT = ("node", "partition", "offset")


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
        "replica {node} cannot read offsets {base_offset} and following: {trouble} at byte "
        "{position} of {path}"
    )
    rows = bad.withColumn("offset", f.col("base_offset")).withColumn("replicas", f.array("node"))
    return bare_finding(rows, CORRUPT.name, evidence)


def odd_batches(batches: DataFrame, floors: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Batches that one of two replicas has otherwise, or not at all: only those are unpacked.

    Copies are equal byte by byte, so header and checksum tell. The first are of other replicas,
    the second of the leading one, labelled with the `node` that should have them. `floors` has for
    each replica `leading_node`, its start, end and `committed_offset`, and the leader's start.
    What cannot be read is the affair of `corrupt`.
    """
    known = f.broadcast(floors.where("node != leading_node"))
    by_leader = batches.withColumnRenamed("node", "leading_node")
    theirs = batches.join(known, ["node", "partition"])
    ours = by_leader.join(known, ["leading_node", "partition"])
    theirs_too = theirs.select("node", *_SAME)
    ours_too = ours.select("node", *_SAME)
    unreadable = ["node", "partition", "base_offset"]
    bad = theirs.unionByName(ours).where("trouble is not null").select(*unreadable)
    odd_theirs = theirs.where(
        "trouble is null and base_offset < committed_offset and end_offset > leading_start_offset"
    ).join(ours_too, ["node", *_SAME], "left_anti")
    odd_ours = ours.where(
        "trouble is null and base_offset < committed_offset and end_offset > log_start_offset "
        "and base_offset < log_end_offset"
    ).join(theirs_too, ["node", *_SAME], "left_anti")
    return (
        odd_theirs.join(bad, unreadable, "left_anti"),
        odd_ours.join(bad, unreadable, "left_anti"),
    )


def diverged(
    theirs: DataFrame, leading: DataFrame, floors: DataFrame, *, is_compacted: bool
) -> DataFrame:
    """The records of odd batches, compared one by one.

    Replicas are compacted each in its own time: there a record that only one of them has is fine.
    """
    there = leading.select(
        *_AT,
        f.col("leader_epoch").alias("leading_epoch"),
        f.col("key").alias("leading_key"),
        f.col("digest").alias("leading_digest"),
    )
    both = (
        theirs.select(*_AT, "leader_epoch", "key", "digest")
        .join(there, list(_AT), "full_outer")
        .join(f.broadcast(floors), ["node", "partition"])
        .where("offset >= log_start_offset and offset >= leading_start_offset")
        .where("offset < log_end_offset and offset < committed_offset")
    )
    is_absent, is_extra = f.col("leader_epoch").isNull(), f.col("leading_epoch").isNull()
    differs = (
        (f.col("leader_epoch") != f.col("leading_epoch"))
        | ~f.col("key").eqNullSafe(f.col("leading_key"))
        | ~f.col("digest").eqNullSafe(f.col("leading_digest"))
    )
    has_gap = f.lit(not is_compacted) & (is_absent | is_extra)
    digest = f.when(is_absent, f.col("leading_digest")).otherwise(f.col("digest"))
    wrong = both.where(has_gap | (~is_absent & ~is_extra & differs)).select(
        *("partition", "offset"),
        f.array("node", "leading_node").alias("replicas"),
        f.coalesce("leader_epoch", "leading_epoch").alias("leader_epoch"),
        f.when(is_absent, f.col("leading_key")).otherwise(f.col("key")).alias("key"),
        f.lower(f.hex(digest)).alias("value_sha256"),
        _evidence().alias("evidence"),
    )
    return bare_finding(wrong, DIVERGED.name, f.col("evidence"))


def _evidence() -> Column:
    says = (
        f.when(f.col("leader_epoch").isNull(), " has nothing here, unlike replica ")
        .when(f.col("leading_epoch").isNull(), " has a record here, unlike replica ")
        .otherwise(" has another record here than replica ")
    )
    return sentence(
        "replica {node}{says}{leading_node}; both have all that is committed below "
        "{committed_offset}",
        says=says,
    )
