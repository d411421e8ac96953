"""A tiny Python data source that answers with Arrow batches, and a function for Spark's workers."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

PER_PARTITION = 10


class Numbers(DataSource):
    """`format("arrow-numbers")`: one column, ten numbers in each of two partitions."""

    @classmethod
    def name(cls) -> str:
        return "arrow-numbers"

    def schema(self) -> str:
        return "number bigint"

    def reader(self, schema: object) -> DataSourceReader:
        return NumbersReader()


class NumbersReader(DataSourceReader):
    def partitions(self) -> list[InputPartition]:
        return [InputPartition(0), InputPartition(1)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        start = partition.value * PER_PARTITION
        numbers = pa.array(range(start, start + PER_PARTITION), pa.int64())
        yield pa.RecordBatch.from_arrays([numbers], ["number"])


def doubled(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For mapInArrow."""
    for batch in batches:
        numbers = pa.array([2 * number.as_py() for number in batch.column(0)], pa.int64())
        yield pa.RecordBatch.from_arrays([numbers], ["number"])
