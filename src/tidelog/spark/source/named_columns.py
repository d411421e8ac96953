"""The columns that say where a record comes from, the same in every row of a slice."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidelog.core.model.ids import TopicPartition
from tidelog.spark.columns.decode import record_schema

_TOPIC = pa.field("topic", pa.string())
_PARTITION = pa.field("partition", pa.int32())


class NamedColumns:
    """Made once for the largest batch so far; smaller ones get a part of them."""

    def __init__(self, partition: TopicPartition) -> None:
        self._partition = partition
        self._topics = pa.array([], pa.string())
        self._indexes = pa.array([], pa.int32())

    def add_to(self, columns: pa.RecordBatch) -> pa.RecordBatch:
        """Key, value, topic, partition, offset and the rest, as Spark's Kafka source has them."""
        rows = columns.num_rows
        if rows > len(self._topics):
            self._grow(rows)
        arrays = columns.columns
        where = [self._topics.slice(0, rows), self._indexes.slice(0, rows)]
        return pa.RecordBatch.from_arrays(
            [*arrays[:2], *where, *arrays[2:]], schema=row_schema(columns.schema)
        )

    def _grow(self, rows: int) -> None:
        name = self._partition.topic.encode()
        starts = np.arange(rows + 1, dtype=np.int32) * np.int32(len(name))
        buffers = [None, pa.py_buffer(starts), pa.py_buffer(name * rows)]
        self._topics = pa.Array.from_buffers(pa.string(), rows, buffers)
        self._indexes = pa.array(np.full(rows, self._partition.index, dtype=np.int32))


def row_schema(records: pa.Schema) -> pa.Schema:
    """The schema of rows, from that of records."""
    fields = list(records)
    return pa.schema([*fields[:2], _TOPIC, _PARTITION, *fields[2:]])


def rows_of(*, with_headers: bool) -> pa.Schema:
    """What a source gives to Spark."""
    return row_schema(record_schema(with_headers=with_headers))
