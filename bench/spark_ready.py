"""What Spark takes from a source in Python at most: columns that are ready, nothing to fetch.

Each task hands the same Arrow batch over again and again, so neither brokers nor decoding cost
anything. No source in Python can be faster with rows like these on the same machine.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from bench.spark_loads import KEY_BYTES, PARTITIONS
from tidelog.spark.columns.chunks import CHUNK_BYTES
from tidelog.spark.source.data_source import source_schema
from tidelog.spark.source.slice_reader import source_row_schema

FORMAT = "ready"
RECORDS, VALUE_BYTES = "records", "valuebytes"
"""Its options: how many rows, and how long a value."""
_BESIDES_BYTES = 40
"""Of a row, besides key and value."""


class ReadySource(DataSource):
    """Rows like those of the real source."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return source_schema(with_headers=False)

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader(int(self.options[RECORDS]), int(self.options[VALUE_BYTES]))


class _Reader(DataSourceReader):
    def __init__(self, records: int, value_bytes: int) -> None:
        self._records = records
        self._value_bytes = value_bytes

    def partitions(self) -> list[InputPartition]:
        share, rest = divmod(self._records, PARTITIONS)
        return [InputPartition(share + (index < rest)) for index in range(PARTITIONS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        rows = CHUNK_BYTES // (KEY_BYTES + self._value_bytes + _BESIDES_BYTES)
        ready = _batch(rows, self._value_bytes)
        for start in range(0, partition.value, rows):
            yield ready.slice(0, min(rows, partition.value - start))


def _batch(rows: int, value_bytes: int) -> pa.RecordBatch:
    row = (b"k" * KEY_BYTES, b"v" * value_bytes, "bench-1", 0, 0, 0, 0)
    schema = source_row_schema(with_headers=False)
    arrays = [pa.array([cell] * rows, kind) for cell, kind in zip(row, schema.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
