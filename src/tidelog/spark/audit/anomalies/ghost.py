"""Ghost: its producer was told that it is certainly not in the log, and there it is."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as f

from tidelog.spark.audit.findings import sentence
from tidelog.spark.audit.transactions import COMMITTED

NAME = "ghost"


def condition() -> Column:
    return (
        f.col("run").isNotNull()
        & ~f.col("is_copy")
        & (f.col("outcome") == "refused")
        & f.coalesce(f.col("state") == COMMITTED, f.lit(False))
    )


def evidence() -> Column:
    return sentence("told refused (", f.col("error"), "), but it stands at ", f.col("offset"))
