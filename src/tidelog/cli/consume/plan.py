"""Where `tidelog consume` begins and ends in each partition, and how a record is shown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tidelog.cli.option_values import Start

if TYPE_CHECKING:
    from tidelog.client.consumer.fetched_records import ConsumerRecord
    from tidelog.core.model.ids import TopicPartition

FIELDS = ("topic", "partition", "offset", "epoch", "timestamp", "key", "headers")
NULL = b"null"


def first_offset(start: Start, *, log_start_offset: int, end_offset: int) -> int:
    """Where to begin between the two ends; ValueError if there is no such offset."""
    if start.before_end is not None:
        return max(log_start_offset, end_offset - start.before_end)
    if start.offset is None:
        return log_start_offset
    if not log_start_offset <= start.offset <= end_offset:
        raise ValueError(
            f"offset {start.offset} is not between {log_start_offset} and {end_offset}"
        )
    return start.offset


class Reading:
    """How far it goes: an exclusive end for each partition, and a number of records in all.

    Without an end a partition is followed for ever.
    """

    def __init__(
        self, ends: Mapping[TopicPartition, int | None], *, records_max: int | None = None
    ) -> None:
        self._ends = dict(ends)
        self._left = records_max

    def takes(self, records: Iterable[ConsumerRecord]) -> list[ConsumerRecord]:
        """Those that are to be shown."""
        taken = []
        for record in records:
            end = self._ends.get(record.partition)
            if (end is None or record.offset < end) and self._left != 0:
                taken.append(record)
                self._left = None if self._left is None else self._left - 1
        return taken

    def shorten(self, partition: TopicPartition, end_offset: int) -> None:
        """The log was cut: nobody will ever read on to the former end."""
        end = self._ends.get(partition)
        if end is not None:
            self._ends[partition] = min(end, end_offset)

    def open_partitions(self, positions: Mapping[TopicPartition, int]) -> list[TopicPartition]:
        """Those that are still to be read on."""
        if self._left == 0:
            return []
        return [
            name
            for name, end in self._ends.items()
            if end is None or name not in positions or positions[name] < end
        ]

    def end_of(self, partition: TopicPartition) -> int | None:
        return self._ends[partition]


def print_fields(text: str | None) -> tuple[str, ...]:
    """`offset,key`: what stands before the value; ValueError names what there is."""
    wanted = tuple(each.strip() for each in text.split(",")) if text else ()
    for each in wanted:
        if each not in FIELDS:
            raise ValueError(f"{each!r} is none of {', '.join(FIELDS)}")
    return wanted


def as_line(record: ConsumerRecord, fields: Iterable[str]) -> bytes:
    """The fields and the value with tabs between them, as the bytes that they are."""
    return b"\t".join([*(_field(record, each) for each in fields), _bytes(record.value)]) + b"\n"


def _field(record: ConsumerRecord, name: str) -> bytes:
    if name == "key":
        return _bytes(record.key)
    if name == "headers":
        return b",".join(b"%s=%s" % (key.encode(), _bytes(each)) for key, each in record.headers)
    facts: dict[str, object] = {
        "topic": record.partition.topic,
        "partition": record.partition.index,
        "offset": record.offset,
        "epoch": "null" if record.leader_epoch is None else record.leader_epoch,
        "timestamp": record.timestamp_ms,
    }
    return str(facts[name]).encode()


def _bytes(data: bytes | None) -> bytes:
    return NULL if data is None else data


def as_json_line(record: ConsumerRecord) -> bytes:
    from tidelog.client.shells.acks_journal import text_of

    document: dict[str, Any] = {
        "topic": record.partition.topic,
        "partition": record.partition.index,
        "offset": record.offset,
        "leader_epoch": record.leader_epoch,
        "timestamp_ms": record.timestamp_ms,
        "key": text_of(record.key),
        "value": text_of(record.value),
        "headers": [[key, text_of(value)] for key, value in record.headers],
        "producer_id": record.producer_id,
        "producer_epoch": record.producer_epoch,
        "sequence": record.sequence,
    }
    return json.dumps(document, ensure_ascii=False).encode() + b"\n"
