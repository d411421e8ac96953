"""Lost: its producer was told ok, and the topic does not hold it."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as f

from tidelog.spark.audit.findings import sentence
from tidelog.spark.audit.transactions import ABORTED

NAME = "lost"


def condition() -> Column:
    """Not where it was said to be, nor elsewhere, and nothing explains it.

    What explains it: retention took the head of the log (offset below the log's start, or no
    offset told and the head is gone), compaction replaced it, or it is on the leader and nobody
    may read it yet. Also lost is what a log aborts although its producer was told of the commit.
    """
    offset = f.col("told_offset")
    may_be_gone = f.coalesce(
        f.when(offset.isNotNull(), offset < f.col("log_start_offset")).otherwise(
            f.col("log_start_offset") > 0
        ),
        f.lit(False),
    )
    is_waiting = f.coalesce(
        (offset >= f.col("end_offset")) & (offset < f.col("log_end_offset")), f.lit(False)
    )
    is_absent = f.col("offset").isNull() & ~may_be_gone & ~is_waiting & ~f.col("is_superseded")
    is_undone = f.col("is_committed") & (f.col("state") == ABORTED)
    is_told = f.col("run").isNotNull() & ~f.col("is_copy") & (f.col("outcome") == "ok")
    return is_told & (is_absent | f.coalesce(is_undone, f.lit(False)))


def evidence() -> Column:
    where = f.when(f.col("told_offset").isNull(), "without an offset").otherwise(
        sentence("at offset ", f.col("told_offset"))
    )
    now = (
        f.when(f.col("state") == ABORTED, "the log says that its transaction was aborted")
        .when(f.col("end_offset").isNull(), sentence("there is no partition ", f.col("partition")))
        .when(
            f.col("standing_epoch").isNotNull(),
            sentence("another record of leader epoch ", f.col("standing_epoch"), " stands there"),
        )
        .when(
            f.col("told_offset") >= f.col("end_offset"),
            sentence("the log ends at ", f.col("end_offset")),
        )
        .otherwise("the log does not hold it")
    )
    return sentence("told ok ", where, " (acks=", f.col("acks"), "), but ", now)
