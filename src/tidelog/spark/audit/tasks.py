"""Work of an audit as tasks of Spark: one task for each item, Arrow batches out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")
ROWS_PER_TASK = 400_000
ROWS_TO_COMPILE_FOR = 50_000


def own_session(spark: SparkSession) -> SparkSession:
    """A session beside the given one, on the same Spark, with the settings that audits like.

    How many rows there are is known before, so tasks are planned once instead of at every stage.
    """
    own = spark.newSession()
    own.conf.set("spark.sql.session.timeZone", "UTC")
    own.conf.set("spark.sql.adaptive.enabled", "false")
    return own


def size_for(spark: SparkSession, rows: int) -> None:
    """As many tasks as so many rows need; for a handful one, and nothing is compiled for them."""
    is_small = rows < ROWS_TO_COMPILE_FOR
    least = 1 if is_small else int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    tasks = max(least, math.ceil(rows / ROWS_PER_TASK))
    spark.conf.set("spark.sql.shuffle.partitions", str(tasks))
    spark.conf.set("spark.sql.codegen.wholeStage", "false" if is_small else "true")
    spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN" if is_small else "FALLBACK")


def per_item(
    spark: SparkSession,
    items: Sequence[T],
    work: Callable[[T], Iterator[pa.RecordBatch]],
    schema: str,
) -> DataFrame:
    """The rows that `work` makes of each item; items and work go to Spark's Python workers.

    A task for each, unless `size_for` was given a handful of rows.
    """
    if not items:
        return spark.createDataFrame([], schema)
    is_small = spark.conf.get("spark.sql.codegen.wholeStage") == "false"
    tasks = 1 if is_small else len(items)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from work(items[number])

    return spark.range(0, len(items), 1, tasks).mapInArrow(run, schema)
