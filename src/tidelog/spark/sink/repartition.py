"""Rows to their tasks: every output partition is written by one task and by no other."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.pandas import functions
from pyspark.sql.types import IntegerType

from tidelog.spark.sink.output_partitions import OUTPUT, OutputPartitions
from tidelog.spark.sink.shape import KEY, ORDER, PARTITION, TOPIC, VALUE


def repartitioned(frame: DataFrame, outputs: OutputPartitions, *, writers: int) -> DataFrame:
    """A shaped frame with the output partition of each row, in `writers` partitions of Spark."""
    with_output = frame.withColumn(OUTPUT, _output_column(frame, outputs)).drop(TOPIC, PARTITION)
    if writers == 1:
        spread = with_output.repartition(1)
    else:
        spread = with_output.repartitionById(writers, sql.col(OUTPUT) % sql.lit(writers))
    orders = [name for name in frame.columns if name.startswith(ORDER)]
    if not orders:
        return spread
    return spread.sortWithinPartitions(OUTPUT, *orders).drop(*orders)


def _output_column(frame: DataFrame, outputs: OutputPartitions) -> Column:
    """A function of the columns that decide; Python sees no others, and none if there are none."""
    names = [name for name in (TOPIC, KEY, PARTITION) if name in frame.columns]
    if not names:
        # Spark numbers the rows of no stream; there the value decides, which is nearly as even.
        number = sql.xxhash64(VALUE) if frame.isStreaming else sql.monotonically_increasing_id()
        return sql.pmod(number, sql.lit(len(outputs))).cast("int")
    arrow_udf: Any = functions.arrow_udf  # it infers from the hints, of which its stub knows less

    def choose(*columns: pa.Array) -> pa.Array:
        return _numbers_of(outputs, dict(zip(names, columns, strict=True)))

    column: Column = arrow_udf(choose, IntegerType())(*[frame[name] for name in names])
    return column


def _numbers_of(outputs: OutputPartitions, columns: dict[str, pa.Array]) -> pa.Array:
    context = TaskContext.get()
    numbers = outputs.of_rows(
        topics=columns.get(TOPIC),
        keys=columns.get(KEY),
        partitions=columns.get(PARTITION),
        rows=len(next(iter(columns.values()))),
        task=0 if context is None else context.partitionId(),
    )
    return pa.array(numbers)
