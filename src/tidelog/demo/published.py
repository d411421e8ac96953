"""What readers find where the pipeline writes: Parquet tables, and topics read as committed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from tidelog.client.consumer.fetched_records import ConsumerRecord
from tidelog.demo.accounts import (
    Processed,
    PublishedOrders,
    RecordPosition,
    Revenue,
    RevenueResult,
)
from tidelog.demo.pipeline_file import DEAD, REVENUE, VALID
from tidelog.demo.topics import read_committed


def published_tables(directory: Path, servers: str, *, revenue: str) -> PublishedOrders:
    """Read the tables as any reader of Parquet would, and the revenue topic."""
    dead = (RecordPosition(row["partition"], row["offset"]) for row in _rows(directory / DEAD))
    return _published(_rows(directory / VALID), dead, read_committed(servers, revenue))


def published_topics(servers: str, topics: Mapping[str, str]) -> PublishedOrders:
    """Read the topics as a read_committed consumer."""
    dead = (_dead_letter_position(record) for record in read_committed(servers, topics[DEAD]))
    valid = _values(read_committed(servers, topics[VALID]))
    return _published(valid, dead, read_committed(servers, topics[REVENUE]))


def _published(
    valid: Iterable[dict[str, Any]],
    dead: Iterable[RecordPosition],
    revenue: Iterable[ConsumerRecord],
) -> PublishedOrders:
    results = tuple(
        RevenueResult(
            (_minute(row["minute"]), row["country"]),
            Revenue(row["orders"], _cents(row["revenue"])),
        )
        for row in _values(revenue)
    )
    processed = tuple(
        Processed(
            row["order_id"],
            _cents(row["amount"]),
            RecordPosition(row["source_partition"], row["source_offset"]),
        )
        for row in valid
    )
    return PublishedOrders(processed=processed, dead=tuple(dead), results=results)


def _rows(table: Path) -> list[dict[str, Any]]:
    import pyarrow.dataset as ds

    if not table.is_dir():
        return []
    found = ds.dataset(table, format="parquet", partitioning="hive")
    return list(found.to_table().to_pylist())


def _values(records: Iterable[ConsumerRecord]) -> list[dict[str, Any]]:
    return [json.loads(record.value or b"", parse_float=Decimal) for record in records]


def _dead_letter_position(record: ConsumerRecord) -> RecordPosition:
    headers = {key: value or b"" for key, value in record.headers}
    return RecordPosition(int(headers["tidelog.partition"]), int(headers["tidelog.offset"]))


def _minute(time: str) -> str:
    return time[:16]


def _cents(amount: Decimal | int) -> int:
    return round(amount * 100)
