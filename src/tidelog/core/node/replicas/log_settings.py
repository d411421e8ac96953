"""From settings by Kafka's names to what one log needs to know."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from tidelog.core.model.config import Value
from tidelog.core.model.limits import INT64_MAX
from tidelog.core.storage.config import (
    INDEX_BYTES_MIN,
    Fsync,
    LogConfig,
    RecordsValidation,
    TimestampType,
)
from tidelog.core.storage.log_cleaner import CleanerSettings

CLEANER_SETTINGS = (
    "log.cleaner.enable",
    "log.cleaner.backoff.ms",
    "log.cleaner.dedupe.buffer.size",
    "log.cleaner.io.buffer.load.factor",
    "log.cleaner.io.buffer.size",
    "log.cleaner.io.max.bytes.per.second",
)


def log_config(topic: Mapping[str, Value], broker: Mapping[str, Value]) -> LogConfig:
    """`topic`: every setting of the topic, resolved; `broker`: every setting of the broker."""
    policies = topic["cleanup.policy"]
    assert isinstance(policies, tuple)
    codec = topic["compression.type"]
    return LogConfig(
        segment_bytes=_number(topic, _segment_bytes_name(topic)),
        segment_ms=_segment_ms(topic),
        segment_jitter_ms=_number(topic, "segment.jitter.ms"),
        segment_index_bytes=max(INDEX_BYTES_MIN, _number(topic, "segment.index.bytes")),
        index_interval_bytes=_number(topic, "index.interval.bytes"),
        retention_ms=_unless_negative(topic, "retention.ms"),
        retention_bytes=_unless_negative(topic, "retention.bytes"),
        message_bytes_max=_number(topic, "max.message.bytes"),
        message_timestamp_type=cast("TimestampType", topic["message.timestamp.type"]),
        message_timestamp_before_max_ms=_number(topic, "message.timestamp.before.max.ms"),
        message_timestamp_after_max_ms=_number(topic, "message.timestamp.after.max.ms"),
        compact="compact" in policies,
        delete="delete" in policies,
        compression_type=str(codec),
        compression_level=_level(topic, str(codec)),
        flush_messages=_unless_endless(topic, "flush.messages"),
        flush_ms=_unless_endless(topic, "flush.ms"),
        file_delete_delay_ms=_number(topic, "file.delete.delay.ms"),
        delete_retention_ms=_number(topic, "delete.retention.ms"),
        compaction_lag_min_ms=_number(topic, "min.compaction.lag.ms"),
        compaction_lag_max_ms=_number(topic, "max.compaction.lag.ms"),
        min_cleanable_dirty_ratio=_ratio(topic, "min.cleanable.dirty.ratio"),
        producer_id_expiration_ms=_number(broker, "producer.id.expiration.ms"),
        fsync=cast("Fsync", broker["tidelog.fsync"]),
        records_validation=cast("RecordsValidation", broker["tidelog.records.validation"]),
    )


def cleaner_settings(broker: Callable[[str], Value]) -> CleanerSettings:
    """`broker` gives a setting of the broker as it counts now."""
    values = {name: broker(name) for name in CLEANER_SETTINGS}
    return CleanerSettings(
        is_enabled=values["log.cleaner.enable"] is True,
        backoff_ms=_number(values, "log.cleaner.backoff.ms"),
        map_bytes=_number(values, "log.cleaner.dedupe.buffer.size"),
        map_load_factor=min(0.99, max(0.01, _ratio(values, "log.cleaner.io.buffer.load.factor"))),
        read_bytes=_number(values, "log.cleaner.io.buffer.size"),
        bytes_per_second_max=max(1.0, _ratio(values, "log.cleaner.io.max.bytes.per.second")),
    )


def _segment_bytes_name(topic: Mapping[str, Value]) -> str:
    """Tests want segments smaller than anybody may ask for."""
    internal = "internal.segment.bytes"
    return internal if topic.get(internal) is not None else "segment.bytes"


def _segment_ms(topic: Mapping[str, Value]) -> int:
    """Only a segment that is not active is compacted, so the maximal lag rolls it in time."""
    policies = topic["cleanup.policy"]
    assert isinstance(policies, tuple)
    segment_ms = _number(topic, "segment.ms")
    return (
        min(segment_ms, _number(topic, "max.compaction.lag.ms"))
        if "compact" in policies
        else segment_ms
    )


def _ratio(values: Mapping[str, Value], name: str) -> float:
    value = values[name]
    assert isinstance(value, float | int), name
    return float(value)


def _number(values: Mapping[str, Value], name: str) -> int:
    value = values[name]
    assert isinstance(value, int), name
    return value


def _unless_negative(values: Mapping[str, Value], name: str) -> int | None:
    number = _number(values, name)
    return None if number < 0 else number


def _unless_endless(values: Mapping[str, Value], name: str) -> int | None:
    number = _number(values, name)
    return None if number == INT64_MAX else number


def _level(values: Mapping[str, Value], codec: str) -> int | None:
    name = f"compression.{codec}.level"
    return _number(values, name) if name in values else None
