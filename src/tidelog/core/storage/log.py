"""One partition's log: appended to at its end, read by offset, truncated and deleted on request.

The fences, from the left: `log_start_offset`, `last_stable_offset`, `high_watermark` (its owner's
decision), `log_end_offset`; and `synced_end_offset`, before which everything survives a power loss.
A disk that refuses breaks the log for good: `failed` says why, and nothing is acknowledged or read
from then on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from tidelog.core.formats import file_names
from tidelog.core.model.ids import TopicId, TopicPartition
from tidelog.core.model.trace import Trace
from tidelog.core.storage import events, timestamps
from tidelog.core.storage.config import LogConfig
from tidelog.core.storage.disk import Disk, DiskError, File, FileSlice
from tidelog.core.storage.epochs import LeaderEpochs
from tidelog.core.storage.log_append import (
    Appended,
    OffsetsOutOfOrder,
    append_as_follower,
    append_as_leader,
)
from tidelog.core.storage.log_files import LogFiles
from tidelog.core.storage.producers import ProducerStates
from tidelog.core.storage.recovery import Recovery
from tidelog.core.storage.segment import Segment
from tidelog.core.storage.timestamps import TimestampedOffset
from tidelog.core.storage.truncation import (
    OffsetOutOfRange,
    delete_due_files,
    delete_records_before,
    enforce_retention,
    expire_producers,
    start_anew_at,
    truncate_to,
)
from tidelog.core.wire.crc import crc32c
from tidelog.core.wire.record_batch import BatchHeader, CorruptBatch

__all__ = [
    "Appended",
    "Log",
    "LogKeeper",
    "OffsetOutOfRange",
    "OffsetsOutOfOrder",
    "TimestampedOffset",
]


class LogKeeper(Protocol):
    """The log directory that keeps this log's checkpoints."""

    def before_rewind(self, log: Log) -> None:
        """The recovery point or the log start went back: make that durable, then return."""

    def on_log_cleaned(self, log: Log) -> None:
        """Compaction got further: `cleaned_end_offset` moved."""

    def on_log_failed(self, log: Log, error: DiskError) -> None: ...


