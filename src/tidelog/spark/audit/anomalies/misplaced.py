"""Misplaced: an ok answer names an offset, but the record stands elsewhere.

A log never moves a record. So the one that was acknowledged is gone, and this is another copy: of
an earlier or later attempt, or brought back by an unclean leader.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as f

from tidelog.spark.audit.findings import sentence
from tidelog.spark.audit.pairing import BY_CONTENT
from tidelog.spark.audit.transactions import ABORTED

NAME = "misplaced"


def condition() -> Column:
    return (
        f.col("run").isNotNull()
        & ~f.col("is_copy")
        & (f.col("outcome") == "ok")
        & f.col("told_offset").isNotNull()
        & f.coalesce(f.col("matched_by") == BY_CONTENT, f.lit(False))
        & f.coalesce(f.col("state") != ABORTED, f.lit(False))
    )


def evidence() -> Column:
    return sentence(
        "told ok at offset ",
        f.col("told_offset"),
        " (acks=",
        f.col("acks"),
        "), but it stands at ",
        f.col("offset"),
    )
