"""All pairs of an audit: every outcome and every held record once, with what excuses it.

sent ──┐  by offset  ┌─ matched ─────────────────────────┐
       ├─────────────┤            ┌─ expired ────────────┼─ pairs
held ──┘             └─ left over ┴─ by content, copies ─┘
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tidelog.spark.audit.audited_topic import AuditedTopic
from tidelog.spark.audit.record_pairing import (
    PAIR,
    SMALL_ROWS,
    acknowledged_left,
    alone,
    by_content,
    by_offset,
    equal_records,
    held_left,
    matched,
    split_by_content,
)
from tidelog.spark.audit.transactions import ABORTED

_ANY_TIME = 2**62
SPARK_FENCES = "partition int, log_start_offset bigint, end_offset bigint, log_end_offset bigint"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """`rows` have the columns of pairing.PAIR, `is_superseded`, the fences of their partition and
    the facts of their run. They are made from what is `kept` on disk until the end."""

    rows: DataFrame
    held_rows: DataFrame
    """What the topic holds, once each."""
    kept: tuple[DataFrame, ...]
    outcomes: int
    held: int
    uses_timestamps: bool
    """Whether records are known again by their producer's timestamp, too."""


def pair(outcomes: DataFrame, held: DataFrame, runs: DataFrame, facts: AuditedTopic) -> Pairs:
    """Everything is computed once, and lies on disk meanwhile."""
    spark = outcomes.sparkSession
    fences = fence_frame(spark, facts)
    exact = by_offset(outcomes, held).persist(StorageLevel.DISK_ONLY)
    counted = exact.agg(
        f.count("run").alias("outcomes"),
        f.count_if(f.col("offset").isNotNull() & (f.col("claim") == 1)).alias("held"),
        f.count_if(f.col("offset").isNotNull() & f.col("timestamp_ms").isNull()).alias("appended"),
        f.count_if(f.col("run").isNotNull() & f.col("told_timestamp_ms").isNull()).alias("untimed"),
        f.count_if(f.expr("not is_match")).alias("left"),
        f.count_if(f.expr("not is_match and offset is not null")).alias("held_left"),
        f.count_if(f.expr("run is not null and told_partition is null")).alias("unplaced"),
    ).collect()[0]
    uses_timestamps = counted["appended"] == 0 and counted["untimed"] == 0
    rows = matched(exact).withColumn("is_superseded", f.lit(False))
    if counted["left"]:
        left = exact.where("not is_match").localCheckpoint()
        strays = counted["held_left"]
        rest = _rest(left, exact, fences, strays, uses_timestamps=uses_timestamps)
        if counted["unplaced"]:
            rest = _anywhere(rest.localCheckpoint(), strays, uses_timestamps=uses_timestamps)
        rows = rows.unionByName(_superseded(rest, exact, facts).localCheckpoint())
    with_facts = rows.join(f.broadcast(fences), "partition", "left").join(
        f.broadcast(runs), "run", "left"
    )
    return Pairs(
        rows=with_facts,
        held_rows=exact.where("offset is not null and claim = 1").select(
            f.col("at_partition").alias("partition"),
            *("offset", "leader_epoch", "key", "digest", "state", "is_visible"),
        ),
        kept=(exact,),
        outcomes=counted["outcomes"],
        held=counted["held"],
        uses_timestamps=uses_timestamps,
    )


def _rest(
    left: DataFrame,
    exact: DataFrame,
    fences: DataFrame,
    held_rows: int,
    *,
    uses_timestamps: bool,
) -> DataFrame:
    """What was not found by its offset, as pairs. What expired is not looked for elsewhere: it was
    where it was said to be, and an equal record is a copy."""
    missing = acknowledged_left(left).join(
        f.broadcast(fences.select("partition", "log_start_offset")), "partition", "left"
    )
    is_expired = f.coalesce(f.col("answered_offset") < f.col("log_start_offset"), f.lit(False))
    expired = missing.where(is_expired).select(*PAIR)
    sought = missing.where(~is_expired).select(*PAIR)
    strays, others = held_left(left), expired
    if held_rows > SMALL_ROWS:
        outcomes = acknowledged_left(exact)
        strays, foreign = split_by_content(strays, outcomes, uses_timestamps=uses_timestamps)
        others = expired.unionByName(alone(foreign))
    found = equal_records(exact, strays, held_rows=held_rows, uses_timestamps=uses_timestamps)
    known = found.unionByName(expired)
    return by_content(sought, strays, known, uses_timestamps=uses_timestamps).unionByName(others)


