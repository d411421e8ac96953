"""Trace events of storage: rolls, cuts, deletions, what recovery found, what broke."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentRolled:
    partition: str
    base_offset: int
    because: str
    """One of: size, time, offset index full, time index full, offsets, truncation, retention."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTruncated:
    partition: str
    from_end_offset: int
    to_end_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStartedAnew:
    partition: str
    at_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStartMoved:
    partition: str
    from_offset: int
    to_offset: int
    because: str
    """One of: records deleted, retention time, retention size, log start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentsDeleted:
    partition: str
    base_offsets: tuple[int, ...]
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCleaned:
    """One round of compaction is over."""

    partition: str
    from_offset: int
    to_offset: int
    """The records in between are the newest of their keys now."""
    bytes_before: int
    bytes_after: int
    """Of the segments that were written anew, clean ones before `from_offset` among them."""
    keys: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogUncleanable:
    """Compaction leaves this log alone until the next start."""

    partition: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SwapFinished:
    """A restart completed the exchange of segments that compaction had begun."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducersExpired:
    partition: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFailed:
    """The disk refused: this log neither writes nor reads any more."""

    partition: str
    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRecovered:
    """A log was opened after an unclean stop."""

    partition: str
    recovery_point: int
    scanned_segments: int
    scanned_bytes: int
    log_start_offset: int
    log_end_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TailCut:
    """Recovery cut a segment at its first bad batch."""

    partition: str
    base_offset: int
    position: int
    cut_bytes: int
    end_offset: int
    reason: str
    below_recovery_point: bool
    """Bytes that were synced once are gone: the medium lied, not the crash."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentDropped:
    """Recovery removed a whole segment: it lies behind a cut, a gap or the log start."""

    partition: str
    base_offset: int
    size_bytes: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDiscarded:
    """A file beside the segments was unusable or stray and is gone; it is rebuilt if needed."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRebuilt:
    partition: str
    base_offset: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderEpochsRebuilt:
    partition: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryOpened:
    directory: str
    is_clean: bool
    partitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryOffline:
    directory: str
    reason: str
