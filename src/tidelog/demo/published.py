"""What readers find where the pipeline writes: Parquet tables, or topics read as committed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from tidelog.client.admin.topics import describe_topic
from tidelog.client.consumer.fetched_records import ConsumerRecord
from tidelog.client.shells.blocking_clients import Admin, Consumer
from tidelog.core.model.ids import TopicPartition
from tidelog.demo.accounts import Group, Processed, PublishedOrders, RecordPosition, Revenue
from tidelog.demo.errors import WITHIN_S, wait_until
from tidelog.demo.pipeline_file import DEAD, REVENUE, VALID

_POLL_S = 0.1


def published_tables(directory: Path) -> PublishedOrders:
    """As any reader of Parquet sees it, knowing nothing of Tidelog."""
    dead = (RecordPosition(row["partition"], row["offset"]) for row in _rows(directory / DEAD))
    revenue = sorted(_rows(directory / REVENUE), key=lambda row: int(row["batch_id"]))
    return _published(_rows(directory / VALID), dead, revenue)


def published_topics(servers: str, topics: Mapping[str, str]) -> PublishedOrders:
    """As a reader of committed records gets it."""
    dead = (_letter(record) for record in committed(servers, topics[DEAD]))
    return _published(
        _values(committed(servers, topics[VALID])),
        dead,
        _values(committed(servers, topics[REVENUE])),
    )


def _published(
    valid: Iterable[dict[str, Any]],
    dead: Iterable[RecordPosition],
    revenue: Iterable[dict[str, Any]],
) -> PublishedOrders:
    """Of the revenue the last row of each group counts."""
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


def _letter(record: ConsumerRecord) -> RecordPosition:
    headers = {key: value or b"" for key, value in record.headers}
    return RecordPosition(int(headers["tidelog.partition"]), int(headers["tidelog.offset"]))


def committed(servers: str, topic: str) -> list[ConsumerRecord]:
    """Everything up to the end of every partition."""
    with Admin({"bootstrap.servers": servers}) as admin:
        told = admin.ask(describe_topic(topic), timeout_s=WITHIN_S)
    partitions = [TopicPartition(topic, index) for index in sorted(told.partitions)]
    settings = {
        "bootstrap.servers": servers,
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
    }
    found: list[ConsumerRecord] = []
    with Consumer(settings) as consumer:
        ends = consumer.end_offsets(partitions)
        consumer.assign(partitions)

        def is_read() -> bool:
            """Markers of transactions are passed without a record being given."""
            found.extend(consumer.poll(_POLL_S))
            return all(consumer.position(each) >= ends[each] for each in partitions)

        wait_until(is_read, f"the end of {topic}")
    return found


def ends_of(servers: str, topic: str) -> dict[int, int]:
    """Where each partition ends now."""
    with Admin({"bootstrap.servers": servers}) as admin:
        told = admin.ask(describe_topic(topic), timeout_s=WITHIN_S)
    partitions = [TopicPartition(topic, index) for index in told.partitions]
    with Consumer({"bootstrap.servers": servers}) as consumer:
        ends = consumer.end_offsets(partitions)
    return {partition.index: end for partition, end in ends.items()}


def _minute(told: datetime | str) -> str:
    return (told if isinstance(told, str) else told.isoformat())[:16]


def _cents(amount: Decimal | int) -> int:
    return round(amount * 100)
