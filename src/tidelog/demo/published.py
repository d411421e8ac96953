"""What readers find where the pipeline writes: Parquet tables, or topics read as committed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from tidelog.client.consumer.fetched_records import ConsumerRecord
from tidelog.demo.accounts import Group, Processed, PublishedOrders, RecordPosition, Revenue
from tidelog.demo.pipeline_file import DEAD, REVENUE, VALID
from tidelog.demo.topics import read_committed


def published_tables(directory: Path) -> PublishedOrders:
    """Read the tables as any reader of Parquet would."""
    dead = (RecordPosition(row["partition"], row["offset"]) for row in _rows(directory / DEAD))
    revenue = sorted(_rows(directory / REVENUE), key=lambda row: int(row["batch_id"]))
    return _published(_rows(directory / VALID), dead, revenue)


def published_topics(servers: str, topics: Mapping[str, str]) -> PublishedOrders:
    """Read the topics as a read_committed consumer."""
    dead = (_dead_letter_position(record) for record in read_committed(servers, topics[DEAD]))
    return _published(
        _values(read_committed(servers, topics[VALID])),
        dead,
        _values(read_committed(servers, topics[REVENUE])),
    )


def _published(
    valid: Iterable[dict[str, Any]],
    dead: Iterable[RecordPosition],
    revenue: Iterable[dict[str, Any]],
) -> PublishedOrders:
    """The last revenue row of each group counts."""
    groups: dict[Group, Revenue] = {}
    for row in revenue:
        groups[_minute(row["minute"]), row["country"]] = Revenue(
            row["orders"], _cents(row["revenue"])
        )
    processed = tuple(
        Processed(
            row["order_id"],
            _cents(row["amount"]),
            RecordPosition(row["source_partition"], row["source_offset"]),
        )
        for row in valid
    )
    return PublishedOrders(processed=processed, dead=tuple(dead), revenue=groups)


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


def _minute(time: datetime | str) -> str:
    return (time if isinstance(time, str) else time.isoformat())[:16]


def _cents(amount: Decimal | int) -> int:
    return round(amount * 100)
