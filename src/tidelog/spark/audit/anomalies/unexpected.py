"""Unexpected: a record that no journal knows of, where every writer should have kept one."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as f

from tidelog.spark.audit.findings import sentence
from tidelog.spark.audit.transactions import COMMITTED

NAME = "unexpected"


def condition() -> Column:
    """Only a finding when somebody vouches for the journals: others may write, too."""
    return f.col("run").isNull() & f.coalesce(f.col("state") == COMMITTED, f.lit(False))


def evidence() -> Column:
    return sentence("stands at ", f.col("offset"), ", and no journal knows of it")
