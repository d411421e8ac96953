"""Rows made one by one in a task, handed over as Arrow batches of a fair size."""

from __future__ import annotations

import pyarrow as pa


class RowBuffer:
    """Rows made one by one, handed over as Arrow batches of a fair size."""

    ROWS_MAX = 16_384

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._columns: list[list[object]] = [[] for _ in schema]

    def append(self, *row: object) -> None:
        for column, value in zip(self._columns, row, strict=True):
            column.append(value)

    @property
    def is_full(self) -> bool:
        return len(self._columns[0]) >= self.ROWS_MAX

    def take(self) -> pa.RecordBatch:
        arrays = [
            pa.array(column, field.type)
            for column, field in zip(self._columns, self._schema, strict=True)
        ]
        self._columns = [[] for _ in self._schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)
