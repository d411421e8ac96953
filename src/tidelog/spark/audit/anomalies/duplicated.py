"""Duplicated: a record that was sent once stands in the log again."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as f

from tidelog.spark.audit.findings import sentence
from tidelog.spark.audit.transactions import COMMITTED

NAME = "duplicated"


def condition(*, is_certain: bool) -> Column:
    """A copy with the same key, value and producer's timestamp as a told record, beyond as many as
    were told.

    Where the broker sets timestamps, another writer's equal record looks the same: then it is
    certain only if all writers keep journals.
    """
    is_repeated = f.col("is_copy") & (f.col("state") == COMMITTED)
    return is_repeated if is_certain else f.lit(False)


def evidence() -> Column:
    first = f.when(f.col("told_offset").isNull(), "").otherwise(
        sentence(", told at offset ", f.col("told_offset"))
    )
    kind = f.when(f.col("is_idempotent"), "an idempotent").otherwise("a non-idempotent")
    return sentence(
        "stands at ",
        f.col("offset"),
        ", too: record ",
        f.col("number"),
        " of ",
        kind,
        " producer was sent once (told ",
        f.col("outcome"),
        first,
        ")",
    )
