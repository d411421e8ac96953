"""What a log is made of: fences, files, producers, leader epochs, and its failure if any."""

from __future__ import annotations

from typing import Protocol

from tidelog.core.model.ids import TopicPartition
from tidelog.core.model.trace import Trace
from tidelog.core.storage import events
from tidelog.core.storage.config import LogConfig
from tidelog.core.storage.disk import DiskError
from tidelog.core.storage.epochs import LeaderEpochs
from tidelog.core.storage.log_files import LogFiles
from tidelog.core.storage.producers import ProducerStates
from tidelog.core.storage.segment import Segment
from tidelog.core.wire.crc import crc32c


class LogKeeper(Protocol):
    """The log directory that keeps this log's checkpoints."""

    def before_rewind(self, log: LogState) -> None:
        """The recovery point or the log start went back: make that durable, then return."""

    def on_log_failed(self, log: LogState, error: DiskError) -> None: ...


class LogState:
    """Invariant: log start <= last stable <= high watermark <= log end, and synced <= log end."""

    __slots__ = (
        "config",
        "durable_log_start_offset",
        "epochs",
        "failed",
        "files",
        "flush_requested_ms",
        "high_watermark",
        "is_plain",
        "jitter_ms",
        "keeper",
        "log_end_offset",
        "log_start_offset",
        "producers",
        "topic_partition",
        "trace",
    )

    def __init__(
        self,
        *,
        topic_partition: TopicPartition,
        config: LogConfig,
        trace: Trace,
        files: LogFiles,
        epochs: LeaderEpochs,
        producers: ProducerStates,
        log_start_offset: int,
        log_end_offset: int,
        wall_ms: int,
    ) -> None:
        self.topic_partition = topic_partition
        self.trace = trace
        self.files = files
        self.epochs = epochs
        self.producers = producers
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        self.high_watermark = log_start_offset
        """Moved by its owner, through `advance_high_watermark`."""
        self.failed: str | None = None
        """Why this log is broken for good."""
        self.keeper: LogKeeper | None = None
        self.durable_log_start_offset: int | None = None
        """What the keeper's checkpoint durably says; None without a keeper."""
        self.flush_requested_ms = wall_ms
        self.update_config(config)

    def update_config(self, config: LogConfig) -> None:
        """The topic's settings changed; what is written already stays as it is."""
        self.config = config
        self.is_plain = (
            not config.compact
            and config.message_timestamp_type == "CreateTime"
            and config.compression_type == "producer"
        )
        """Batches are appended as they come, without reading single records."""
        self.jitter_ms = 0
        if config.segment_jitter_ms:
            spread_ms = min(config.segment_jitter_ms, config.segment_ms)
            self.jitter_ms = crc32c(str(self.topic_partition).encode()) % spread_ms

    @property
    def synced_end_offset(self) -> int:
        """Everything before it survives a power loss."""
        return self.files.durability.synced_end_offset

    @property
    def recovery_point(self) -> int:
        """From here on a restart must scan every batch; moves only when syncs are done."""
        return self.files.durability.recovery_point

    @property
    def last_stable_offset(self) -> int:
        """Before it every transaction is decided, and known to be by all replicas."""
        unstable = self.producers.first_unstable_offset
        if unstable is None or unstable > self.high_watermark:
            return self.high_watermark
        return max(unstable, self.log_start_offset)

    def advance_high_watermark(self, high_watermark: int) -> None:
        assert high_watermark <= self.log_end_offset, (self.topic_partition, high_watermark)
        if high_watermark > self.high_watermark:
            self.high_watermark = high_watermark
            self.producers.on_high_watermark(high_watermark)

    def fail(self, error: DiskError) -> None:
        """The disk refused: whatever lies behind the log end is torn, and must not be read."""
        if self.failed is None:
            self.failed = str(error)
            self.trace.emit(
                events.LogFailed(
                    partition=str(self.topic_partition), path=error.path, reason=error.reason
                )
            )
            if self.keeper is not None:
                self.keeper.on_log_failed(self, error)

    def begin_segment(self, base_offset: int, wall_ms: int | None) -> Segment:
        """The first one also makes the directory, with the leader epochs known so far."""
        is_first = not self.files.exists
        segment = self.files.begin_segment(base_offset, wall_ms)
        if is_first:
            self.files.write_epochs(self.epochs, changed_from=base_offset)
        return segment

    def roll(self, *, because: str, base_offset: int, wall_ms: int | None) -> Segment:
        """Close the active segment and begin one at `base_offset`; snapshot the producers."""
        before = self.files.active
        if before is not None:
            before.become_inactive()
        segment = self.begin_segment(base_offset, wall_ms)
        snapshot = self.files.write_snapshot(base_offset, self.producers.by_id.values())
        if before is not None:
            self.files.want_sync_of(before, snapshot, end_offset=base_offset)
        self.trace.emit(
            events.SegmentRolled(
                partition=str(self.topic_partition), base_offset=base_offset, because=because
            )
        )
        return segment

    def assign_leader_epoch(self, leader_epoch: int, start_offset: int) -> None:
        if self.epochs.assign(leader_epoch, start_offset):
            self.files.write_epochs(self.epochs, changed_from=start_offset)
