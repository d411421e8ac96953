"""Aborted but read: a record of an aborted transaction that readers of commits are given."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from tidelog.spark.audit.findings import bare_finding, sentence
from tidelog.spark.audit.transactions import ABORTED, COMMITTED

NAME = "aborted but read"


def condition() -> Column:
    """Its producer was told of the abort and the log commits it; or the log's own marker aborts it
    and the brokers do not tell their readers."""
    is_told = f.coalesce(f.col("outcome") == "aborted", f.lit(False)) & ~f.col("is_copy")
    is_kept = f.coalesce(f.col("state") == COMMITTED, f.lit(False)) & f.col("is_visible")
    is_shown = f.coalesce((f.col("state") == ABORTED) & f.col("is_visible"), f.lit(False))
    return (is_told & f.coalesce(is_kept, f.lit(False))) | is_shown


def evidence() -> Column:
    why = f.when(f.col("state") == ABORTED, "the log has an abort marker behind it").otherwise(
        "its producer was told that the transaction is aborted"
    )
    return sentence(why, ", but readers are given it at ", f.col("offset"))


def aborted_published(published: DataFrame, held: DataFrame) -> DataFrame:
    """What a sink published of records whose transaction was aborted."""
    aborted = held.where(f.col("state") == ABORTED).select("partition", "offset", "leader_epoch")
    read = published.join(aborted, ["partition", "offset"])
    text = sentence("its transaction was aborted, but ", f.col("place"), " was made of it")
    return bare_finding(read, NAME, text)
