"""What producers were answered, as a DataFrame: one row for each record of each run.

A record in a transaction has two outcomes, its own and the transaction's; here they are one: *ok*
only if both are good, *aborted* if the transaction was told to be so, *unknown* if nobody said.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tidelog.spark.audit.journal_columns import SPARK_SCHEMA, read_slice
from tidelog.spark.audit.journal_index import JournalRun
from tidelog.spark.audit.tasks import per_item

SPARK_OUTCOMES = (
    "run int, line bigint, number bigint, key binary, digest binary, partition int, "
    "offset bigint, outcome string, is_committed boolean, error string, reason string, "
    "timestamp_ms bigint, sent_us bigint, answered_us bigint"
)
"""`is_committed`: its producer was answered that the transaction is committed."""
SPARK_RUNS = (
    "run int, name string, journal string, acks string, is_idempotent boolean, is_cut boolean, "
    "is_mixed boolean, began_ms bigint, began_us bigint"
)


def acknowledged_frame(spark: SparkSession, runs: Sequence[JournalRun]) -> DataFrame:
    """The entries of these runs' journals."""
    slices = [each for run in runs for each in run.slices]
    lines = per_item(spark, slices, read_slice, SPARK_SCHEMA)
    return with_transactions(lines, any(run.is_transactional for run in runs))


def with_transactions(lines: DataFrame, is_transactional: bool) -> DataFrame:
    """One outcome for each record; the lines about transactions themselves are gone."""
    entries = lines.where("number is not null")
    if not is_transactional:
        return entries.drop("transaction").withColumn("is_committed", f.lit(False))
    endings = lines.where("number is null").select(
        "run", "transaction", f.col("outcome").alias("ending")
    )
    outcome = (
        f.when(f.col("transaction").isNull() | (f.col("outcome") != "ok"), f.col("outcome"))
        .when(f.col("ending") == "committed", "ok")
        .when(f.col("ending") == "aborted", "aborted")
        .otherwise("unknown")
    )
    return (
        entries.join(f.broadcast(endings), ["run", "transaction"], "left")
        .withColumn("outcome", outcome)
        .withColumn("is_committed", f.coalesce(f.col("ending") == "committed", f.lit(False)))
        .drop("transaction", "ending")
    )


def run_frame(spark: SparkSession, runs: Sequence[JournalRun]) -> DataFrame:
    """The runs themselves: few, so that every task may have them all."""
    return spark.createDataFrame(
        [
            (
                run.index,
                run.name,
                run.path,
                run.acks,
                run.is_idempotent,
                run.is_cut,
                run.is_mixed,
                run.began_ms,
                run.began_us,
            )
            for run in runs
        ],
        SPARK_RUNS,
    )
