"""The settings of one log, resolved: Kafka's topic settings as plain typed values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tidelog.core.model.limits import BATCH_BYTES_MAX, INT64_MAX

HOUR_MS = 60 * 60 * 1_000
DAY_MS = 24 * HOUR_MS

INDEX_BYTES_MIN = 24
"""Room for two entries of either index; Kafka takes smaller settings, which hold none."""

Fsync = Literal["none", "group", "always"]
TimestampType = Literal["CreateTime", "LogAppendTime"]
RecordsValidation = Literal["full", "header"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """What a log needs to know of its topic's and broker's settings; the defaults are Kafka's."""

    segment_bytes: int = 2**30
    segment_ms: int = 7 * DAY_MS
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 * 2**20
    index_interval_bytes: int = 4096
    retention_ms: int | None = 7 * DAY_MS
    retention_bytes: int | None = None
    message_bytes_max: int = BATCH_BYTES_MAX
    message_timestamp_type: TimestampType = "CreateTime"
    message_timestamp_before_max_ms: int = INT64_MAX
    message_timestamp_after_max_ms: int = HOUR_MS
    compact: bool = False
    delete: bool = True
    compression_type: str = "producer"
    compression_level: int | None = None
    flush_messages: int | None = None
    flush_ms: int | None = None
    file_delete_delay_ms: int = 60_000
    delete_retention_ms: int = DAY_MS
    compaction_lag_min_ms: int = 0
    compaction_lag_max_ms: int = INT64_MAX
    min_cleanable_dirty_ratio: float = 0.5
    producer_id_expiration_ms: int = DAY_MS
    fsync: Fsync = "none"
    records_validation: RecordsValidation = "full"

    def __post_init__(self) -> None:
        assert self.segment_bytes > 0 and self.segment_ms > 0, self
        assert self.segment_index_bytes >= INDEX_BYTES_MIN, "room for two entries of either index"
        assert self.index_interval_bytes >= 0 and self.message_bytes_max >= 0, self
