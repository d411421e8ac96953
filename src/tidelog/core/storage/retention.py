"""Which of the oldest segments may go: behind the log start, too many bytes, too old.

Pure: it looks and counts. Nothing at or beyond the high watermark is ever deletable. The active
segment is, if it holds something; the log then begins a new one first.
"""

from __future__ import annotations

from collections.abc import Callable

from tidelog.core.storage.config import LogConfig
from tidelog.core.storage.segment import Segment

Condition = Callable[[Segment, int], bool]
"""Whether a segment with this end offset is to be deleted."""


def behind_log_start(segments: list[Segment], *, log_start_offset: int, log_end_offset: int) -> int:
    """How many whole segments lie before the log start; never the active one."""
    return _count(segments[:-1], lambda _, end: end <= log_start_offset, segments, log_end_offset)


def by_size(
    segments: list[Segment], *, config: LogConfig, high_watermark: int, log_end_offset: int
) -> int:
    if config.retention_bytes is None or not config.delete:
        return 0
    surplus = sum(segment.file.size_bytes for segment in segments) - config.retention_bytes

    def is_surplus(segment: Segment, end_offset: int) -> bool:
        nonlocal surplus
        if end_offset > high_watermark or segment.file.size_bytes > surplus:
            return False
        surplus -= segment.file.size_bytes
        return True

    return _count(_deletable(segments), is_surplus, segments, log_end_offset)


def by_time(
    segments: list[Segment],
    *,
    config: LogConfig,
    high_watermark: int,
    log_end_offset: int,
    wall_ms: int,
) -> int:
    """By the largest timestamp; by the time it was begun or opened if its records have none."""
    if config.retention_ms is None or not config.delete:
        return 0
    retention_ms = config.retention_ms

    def is_old(segment: Segment, end_offset: int) -> bool:
        if end_offset > high_watermark:
            return False
        largest_ms = segment.read_largest_timestamp()
        if largest_ms is not None and wall_ms - largest_ms > retention_ms:
            largest_ms = segment.confirm_largest_timestamp()
        written_ms = segment.begun_ms(wall_ms) if largest_ms is None else largest_ms
        return wall_ms - written_ms > retention_ms

    return _count(_deletable(segments), is_old, segments, log_end_offset)


def _deletable(segments: list[Segment]) -> list[Segment]:
    """An empty active segment has nothing to delete."""
    return segments if segments and segments[-1].file.size_bytes else segments[:-1]


def _count(
    candidates: list[Segment], condition: Condition, segments: list[Segment], log_end_offset: int
) -> int:
    """How many, from the oldest on, until the first that must stay."""
    for at, segment in enumerate(candidates):
        is_active = at + 1 == len(segments)
        end_offset = log_end_offset if is_active else segments[at + 1].base_offset
        if not condition(segment, end_offset):
            return at
    return len(candidates)
