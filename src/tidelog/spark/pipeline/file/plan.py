"""The plan of a pipeline, after all checks: sources, steps in order, sinks, and settings.

Views are the names by which SQL knows things: each source is one, each step makes one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tidelog.spark.pipeline.file.schema_ddl import SchemaColumn

METADATA_COLUMNS = ("_key", "_topic", "_partition", "_offset", "_timestamp", "_headers")
"""The columns that a JSON source adds to those of its schema: where each record came from."""
RAW_COLUMNS = (
    "key",
    "value",
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestampType",
    "headers",
)
"""Of a raw source, as in Spark's own Kafka source."""
BATCH_COLUMN = "batch_id"
"""Of every table: the directory of the batch that wrote the row."""
DEAD_LETTERS = "dead_letters"
"""The key, and the name of the sink that it makes."""

StepFunction = Callable[[Mapping[str, Any]], Any]
"""For Python: the views so far by name, as DataFrames, to another DataFrame."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watermark:
    """How late a record may come, by which column."""

    column: str
    delay_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSpec:
    """A topic, or several, as a view."""

    name: str
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    bootstrap: str | None = None
    connector: Literal["tidelog", "kafka"] = "tidelog"
    columns: tuple[SchemaColumn, ...] | None = None
    """Of a JSON source; None: the raw records."""
    fails_on_bad_records: bool = False
    watermark: Watermark | None = None
    deduplicate: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    """By the names of Spark's Kafka source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSpec:
    """One query over the views before it; its result is a view, too."""

    name: str
    sql: str | None = None
    function: StepFunction | None = None
    watermark: Watermark | None = None
    deduplicate: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableTarget:
    """A directory of Parquet files, in which each batch appears once and whole."""

    path: str
    partition_by: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicTarget:
    """A topic, into which each batch goes as one transaction."""

    topic: str
    sink_id: str
    bootstrap: str | None = None
    key: str | None = None
    is_json: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSpec:
    """Where a view goes. Each sink is a Spark query with a checkpoint of its own."""

    name: str
    view: str
    target: TableTarget | TopicTarget
    mode: Literal["append", "update"] = "append"


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelinePlan:
    """All of it. Paths are absolute, or name their file system (`hdfs://...`)."""

    name: str
    checkpoint: str
    bootstrap: str | None
    master: str | None
    trigger_ms: int | None
    """None: everything that is there now, and then the end. 0: batch after batch."""
    sources: tuple[SourceSpec, ...]
    steps: tuple[StepSpec, ...]
    sinks: tuple[SinkSpec, ...]
    dead_letters: TableTarget | TopicTarget | None
    spark: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_available_now(self) -> bool:
        return self.trigger_ms is None
