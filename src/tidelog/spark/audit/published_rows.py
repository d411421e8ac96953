"""What a sink published, in the tasks of an audit: of which source record each was made.

A published record names its source in one of three ways (docs/spark-audit.md):

- a header `tidelog-source` with the text `TOPIC/PARTITION/OFFSET`;
- fields `source_partition` and `source_offset` (and `source_topic`) of a value that is JSON;
- columns of these names in a table.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa

from tidelog.spark.audit.batches import Judged, decoded
from tidelog.spark.audit.row_buffer import RowBuffer

HEADER = "tidelog-source"
TOPIC, PARTITION, OFFSET = "source_topic", "source_partition", "source_offset"
PUBLISHED = pa.schema(
    [
        (TOPIC, pa.string()),
        (PARTITION, pa.int32()),
        (OFFSET, pa.int64()),
        ("place", pa.string()),
    ]
)
"""`place` says where it was published. Without a partition: it does not name its source."""
SPARK_PUBLISHED = "source_topic string, source_partition int, source_offset bigint, place string"


def published_rows(
    view: memoryview,
    judged: list[Judged],
    *,
    topic: str,
    partition: int,
    start_offset: int,
    end_offset: int,
) -> Iterator[pa.RecordBatch]:
    """The sources of what readers of commits are given of these batches."""
    shown = [each for each in judged if each.is_visible]
    found = RowBuffer(PUBLISHED)
    for columns in decoded(
        view, shown, start_offset=start_offset, end_offset=end_offset, with_headers=True
    ):
        rows = zip(
            columns.column("offset").to_pylist(),
            columns.column("value").to_pylist(),
            columns.column("headers").to_pylist(),
            strict=True,
        )
        for offset, value, headers in rows:
            source = source_of(value, headers)
            found.append(*source, f"{topic}-{partition} at {offset}")
            if found.is_full:
                yield found.take()
    yield found.take()


def source_of(
    value: bytes | None, headers: list[dict[str, object]] | None
) -> tuple[str | None, int | None, int | None]:
    """Topic, partition and offset of the source; None where the record does not say."""
    for header in headers or ():
        if header["key"] == HEADER:
            return _from_header(header["value"])
    try:
        told = json.loads(value or b"")
    except ValueError:
        return None, None, None
    if not isinstance(told, dict):
        return None, None, None
    partition, offset = told.get(PARTITION), told.get(OFFSET)
    if type(partition) is not int or type(offset) is not int:
        return None, None, None
    topic = told.get(TOPIC)
    return topic if isinstance(topic, str) else None, partition, offset


def _from_header(text: object) -> tuple[str | None, int | None, int | None]:
    topic, _, place = (text if isinstance(text, bytes) else b"").rpartition(b"/")
    topic, _, partition = topic.rpartition(b"/")
    if not partition.isdigit() or not place.isdigit():
        return None, None, None
    return topic.decode(errors="replace") or None, int(partition), int(place)