def _anywhere(rest: DataFrame, held_rows: int, *, uses_timestamps: bool) -> DataFrame:
    """What was told without a partition is looked for among what nobody was told of."""
    is_unplaced = f.col("partition").isNull()
    is_stray = f.col("run").isNull() & (f.col("state") != ABORTED)
    unplaced, strays = rest.where(is_unplaced), rest.where(is_stray)
    others = rest.where(~is_unplaced & ~is_stray)
    if held_rows > SMALL_ROWS:
        strays, foreign = split_by_content(
            strays, unplaced, uses_timestamps=uses_timestamps, is_placed=False
        )
        others = others.unionByName(foreign)
    found = by_content(
        unplaced, strays, rest.where("false"), uses_timestamps=uses_timestamps, is_placed=False
    )
    return found.unionByName(others)


def _superseded(rest: DataFrame, exact: DataFrame, facts: AuditedTopic) -> DataFrame:
    if not facts.is_compacted:
        return rest.withColumn("is_superseded", f.lit(False))
    held = exact.where("offset is not null").select(
        f.col("at_partition").alias("partition"), "key", "offset"
    )
    outcomes = exact.where("run is not null").select(
        f.col("told_partition").alias("partition"),
        f.col("told_key").alias("key"),
        f.col("told_digest").alias("digest"),
        *("outcome", "answered_offset"),
    )
    return _with_superseded(rest, held, outcomes)


def _with_superseded(missing: DataFrame, held: DataFrame, outcomes: DataFrame) -> DataFrame:
    """The pairs with `is_superseded`: a later record of its key is there, or a tombstone was.

    A compacted topic keeps the newest record of each key, so older ones may be gone. A record may
    go once a later one has its key. A tombstone (null value) goes, too, after a while, and takes
    everything of its key with it; so whatever was acknowledged before a tombstone, or is one, may
    be gone without a trace.

    `held` has partition, key and offset of what the topic holds, `outcomes` the same with outcome,
    digest and `answered_offset` of what producers were answered.
    """
    latest = held.groupBy("partition", "key").agg(f.max("offset").alias("latest_offset"))
    tombstones = outcomes.where("digest is null and outcome in ('ok', 'unknown')")
    # A tombstone of unknown fate, or without an offset, may stand anywhere.
    buried = tombstones.groupBy("partition", "key").agg(
        f.max(f.coalesce("answered_offset", f.lit(_ANY_TIME))).alias("buried_offset")
    )
    is_superseded = f.coalesce(f.col("answered_offset") < f.col("latest_offset"), f.lit(False))
    is_buried = f.coalesce(
        f.coalesce("answered_offset", f.lit(0)) <= f.col("buried_offset"), f.lit(False)
    )
    # A record without an offset may have been anywhere before the newest one of its key.
    is_somewhere = f.col("answered_offset").isNull() & f.col("latest_offset").isNotNull()
    return (
        missing.join(latest, ["partition", "key"], "left")
        .join(buried, ["partition", "key"], "left")
        .withColumn(
            "is_superseded",
            f.col("key").isNotNull() & (is_superseded | is_buried | is_somewhere),
        )
        .drop("latest_offset", "buried_offset")
    )


def fence_frame(spark: SparkSession, facts: AuditedTopic) -> DataFrame:
    """The fences of each partition: few, so that every task may have them all."""
    return spark.createDataFrame(
        [
            (each.partition, each.log_start_offset, each.end_offset, each.log_end_offset)
            for each in facts.partitions.values()
        ],
        SPARK_FENCES,
    )
