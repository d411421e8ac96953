"""One entry of `log.dirs`: the logs in it, their checkpoints, and the mark of a clean stop.

A disk error anywhere below it takes the whole directory offline, for good and with a reason. Its
logs then refuse to write and to read; what they had acknowledged is judged by the next start.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from tidelog.core.formats import file_names
from tidelog.core.formats.text_checkpoints import CorruptCheckpoint, Offsets
from tidelog.core.model.ids import TopicId, TopicPartition
from tidelog.core.model.trace import Trace
from tidelog.core.storage import events
from tidelog.core.storage.config import LogConfig
from tidelog.core.storage.disk import Disk, DiskError
from tidelog.core.storage.durable_directory import make_directory
from tidelog.core.storage.log import Log
from tidelog.core.storage.offset_checkpoint import OffsetCheckpoint
from tidelog.core.storage.partition_files import read_topic_id

_CLEAN_MARK_VERSION = 0


class LogDirectory:
    """Invariant: once `offline` has a reason it keeps it, and every log here has failed."""

    def __init__(self, *, disk: Disk, path: str, trace: Trace) -> None:
        self.disk = disk
        self.path = path
        self.trace = trace
        self.offline: str | None = None
        self.logs: dict[TopicPartition, Log] = {}
        self.was_clean = False
        """The broker that used this directory before stopped as it should."""
        self.clean_broker_epoch: int | None = None
        """Under which broker epoch it did so, as far as it is known."""
        self.found: list[TopicPartition] = []
        """The partitions that have a directory here, sorted; they are opened by `open_log`."""
        self.is_read = False
        """Whether `found` is complete; a directory that cannot be read is offline, too."""
        self._deleted: list[tuple[Log, int]] = []
        self._recovery_points = self._checkpoint(file_names.RECOVERY_POINTS, lambda _: None)
        self._high_watermarks = self._checkpoint(file_names.HIGH_WATERMARKS, lambda _: None)
        self._log_starts = self._checkpoint(file_names.LOG_STARTS, self._on_log_starts_durable)
        self._cleaned_offsets = self._checkpoint(file_names.CLEANED_OFFSETS, lambda _: None)
        self._found_cleaned_offsets: Offsets = {}
        self._found_recovery_points: Offsets = {}
        self._found_high_watermarks: Offsets = {}
        self._found_log_starts: Offsets = {}

    def _checkpoint(self, name: str, on_durable: Callable[[Offsets], None]) -> OffsetCheckpoint:
        return OffsetCheckpoint(
            self.disk, self.path, name, on_durable=on_durable, on_error=self.take_offline
        )

    @classmethod
    def open(cls, *, disk: Disk, path: str, trace: Trace) -> LogDirectory:
        """Read what is there and tidy up; no log is opened yet. It may turn out to be offline."""
        directory = cls(disk=disk, path=path, trace=trace)
        try:
            directory._open()
        except DiskError as error:
            directory.take_offline(error)
        return directory

    def _open(self) -> None:
        disk, path = self.disk, self.path
        make_directory(disk, path)
        mark = f"{path}/{file_names.CLEAN_SHUTDOWN}"
        self.was_clean = disk.exists(mark)
        if self.was_clean:
            file = disk.open(mark)
            self.clean_broker_epoch = _broker_epoch_in(file.read(0, file.size_bytes))
            file.remove()
        # Before anything is written here: a mark that a power loss brought back would make the
        # next start trust logs that were never closed.
        disk.sync_directory_now(path)
        self._found_recovery_points = self._read(self._recovery_points)
        self._found_high_watermarks = self._read(self._high_watermarks)
        self._found_log_starts = self._read(self._log_starts)
        self._found_cleaned_offsets = self._read(self._cleaned_offsets)
        for name in disk.list_names(path):
            whole = f"{path}/{name}"
            if not disk.is_directory(whole):
                continue
            if name.endswith(file_names.DELETED_DIRECTORY):
                disk.remove_directory(whole)
                self.trace.emit(events.FileDiscarded(path=whole, reason="a deleted partition"))
            elif (found := file_names.topic_partition_of(name)) is not None:
                self.found.append(found)
        self.found.sort()
        self.is_read = True
        self.trace.emit(
            events.DirectoryOpened(
                directory=path, is_clean=self.was_clean, partitions=len(self.found)
            )
        )

    def refuse_if_offline(self) -> None:
        """DiskError if nothing here may be touched any more."""
        if self.offline is not None:
            raise DiskError(self.path, self.offline)

    def topic_id_of(self, topic_partition: TopicPartition) -> TopicId | None:
        """Which topic's partition was found here; None if its file is missing or torn."""
        return read_topic_id(self.disk, f"{self.path}/{topic_partition}")

    def open_log(
        self,
        topic_partition: TopicPartition,
        *,
        topic_id: TopicId | None,
        config: LogConfig,
        wall_ms: int,
    ) -> Log:
        """The log of this partition: recovered if it was found here, new otherwise.

        DiskError: the directory is offline now, or was already. Then no file is touched:

        1. Records before 128 are deleted; a power loss brings some of their segments back.
        2. At the start the recovery points cannot be read: the directory is offline, and where
           its logs begin is not known.
        3. Recovered all the same, the log would seem to begin with the old segments, and all that
           lies behind a hole among them would be cut.

        A log that was cut below its recovery point gets a lower one, durably: what is written next
        is not synced, and another start would not scan it.
        """
        assert topic_partition not in self.logs, f"{topic_partition} is open"
        self.refuse_if_offline()
        try:
            if topic_partition not in self.found:
                self._forget(topic_partition)
            log = self._open_log(topic_partition, topic_id, config, wall_ms)
            self.logs[topic_partition] = log
            self.before_rewind(log)
        except DiskError as error:
            self.logs.pop(topic_partition, None)
            self.take_offline(error)
            raise
        log.keeper = self
        return log

    def _open_log(
        self,
        topic_partition: TopicPartition,
        topic_id: TopicId | None,
        config: LogConfig,
        wall_ms: int,
    ) -> Log:
        log = Log.open(
            disk=self.disk,
            directory=f"{self.path}/{topic_partition}",
            topic_partition=topic_partition,
            topic_id=topic_id,
            config=config,
            trace=self.trace,
            wall_ms=wall_ms,
            clean=self.was_clean,
            recovery_point=self._found_recovery_points.get(topic_partition),
            log_start_offset=self._found_log_starts.get(topic_partition),
        )
        log.durable_log_start_offset = self._found_log_starts.get(topic_partition)
        cleaned = self._found_cleaned_offsets.get(topic_partition)
        log.cleaned_end_offset = None if cleaned is None else min(cleaned, log.log_end_offset)
        checkpointed = self._found_high_watermarks.get(topic_partition, 0)
        if checkpointed > log.high_watermark:
            log.advance_high_watermark(min(checkpointed, log.log_end_offset))
        return log

    def _forget(self, topic_partition: TopicPartition) -> None:
        """A topic of that name was deleted once: its offsets must not become the new one's.

        1. Partition t-0 is deleted at log start 500; the checkpoint still says so.
        2. A new t-0 begins at offset 0 and gets ten records, synced. The power fails.
        3. The log start 500 would be believed, and the ten records be dropped.
        """
        for found in (
            self._found_recovery_points,
            self._found_high_watermarks,
            self._found_log_starts,
            self._found_cleaned_offsets,
        ):
            found.pop(topic_partition, None)
        self._write_what_exceeds(
            topic_partition, recovery_point=0, log_start_offset=0, cleaned_end_offset=0
        )

    def discard_found(self, topic_partition: TopicPartition) -> None:
        """A partition that was found here belongs to no topic: its deletion had been cut short."""
        assert topic_partition not in self.logs, f"{topic_partition} is open"
        path = f"{self.path}/{topic_partition}"
        self.found.remove(topic_partition)
        try:
            self.disk.remove_directory(path)
        except DiskError as error:
            self.take_offline(error)
        self.trace.emit(events.FileDiscarded(path=path, reason="not in the metadata"))

    def remove_log(self, topic_partition: TopicPartition, *, unique: str, wall_ms: int) -> None:
        """The partition was deleted: its files go after a while."""
        log = self.logs.pop(topic_partition)
        if topic_partition in self.found:
            self.found.remove(topic_partition)
        try:
            log.rename_for_deletion(unique)
        except DiskError as error:
            self.take_offline(error)
        self._deleted.append((log, wall_ms + log.config.file_delete_delay_ms))

    def delete_due_files(self, wall_ms: int) -> None:
        """Go on with the deletions of segments and of whole partitions."""
        for log in list(self.logs.values()):
            log.delete_due_files(wall_ms)
        due = [log for log, due_ms in self._deleted if due_ms <= wall_ms]
        self._deleted = [(log, due_ms) for log, due_ms in self._deleted if due_ms > wall_ms]
        try:
            for log in due:
                log.remove()
        except DiskError as error:
            self.take_offline(error)

    # Checkpoints.

    def write_checkpoints(self) -> None:
        """Recovery points, high watermarks and log starts, without waiting."""
        if self.offline is not None:
            return
        try:
            self._recovery_points.write(self._recovery_point_offsets())
            self._high_watermarks.write(self._high_watermark_offsets())
            self._log_starts.write(self._log_start_offsets())
        except DiskError as error:
            self.take_offline(error)

    def before_rewind(self, log: Log) -> None:
        """See LogKeeper. A checkpoint that claims less than the truth costs only a scan."""
        self._write_what_exceeds(
            log.topic_partition,
            recovery_point=log.recovery_point,
            log_start_offset=log.log_start_offset,
            cleaned_end_offset=log.cleaned_end_offset or 0,
        )

    def on_log_cleaned(self, log: Log) -> None:
        """See LogKeeper. Without waiting: if the line is lost, a round is done again."""
        if self.offline is None:
            try:
                self._cleaned_offsets.write(self._cleaned_end_offsets())
            except DiskError as error:
                self.take_offline(error)

    def _write_what_exceeds(
        self,
        topic_partition: TopicPartition,
        *,
        recovery_point: int,
        log_start_offset: int,
        cleaned_end_offset: int,
    ) -> None:
        if self._recovery_points.may_exceed(topic_partition, recovery_point):
            self._recovery_points.write_now(self._recovery_point_offsets())
        if self._log_starts.may_exceed(topic_partition, log_start_offset):
            self._log_starts.write_now(self._log_start_offsets())
        if self._cleaned_offsets.may_exceed(topic_partition, cleaned_end_offset):
            self._cleaned_offsets.write_now(self._cleaned_end_offsets())

    def _cleaned_end_offsets(self) -> Offsets:
        """Of the logs that were compacted once; the others have no line, as in Kafka."""
        offsets = self._offsets(
            self._found_cleaned_offsets, lambda log: log.cleaned_end_offset or 0
        )
        return {name: offset for name, offset in offsets.items() if offset}

    def _recovery_point_offsets(self) -> Offsets:
        return self._offsets(self._found_recovery_points, lambda log: log.recovery_point)

    def _high_watermark_offsets(self) -> Offsets:
        return self._offsets(self._found_high_watermarks, lambda log: log.high_watermark)

    def _log_start_offsets(self) -> Offsets:
        return self._offsets(self._found_log_starts, lambda log: log.log_start_offset)

    def _offsets(self, found: Offsets, value: Callable[[Log], int]) -> Offsets:
        """Of the open logs; of those that were found but not opened (yet) what was found."""
        offsets = {
            name: found[name] for name in self.found if name in found and name not in self.logs
        }
        for name, log in self.logs.items():
            if log.files.exists:
                offsets[name] = value(log)
        return offsets

    def _on_log_starts_durable(self, offsets: Offsets) -> None:
        for topic_partition, offset in offsets.items():
            log = self.logs.get(topic_partition)
            if log is not None:
                log.durable_log_start_offset = offset

    def _read(self, checkpoint: OffsetCheckpoint) -> Offsets:
        try:
            return checkpoint.read()
        except CorruptCheckpoint as error:
            self.trace.emit(events.FileDiscarded(path=checkpoint.path, reason=f"corrupt: {error}"))
            return {}

    # The end.

    def close_cleanly(self, *, broker_epoch: int | None = None) -> None:
        """Make everything durable and mark the stop as clean: the next start scans nothing."""
        for log in self.logs.values():
            log.close_cleanly()
        if self.offline is not None:
            return
        try:
            self._recovery_points.write_now(self._recovery_point_offsets())
            self._high_watermarks.write_now(self._high_watermark_offsets())
            self._log_starts.write_now(self._log_start_offsets())
            self.disk.sync_directory_now(self.path)
            if not self._is_clean():
                return
            mark = self.disk.open(f"{self.path}/{file_names.CLEAN_SHUTDOWN}")
            mark.truncate(0)
            claimed = -1 if broker_epoch is None else broker_epoch
            mark.append(
                f'{{"version":{_CLEAN_MARK_VERSION},"brokerEpoch":{claimed}}}'.encode("ascii")
            )
            mark.sync_now()
            self.disk.sync_directory_now(self.path)
        except DiskError as error:
            self.take_offline(error)

    def _is_clean(self) -> bool:
        """Every log here is as it should be: opened by us and closed, or untouched since then.

        1. The power fails, and a log here ends with a torn batch.
        2. The broker starts and is stopped before it has learnt which logs it shall open.
        3. With a mark the next start would trust the torn batch.
        """
        return self.was_clean or all(found in self.logs for found in self.found)

    def on_sync_failed(self, path: str, reason: str) -> None:
        """A failed sync is never tried again."""
        self.take_offline(DiskError(path, f"sync failed: {reason}"))

    def on_log_failed(self, log: Log, error: DiskError) -> None:
        self.take_offline(error)

    def take_offline(self, error: DiskError) -> None:
        """For ever: the kernel may have dropped what it could not write."""
        if self.offline is not None:
            return
        self.offline = str(error)
        self.trace.emit(events.DirectoryOffline(directory=self.path, reason=self.offline))
        for log in self.logs.values():
            log.fail(error)

    def check(self) -> None:
        for topic_partition, log in self.logs.items():
            assert log.topic_partition == topic_partition
            assert self.is_read, topic_partition
            assert self.offline is None or log.failed is not None, topic_partition
            log.check()


def _broker_epoch_in(mark: bytes) -> int | None:
    """What a clean stop left behind; an older or damaged mark proves less, not nothing."""
    try:
        broker_epoch = json.loads(mark)["brokerEpoch"]
    except (ValueError, TypeError, KeyError):
        return None
    return broker_epoch if isinstance(broker_epoch, int) and broker_epoch >= 0 else None
