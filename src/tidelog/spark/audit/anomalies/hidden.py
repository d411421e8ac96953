"""Hidden: a committed record that brokers tell their readers to skip."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as f

from tidelog.spark.audit.findings import sentence
from tidelog.spark.audit.transactions import COMMITTED

NAME = "hidden"


def condition() -> Column:
    return f.coalesce((f.col("state") == COMMITTED) & ~f.col("is_visible"), f.lit(False))


def evidence() -> Column:
    return sentence(
        "its transaction is committed, but readers are told to skip it at ", f.col("offset")
    )
