"""Which keys a pipeline file may have, and what each of them must be: one table per section."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tidelog.spark.pipeline.file.durations import EXPECTED


class ValueKind(Enum):
    """What a value must be, and how that is said to people."""

    TEXT = "a text in quotes"
    TEXTS = 'a list of texts like ["order_id"]'
    INTEGER = "a whole number, more than 0"
    FLAG = "true or false"
    DURATION = EXPECTED
    TRIGGER = '"available-now", "continuous", or a duration like "5s"'
    FUNCTION = "a function from views to a DataFrame"
    TABLE = "a table of its own"
    OPTIONS = "a table of names and values"


@dataclass(frozen=True, slots=True)
class Key:
    """One key: what it must be; of which words, if it has only a few."""

    kind: ValueKind
    words: tuple[str, ...] = ()


Keys = dict[str, Key]

_TEXT, _TEXTS, _FLAG = Key(ValueKind.TEXT), Key(ValueKind.TEXTS), Key(ValueKind.FLAG)
_OPTIONS, _TABLE, _INTEGER = Key(ValueKind.OPTIONS), Key(ValueKind.TABLE), Key(ValueKind.INTEGER)

TOP: Keys = {
    "name": _TEXT,
    "bootstrap": _TEXT,
    "master": _TEXT,
    "checkpoint": _TEXT,
    "trigger": Key(ValueKind.TRIGGER),
    "spark": _OPTIONS,
    "sources": _TABLE,
    "steps": _TABLE,
    "sinks": _TABLE,
    "dead_letters": _TABLE,
}
WATERMARK: Keys = {"column": _TEXT, "delay": Key(ValueKind.DURATION)}
SOURCE: Keys = {
    "topic": _TEXT,
    "topics": _TEXTS,
    "pattern": _TEXT,
    "bootstrap": _TEXT,
    "connector": Key(ValueKind.TEXT, ("tidelog", "kafka")),
    "format": Key(ValueKind.TEXT, ("json", "raw")),
    "schema": _TEXT,
    "bad_records": Key(ValueKind.TEXT, ("dead_letters", "fail")),
    "starting_offsets": _TEXT,
    "max_offsets_per_trigger": _INTEGER,
    "min_partitions": _INTEGER,
    "fail_on_data_loss": _FLAG,
    "include_headers": _FLAG,
    "isolation_level": Key(ValueKind.TEXT, ("read_committed", "read_uncommitted")),
    "options": _OPTIONS,
    "watermark": _TABLE,
    "deduplicate": _TEXTS,
}
STEP: Keys = {
    "sql": _TEXT,
    "function": Key(ValueKind.FUNCTION),
    "watermark": _TABLE,
    "deduplicate": _TEXTS,
}
TARGET: Keys = {
    "table": _TEXT,
    "topic": _TEXT,
    "id": _TEXT,
    "bootstrap": _TEXT,
    "options": _OPTIONS,
}
SINK: Keys = {
    "from": _TEXT,
    **TARGET,
    "mode": Key(ValueKind.TEXT, ("append", "update")),
    "partition_by": _TEXTS,
    "format": Key(ValueKind.TEXT, ("json", "raw")),
    "key": _TEXT,
}
DEAD: Keys = dict(TARGET)

OPTIONS_OF_TOPIC: dict[str, type[str | int]] = {
    "compression": str,
    "batch_bytes": int,
    "writers": int,
    "order_by": str,
    "attempts": int,
    "transaction_timeout_ms": int,
    "resume_at": int,
}
"""What `exactly_once` takes; besides these, Kafka's own settings as `kafka.NAME`."""
OPTIONS_OF_SOURCE = {
    "starting_offsets": "startingOffsets",
    "max_offsets_per_trigger": "maxOffsetsPerTrigger",
    "min_partitions": "minPartitions",
    "fail_on_data_loss": "failOnDataLoss",
    "include_headers": "includeHeaders",
    "isolation_level": "kafka.isolation.level",
}
"""Keys that are options of Spark's Kafka source under other names."""
OWN_OPTIONS = ("subscribe", "subscribePattern", "assign", "kafka.bootstrap.servers")
"""Options that have keys of their own."""
