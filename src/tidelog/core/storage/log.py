"""One partition's log: appended to at its end, read by offset, truncated and deleted on request.

The fences, from the left: `log_start_offset`, `last_stable_offset`, `high_watermark` (its owner's
decision), `log_end_offset`; and `synced_end_offset`, before which everything survives a power loss.
A disk that refuses breaks the log for good: `failed` says why, and nothing is acknowledged or read
from then on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tidelog.core.formats import file_names
from tidelog.core.model.ids import TopicId, TopicPartition
from tidelog.core.model.trace import Trace
from tidelog.core.storage import timestamps
from tidelog.core.storage.config import LogConfig
from tidelog.core.storage.disk import Disk, DiskError, File, FileSlice
from tidelog.core.storage.log_append import Appended, OffsetsOutOfOrder
from tidelog.core.storage.log_state import LogKeeper
from tidelog.core.storage.recovery import Recovery
from tidelog.core.storage.timestamps import TimestampedOffset
from tidelog.core.storage.truncation import OffsetOutOfRange, TruncatableLog
from tidelog.core.wire.record_batch import BatchHeader, CorruptBatch

__all__ = [
    "Appended",
    "Log",
    "LogKeeper",
    "OffsetOutOfRange",
    "OffsetsOutOfOrder",
    "TimestampedOffset",
]


class Log(TruncatableLog):
    """See the module. Not for two threads."""

    __slots__ = ()

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
