"""Pairs what producers were answered with what the topic holds: by offset, then by content.

An answer names an offset, so most records are found there at once: same key, same value. What is
left over is paired by content: partition, key, value and the producer's timestamp. Of equal records
each one with an outcome gets one of the log, in order, so that none is found twice, and none is
missed because an equal one is there. What the log has more is a copy.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from tidelog.spark.audit.transactions import ABORTED

BY_OFFSET, BY_CONTENT = "offset", "content"
_OUTCOME = (
    *("run", "line", "number", "outcome", "is_committed", "answered_offset"),
    *("error", "reason", "sent_us", "answered_us"),
)
_HELD = ("offset", "leader_epoch", "state", "is_visible")
_CONTENT = ("partition", "key", "digest", "timestamp_ms")
PAIR = (*_OUTCOME, *_CONTENT, *_HELD, "standing_epoch", "matched_by", "is_copy")
"""A pair has what was told (all null: nobody was told of it), what is held (all null: nothing is),
or both. `standing_epoch` is the leader epoch of another record that stands where this one was said
to be. A copy is a record of the log that repeats one with an outcome, and names that one."""
_PRIORITY = ("ok", "unknown", "aborted", "refused")
"""Who gets a record first that several may claim: accusations come last."""
SMALL_ROWS = 100_000
"""Up to this many rows are sent to every task instead of being shuffled."""


def by_offset(outcomes: DataFrame, held: DataFrame) -> DataFrame:
    """Each told record with what stands at its offset, and `is_match`: whether that is it.

    A record that stands alone, or has an outcome without an offset, has a row of its own.
    """
    ours = outcomes.select(
        *(name for name in _OUTCOME if name != "answered_offset"),
        f.col("offset").alias("answered_offset"),
        f.col("partition").alias("told_partition"),
        f.col("key").alias("told_key"),
        f.col("digest").alias("told_digest"),
        f.col("timestamp_ms").alias("told_timestamp_ms"),
        # Where there is no offset nothing shall match, and the rows shall not meet in one task.
        f.coalesce("partition", f.lit(-1)).alias("at_partition"),
        f.coalesce(f.col("offset"), -1 - f.col("number")).alias("at_offset"),
    )
    theirs = held.select(
        f.col("partition").alias("at_partition"),
        f.col("offset").alias("at_offset"),
        *("offset", "leader_epoch", "key", "digest", "timestamp_ms", "state", "is_visible"),
    )
    is_same = (
        f.col("run").isNotNull()
        & f.col("offset").isNotNull()
        & f.col("key").eqNullSafe(f.col("told_key"))
        & f.col("digest").eqNullSafe(f.col("told_digest"))
    )
    claims = Window.partitionBy("at_partition", "at_offset").orderBy(
        f.col("is_same").desc(), "run", "number"
    )
    return (
        ours.join(theirs, ["at_partition", "at_offset"], "full_outer")
        .withColumn("is_same", is_same)
        .withColumn("claim", f.row_number().over(claims))
        .withColumn("is_match", f.col("is_same") & (f.col("claim") == 1))
        .drop("is_same", "at_offset")
    )


def matched(exact: DataFrame) -> DataFrame:
    """Those that are where they were said to be, as pairs."""
    return exact.where("is_match").select(
        *_OUTCOME,
        f.col("at_partition").alias("partition"),
        *("key", "digest", "timestamp_ms", *_HELD),
        f.lit(None).cast("int").alias("standing_epoch"),
        f.lit(BY_OFFSET).alias("matched_by"),
        f.lit(False).alias("is_copy"),
    )


def acknowledged_left(left: DataFrame) -> DataFrame:
    """What was told and is not where it was said to be, as pairs without a partner."""
    nothing = {"offset": "bigint", "leader_epoch": "int", "state": "tinyint"}
    return left.where("run is not null").select(
        *_OUTCOME,
        f.col("told_partition").alias("partition"),
        f.col("told_key").alias("key"),
        f.col("told_digest").alias("digest"),
        f.col("told_timestamp_ms").alias("timestamp_ms"),
        *(f.lit(None).cast(kind).alias(name) for name, kind in nothing.items()),
        f.lit(None).cast("boolean").alias("is_visible"),
        f.col("leader_epoch").alias("standing_epoch"),
        f.lit(None).cast("string").alias("matched_by"),
        f.lit(False).alias("is_copy"),
    )


def held_left(left: DataFrame) -> DataFrame:
    """What is held and was not told of there, once each."""
    return left.where("offset is not null and claim = 1").select(
        f.col("at_partition").alias("partition"), "key", "digest", "timestamp_ms", *_HELD
    )


def equal_records(
    exact: DataFrame, held: DataFrame, *, held_rows: int, uses_timestamps: bool
) -> DataFrame:
    """Of what was found by its offset, the records whose equals are left over."""
    wanted = held.where(f.col("state") != ABORTED).select(
        *(f.col(name).alias(f"left_{name}") for name in _CONTENT)
    )
    if held_rows <= SMALL_ROWS:
        wanted = f.broadcast(wanted)
    return matched(exact).join(wanted, _is_equal("left", uses_timestamps), "left_semi")


def split_by_content(
    held: DataFrame, outcomes: DataFrame, *, uses_timestamps: bool, is_placed: bool = True
) -> tuple[DataFrame, DataFrame]:
    """Left-over records that equal one with an outcome, and those of other writers.

    A topic may have many others. They need no partner, so they are not gathered by content: equal
    ones would all meet in one row.
    """
    ours = outcomes.select(*(f.col(name).alias(f"answered_{name}") for name in _CONTENT))
    is_equal = _is_equal("answered", uses_timestamps, is_placed=is_placed)
    return held.join(ours, is_equal, "left_semi"), held.join(ours, is_equal, "left_anti")


def _is_equal(other: str, uses_timestamps: bool, *, is_placed: bool = True) -> Column:
    """The same content as that in the columns `OTHER_key`, `OTHER_digest` and so on."""
    is_equal = f.col("key").eqNullSafe(f.col(f"{other}_key")) & f.col("digest").eqNullSafe(
        f.col(f"{other}_digest")
    )
    if is_placed:
        is_equal &= f.col("partition") == f.col(f"{other}_partition")
    if uses_timestamps:
        is_equal &= f.col("timestamp_ms") == f.col(f"{other}_timestamp_ms")
    return is_equal


def by_content(
    outcomes: DataFrame,
    held: DataFrame,
    equal_records: DataFrame,
    *,
    uses_timestamps: bool,
    is_placed: bool = True,
) -> DataFrame:
    """Left-over records of both sides as pairs; what has no partner stands alone.

    Equal records come together, those with an outcome in the order in which they may claim one.
    What the log has more is a copy of the first with an outcome, found or not. What has an outcome
    without a partition may be in any: then `is_placed` is false.
    """
    identity = _identity(uses_timestamps, is_placed)
    priority = f.array_position(f.array(*map(f.lit, _PRIORITY)), f.col("outcome"))
    outcome_columns = (*_OUTCOME, *_CONTENT, "standing_epoch")
    claim = f.struct(
        priority.alias("priority"), "run", "number", f.struct(*outcome_columns).alias("t")
    )
    record = f.struct("offset", f.struct(*_CONTENT, *_HELD).alias("h"))
    usable = held.where(f.col("state") != ABORTED)
    together = (
        outcomes.select(identity, claim.alias("claim"))
        .unionByName(usable.select(identity, record.alias("record")), allowMissingColumns=True)
        .unionByName(equal_records.select(identity, claim.alias("equal")), allowMissingColumns=True)
        .groupBy("identity")
        .agg(
            f.sort_array(f.collect_list("claim")).alias("claims"),
            f.sort_array(f.collect_list("record")).alias("records"),
            f.min("equal").alias("equal"),
        )
        .withColumn("first", f.coalesce("equal", f.try_element_at(_promised(), f.lit(1))))
        .select("first", f.explode(f.arrays_zip("claims", "records")).alias("pair"))
        .select("first", "pair.claims.t", "pair.records.h")
    )
    return _as_pairs(together).unionByName(alone(held.where(f.col("state") == ABORTED)))


def _as_pairs(together: DataFrame) -> DataFrame:
    """`t` was told and `h` is held; what is held alone is a copy of the `first` that was told."""
    is_copy = f.col("t").isNull() & f.col("first").isNotNull()
    is_found = f.col("t").isNotNull() & f.col("h").isNotNull()
    whose = f.when(is_copy, f.col("first.t")).otherwise(f.col("t"))
    content = (
        f.when(f.col("h").isNotNull(), f.col(f"h.{name}")).otherwise(f.col(f"t.{name}")).alias(name)
        for name in _CONTENT
    )
    return together.select("t", "h", is_copy.alias("is_copy"), whose.alias("of")).select(
        *(f.col(f"of.{name}").alias(name) for name in _OUTCOME),
        *content,
        *(f.col(f"h.{name}").alias(name) for name in _HELD),
        f.col("t.standing_epoch").alias("standing_epoch"),
        f.when(is_found, BY_CONTENT).alias("matched_by"),
        "is_copy",
    )


def _promised() -> Column:
    """Claims of records that may be in the log: one that was refused has none."""
    return f.filter("claims", lambda each: each["t"]["outcome"] != "refused")


def _identity(uses_timestamps: bool, is_placed: bool) -> Column:
    """Everything by which a record is known again, as one text in which nothing is null."""
    parts = [
        f.col("partition") if is_placed else f.lit(None),
        f.hex("key"),
        f.hex("digest"),
        f.col("timestamp_ms") if uses_timestamps else f.lit(None),
    ]
    texts = (f.coalesce(part.cast("string"), f.lit("-")) for part in parts)
    return f.concat_ws("/", *texts).alias("identity")


def alone(held: DataFrame) -> DataFrame:
    """Records that nobody is paired with, as pairs."""
    nothing = {
        **dict.fromkeys(("run", "standing_epoch"), "int"),
        **dict.fromkeys(("line", "number", "answered_offset", "sent_us", "answered_us"), "bigint"),
        **dict.fromkeys(("outcome", "error", "reason", "matched_by"), "string"),
        "is_committed": "boolean",
    }
    return held.select(
        *_CONTENT,
        *_HELD,
        *(f.lit(None).cast(kind).alias(name) for name, kind in nothing.items()),
        f.lit(False).alias("is_copy"),
    ).select(*PAIR)
