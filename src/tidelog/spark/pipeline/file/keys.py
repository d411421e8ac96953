"""Which keys a pipeline file may have, and what each of them must be: one table per section."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from tidelog.core.model.exceptions import TidelogError

_UNITS_MS = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1_000),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000),
}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)")
DURATION_MS_MAX = 366 * _UNITS_MS["d"]
EXPECTED = 'a duration like "500ms", "5s", "10 minutes" or "1 hour"'


class ValueKind(Enum):
    """What a value must be, in the words of an error message."""

    TEXT = "a string in quotes"
    TEXTS = 'a list of strings like ["order_id"]'
    INTEGER = "a whole number, more than 0"
    FLAG = "true or false"
    DURATION = EXPECTED
    TRIGGER = '"available-now", "continuous", or a duration like "5s"'
    FUNCTION = "a function from views to a DataFrame"
    TABLE = "a table of its own"
    OPTIONS = "a table of names and values"


@dataclass(frozen=True, slots=True)
class Key:
    """One key: the kind of its value, and the allowed words if it has only a few."""

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


class BadDuration(TidelogError, ValueError):
    """The message says what is expected."""


def duration_ms(text: str) -> int:
    """Whole milliseconds, more than 0 and at most a year: 500ms, 5s, 10 minutes, 1 hour, 2 days."""
    found = _DURATION.fullmatch(text.strip().lower())
    if found is None or found[2] not in _UNITS_MS:
        raise BadDuration(f"{text!r} is not a duration; expected {EXPECTED}")
    result = round(float(found[1]) * _UNITS_MS[found[2]])
    if not 0 < result <= DURATION_MS_MAX:
        raise BadDuration(f"{text!r}: expected more than 0 and at most 366 days")
    return result
