"""Which part of a log compaction may touch, how dirty it is, and which segments become one.

Pure: it looks and counts. Only whole segments are cleaned, and none that is active, reaches the
last stable offset or the high watermark, may still have to be recovered, or is younger than
`min.compaction.lag.ms`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tidelog.core.model.limits import INT32_MAX
from tidelog.core.storage import offset_index, time_index
from tidelog.core.storage.config import LogConfig
from tidelog.core.storage.segment import Segment

if TYPE_CHECKING:
    from tidelog.core.storage.log import Log


class LogToClean(NamedTuple):
    """What one round would do with a log."""

    log: Log
    first_dirty_offset: int
    """Everything before it was cleaned by an earlier round."""
    end_offset: int
    """Where the first segment begins that must not be touched."""
    clean_bytes: int
    dirty_bytes: int
    is_overdue: bool
    """A dirty record is older than `max.compaction.lag.ms`."""

    @property
    def dirty_ratio(self) -> float:
        total_bytes = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total_bytes if total_bytes else 0.0

    @property
    def is_due(self) -> bool:
        if not self.dirty_bytes:
            return False
        return self.is_overdue or self.dirty_ratio > self.log.config.min_cleanable_dirty_ratio


def log_to_clean(log: Log, wall_ms: int) -> LogToClean:
    first_dirty_offset = first_dirty_offset_of(log)
    segments = log.files.segments
    fence = fence_of(log)
    end_offset = segments[0].base_offset if segments else first_dirty_offset
    clean_bytes = dirty_bytes = 0
    earliest_ms: int | None = None
    for at, segment in enumerate(segments[:-1]):
        segment_end = segments[at + 1].base_offset
        is_dirty = segment_end > first_dirty_offset
        if segment_end > fence or (is_dirty and _is_young(segment, log.config, wall_ms)):
            break
        end_offset = segment_end
        if not is_dirty:
            clean_bytes += segment.file.size_bytes
            continue
        dirty_bytes += segment.file.size_bytes
        first_ms = _first_timestamp_ms(segment)
        if first_ms > 0 and (earliest_ms is None or first_ms < earliest_ms):
            earliest_ms = first_ms
    lag_max_ms = log.config.compaction_lag_max_ms
    is_overdue = earliest_ms is not None and earliest_ms < wall_ms - lag_max_ms
    return LogToClean(log, first_dirty_offset, end_offset, clean_bytes, dirty_bytes, is_overdue)


def fence_of(log: Log) -> int:
    """Records from here on may be taken back, or have to be recovered: none may replace others."""
    return min(log.last_stable_offset, log.high_watermark, log.recovery_point)


def first_dirty_offset_of(log: Log) -> int:
    """What earlier rounds cleaned; a claim that the log's offsets deny counts for nothing."""
    cleaned = log.cleaned_end_offset
    if cleaned is None or not log.log_start_offset <= cleaned <= log.log_end_offset:
        return log.log_start_offset
    return cleaned


def groups(segments: list[Segment], *, end_offset: int, config: LogConfig) -> list[list[Segment]]:
    """Runs of segments that fit into one; `end_offset` is where the last of them ends."""
    found: list[list[Segment]] = []
    size_bytes = index_bytes = time_index_bytes = 0
    for at, segment in enumerate(segments):
        segment_end = segments[at + 1].base_offset if at + 1 < len(segments) else end_offset
        size_bytes += segment.file.size_bytes
        index_bytes += len(segment.offsets) * offset_index.ENTRY_BYTES
        time_index_bytes += len(segment.times) * time_index.ENTRY_BYTES
        fits = (
            found
            and size_bytes <= config.segment_bytes
            and max(index_bytes, time_index_bytes) <= config.segment_index_bytes
            and segment_end - 1 - found[-1][0].base_offset <= INT32_MAX
        )
        if fits:
            found[-1].append(segment)
            continue
        found.append([segment])
        size_bytes = segment.file.size_bytes
        index_bytes = len(segment.offsets) * offset_index.ENTRY_BYTES
        time_index_bytes = len(segment.times) * time_index.ENTRY_BYTES
    return found


def _is_young(segment: Segment, config: LogConfig, wall_ms: int) -> bool:
    if config.compaction_lag_min_ms <= 0:
        return False
    largest_ms = segment.read_largest_timestamp()
    written_ms = segment.begun_ms(wall_ms) if largest_ms is None else largest_ms
    return written_ms > wall_ms - config.compaction_lag_min_ms


def _first_timestamp_ms(segment: Segment) -> int:
    first = segment.first_batch()
    return -1 if first is None else first.max_timestamp_ms
