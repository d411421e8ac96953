"""Rows to their tasks: every output partition is written by one task and by no other."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.pandas import functions
from pyspark.sql.types import IntegerType

from tidelog.spark.sink.places import PLACE, Places
from tidelog.spark.sink.shape import KEY, ORDER, PARTITION, TOPIC, VALUE


def placed(frame: DataFrame, places: Places, *, writers: int) -> DataFrame:
    """A shaped frame with the place of each row, in `writers` partitions of Spark."""
    with_place = frame.withColumn(PLACE, _place(frame, places)).drop(TOPIC, PARTITION)
    if writers == 1:
        spread = with_place.repartition(1)
    else:
        spread = with_place.repartitionById(writers, sql.col(PLACE) % sql.lit(writers))
    orders = [name for name in frame.columns if name.startswith(ORDER)]
    if not orders:
        return spread
    return spread.sortWithinPartitions(PLACE, *orders).drop(*orders)


def _place(frame: DataFrame, places: Places) -> Column:
    """A function of the columns that decide; Python sees no others, and none if there are none."""
    names = [name for name in (TOPIC, KEY, PARTITION) if name in frame.columns]
    if not names:
        # Spark numbers the rows of no stream; there the value decides, which is nearly as even.
        number = sql.xxhash64(VALUE) if frame.isStreaming else sql.monotonically_increasing_id()
        return sql.pmod(number, sql.lit(len(places))).cast("int")
    arrow_udf: Any = functions.arrow_udf  # it infers from the hints, of which its stub knows less

    def place(*columns: pa.Array) -> pa.Array:
        return _places_of(places, dict(zip(names, columns, strict=True)))

    column: Column = arrow_udf(place, IntegerType())(*[frame[name] for name in names])
    return column


def _places_of(places: Places, columns: dict[str, pa.Array]) -> pa.Array:
    context = TaskContext.get()
    numbers = places.of_rows(
        topics=columns.get(TOPIC),
        keys=columns.get(KEY),
        partitions=columns.get(PARTITION),
        rows=len(next(iter(columns.values()))),
        task=0 if context is None else context.partitionId(),
    )
    return pa.array(numbers)