# Size: one class with the state of a log; what appends and truncates are functions in two modules.
class Log:
    """See the module. Not for two threads.

    Invariant: log start <= last stable <= high watermark <= log end, and synced <= log end.
    """

    __slots__ = (
        "cleaned_end_offset",
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
        "uncleanable",
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
        self.cleaned_end_offset: int | None = None
        """Everything before it was compacted; None: nothing, as far as it is known."""
        self.uncleanable: str | None = None
        """Why compaction leaves this log alone until the next start."""
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

    # The methods that change a log stand in modules of their own.

    append_as_leader = append_as_leader
    append_as_follower = append_as_follower
    truncate_to = truncate_to
    start_anew_at = start_anew_at
    delete_records_before = delete_records_before
    enforce_retention = enforce_retention
    delete_due_files = delete_due_files
    expire_producers = expire_producers

    @classmethod
    def open(
        cls,
        *,
        disk: Disk,
        directory: str,
        topic_partition: TopicPartition,
        topic_id: TopicId | None,
        config: LogConfig,
        trace: Trace,
        wall_ms: int,
        clean: bool,
        recovery_point: int | None = None,
        log_start_offset: int | None = None,
    ) -> Log:
        """Open what is there, recovering it unless the stop was clean.

        A missing directory is an empty log; nothing is made before the first append.
        """
        found = Recovery(
            disk=disk,
            directory=directory,
            topic_partition=topic_partition,
            config=config,
            trace=trace,
            wall_ms=wall_ms,
            recovery_point=recovery_point or 0,
            log_start_offset=log_start_offset,
        ).run(clean=clean, topic_id=topic_id)
        log = cls(
            topic_partition=topic_partition,
            config=config,
            trace=trace,
            files=found.files,
            epochs=found.epochs,
            producers=found.producers,
            log_start_offset=found.log_start_offset,
            log_end_offset=found.log_end_offset,
            wall_ms=wall_ms,
        )
        log.files.owned_by(log)
        segments = log.files.segments
        for segment in found.unsynced:
            following = segments[segments.index(segment) + 1]
            log.files.want_sync_of(segment, None, end_offset=following.base_offset)
        return log

    @property
    def topic_id(self) -> TopicId | None:
        return self.files.topic_id

    @property
    def directory(self) -> str:
        return self.files.directory

    @property
    def size_bytes(self) -> int:
        return self.files.size_bytes()

    # Reading.

    def read(
        self, start_offset: int, *, bytes_max: int, end_offset: int, at_least_one: bool = True
    ) -> FileSlice | None:
        """Bytes from the batch that holds `start_offset` on, all before `end_offset`.

        From one segment only; the batch at the end may be cut in the middle, the first one never:
        it comes whole if `at_least_one`, or not at all. None if there is nothing to read yet.
        DiskError breaks the log; CorruptBatch: bytes were damaged after they were written.
        """
        if start_offset < self.log_start_offset or start_offset > self.log_end_offset:
            raise OffsetOutOfRange(
                f"{start_offset} is not in [{self.log_start_offset}, {self.log_end_offset}]"
            )
        end_offset = min(end_offset, self.log_end_offset)
        if start_offset >= end_offset:
            return None
        if self.failed is not None:
            raise DiskError(self.directory, self.failed)
        try:
            return self._read(start_offset, bytes_max, end_offset, at_least_one)
        except DiskError as error:
            self.fail(error)
            raise

    def _read(
        self, start_offset: int, bytes_max: int, end_offset: int, at_least_one: bool
    ) -> FileSlice | None:
        segments = self.files.segments
        active = segments[-1]
        at = len(segments) - 1
        if start_offset < active.base_offset:
            at = self.files.position_in_list(start_offset)
        while at < len(segments):
            segment = segments[at]
            try:
                position = segment.position_of(start_offset)
            except CorruptBatch:
                following = segments[at + 1 : at + 2]
                position = segment.position_past_damage(
                    start_offset,
                    end_offset=following[0].base_offset if following else self.log_end_offset,
                    refuse_damage=True,
                )
            available = segment.file.size_bytes - position
            at += 1
            if available <= 0:
                continue  # only a gap is left behind it: the next segment goes on
            is_fenced = end_offset < self.log_end_offset
            if is_fenced and (at == len(segments) or end_offset < segments[at].base_offset):
                try:
                    available = segment.position_of(end_offset) - position
                except CorruptBatch:
                    available = segment.position_past_damage(end_offset) - position
                if available <= 0:
                    return None
            if available > bytes_max:
                first_bytes = segment.batch_bytes_at(position)
                if bytes_max < first_bytes:
                    if not at_least_one:
                        return None
                    return FileSlice(segment.file, position, first_bytes)
                available = bytes_max
            return FileSlice(segment.file, position, available)
        return None

    def batch_headers(self, start_offset: int | None = None) -> Iterator[BatchHeader]:
        """The headers of all batches that end after `start_offset`, as far as they can be true."""
        start_offset = self.log_start_offset if start_offset is None else start_offset
        for segment in self.files.segments[self.files.position_in_list(start_offset) :]:
            for _, header in segment.sound_batches(segment.position_past_damage(start_offset)):
                yield header

    def find_by_timestamp(self, timestamp_ms: int) -> TimestampedOffset | None:
        """The first record from the log start on that is not earlier."""
        with self._noticing_failure():
            return timestamps.find(
                self.files.segments, timestamp_ms, start_offset=self.log_start_offset
            )

    def largest_timestamp(self) -> TimestampedOffset | None:
        with self._noticing_failure():
            return timestamps.largest(self.files.segments, start_offset=self.log_start_offset)

    def aborted_transactions(self, start_offset: int, end_offset: int) -> list[tuple[int, int]]:
        """(producer id, first offset) of what a read_committed reader of the range must skip."""
        segments = self.files.segments[self.files.position_in_list(start_offset) :]
        with self._noticing_failure():
            found = self.files.aborted.find(
                (segment.base_offset for segment in segments),
                start_offset=start_offset,
                end_offset=end_offset,
            )
        return [(aborted.producer_id, aborted.first_offset) for aborted in found]

    @contextmanager
    def _noticing_failure(self) -> Iterator[None]:
        """A disk that cannot be read has failed, too; the caller gets the error."""
        try:
            yield
        except DiskError as error:
            self.fail(error)
            raise

    # Leader epochs.

    @property
    def latest_leader_epoch(self) -> int | None:
        return self.epochs.latest

    def leader_epoch_end(self, leader_epoch: int) -> tuple[int, int] | None:
        """The largest leader epoch not after the given one, and where its records end."""
        return self.epochs.end_of(leader_epoch, log_end_offset=self.log_end_offset)

    def begin_leader_epoch(self, leader_epoch: int) -> None:
        """Records of this leader epoch begin at the log end."""
        try:
            self.assign_leader_epoch(leader_epoch, self.log_end_offset)
        except DiskError as error:
            self.fail(error)

    # Syncing and closing.

    def want_sync(self) -> None:
        """Ask the disk to make everything durable that was appended so far."""
        if self.failed is not None:
            return
        try:
            self.files.want_sync(self.log_end_offset)
        except DiskError as error:
            self.fail(error)

    def flush_if_due(self, wall_ms: int) -> None:
        """`flush.ms`: request a sync now and then, however little was written."""
        flush_ms = self.config.flush_ms
        if flush_ms is not None and wall_ms - self.flush_requested_ms >= flush_ms:
            self.flush_requested_ms = wall_ms
            self.want_sync()

    def on_synced(self, file: File, size_bytes: int) -> None:
        """A sync is done. `synced_end_offset` may have moved."""
        self.files.on_synced(file, size_bytes)

    def close_cleanly(self) -> None:
        """Make everything durable, with the producers' state: the next start reads nothing."""
        if self.failed is not None or self.files.is_closed(self.log_end_offset):
            return
        try:
            active = self.files.active
            if active is not None:
                active.close(self.config.index_interval_bytes)
            self.files.sync_now(self.log_end_offset, with_parent=self.keeper is None)
            if active is not None and self.log_end_offset not in self.files.snapshots:
                # Nothing depends on it: without it the end of the log is replayed.
                self.files.write_snapshot(self.log_end_offset, self.producers.by_id.values())
        except DiskError as error:
            self.fail(error)

    def rename_for_deletion(self, unique: str) -> None:
        """The partition is no more: its directory gets a name that no partition has."""
        self.failed = "deleted"
        if self.files.exists:
            name = file_names.deleted_directory_name(self.topic_partition, unique)
            self.files.moved_to(f"{file_names.parent(self.directory)}/{name}")

    def remove(self) -> None:
        """All files go at once."""
        if self.files.exists:
            self.files.disk.remove_directory(self.directory)
            self.files.exists = False

    def check(self) -> None:
        name = self.topic_partition
        assert 0 <= self.log_start_offset <= self.last_stable_offset, name
        assert self.last_stable_offset <= self.high_watermark <= self.log_end_offset, name
        self.files.check()
        self.files.durability.check(log_end_offset=self.log_end_offset)
        self.producers.check()
        self.epochs.check()
        if self.files.segments:
            assert self.files.segments[0].base_offset <= self.log_start_offset, name
            assert self.files.segments[-1].base_offset <= self.log_end_offset, name
        for _, start_offset in self.epochs.entries:
            assert start_offset <= self.log_end_offset, name
