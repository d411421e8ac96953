"""What tasks report to the driver: a row for each partition that they wrote, or their error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from typing import Any

import pyarrow as pa

from tidelog.client.sink import errors
from tidelog.client.sink.errors import BatchLost, SinkError
from tidelog.client.sink.values import Receipt

_TEXTS = ("topic", "error", "reason")
_NUMBERS = tuple(each.name for each in fields(Receipt) if each.name != "topic")
SCHEMA = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in _TEXTS),
        *(pa.field(name, pa.int64()) for name in _NUMBERS),
    ]
)
SPARK_SCHEMA = ", ".join(
    [*(f"{name} string" for name in _TEXTS), *(f"{name} bigint" for name in _NUMBERS)]
)


def table_of(receipts: Iterable[Receipt]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([asdict(each) for each in receipts], schema=SCHEMA)


def table_of_error(error: SinkError) -> pa.RecordBatch:
    """A task that cannot go on says so and ends well: run again it would only fail again."""
    row = {"error": type(error).__name__, "reason": str(error)}
    return pa.RecordBatch.from_pylist([row], schema=SCHEMA)


def receipts_of(rows: Iterable[Mapping[str, Any]]) -> list[Receipt]:
    """The receipts; the error of a task is raised."""
    found = list(rows)
    failed = [row for row in found if row["error"] is not None]
    if failed:
        # What is final explains what is not.
        raise max((_error(row) for row in failed), key=lambda error: error.is_final)
    names = ("topic", *_NUMBERS)
    return [Receipt(**{name: row[name] for name in names}) for row in found]


def _error(row: Mapping[str, Any]) -> SinkError:
    kind = getattr(errors, row["error"], BatchLost)
    assert issubclass(kind, SinkError)
    error: SinkError = kind(row["reason"])
    return error
