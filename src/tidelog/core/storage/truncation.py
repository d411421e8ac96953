"""How a log loses records: its end is truncated, it starts anew, its oldest segments are deleted.

What destroys data first makes durable that it may be gone. A truncation lowers the recovery point
in the directory's checkpoint; the files of deleted segments are touched only once the checkpoint
and the leader epochs say that the log starts behind them. So what a power loss brings back is
recognised, even if one of the two is lost.
"""

from __future__ import annotations

from tidelog.core.model.exceptions import TidelogError
from tidelog.core.storage import events, replay, retention
from tidelog.core.storage.disk import DiskError
from tidelog.core.storage.log_append import AppendableLog
from tidelog.core.storage.producers import ProducerStates


class OffsetOutOfRange(TidelogError):
    """The offset lies before the log's start or behind its end."""


class TruncatableLog(AppendableLog):
    """A log that can also be truncated and deleted from; Log adds reading."""

    __slots__ = ()

    # Cutting.

    def truncate_to(self, end_offset: int, *, wall_ms: int | None = None) -> bool:
        """Drop every batch that reaches beyond `end_offset`; False if there is none.

        A batch that holds `end_offset` in its middle goes as a whole.
        """
        assert end_offset >= 0, end_offset
        try:
            if end_offset >= self.log_end_offset:
                if self.epochs.cut_end(self.log_end_offset):
                    self.files.write_epochs(self.epochs, changed_from=None)
                return False
            self._truncate(end_offset, wall_ms)
        except DiskError as error:
            self.fail(error)
        return True

    def _truncate(self, end_offset: int, wall_ms: int | None) -> None:
        segments = self.files.segments
        if not segments or end_offset < segments[0].base_offset:
            self._start_anew(end_offset, wall_ms)
            return
        before = self.log_end_offset
        end_offset = self.files.end_of_cut(end_offset)
        self._rewind(end_offset, end_offset)
        self.files.cut_to(end_offset)
        self.log_end_offset = end_offset
        self.log_start_offset = min(self.log_start_offset, end_offset)
        self.high_watermark = min(self.high_watermark, end_offset)
        if self.epochs.cut_end(end_offset):
            self.files.write_epochs(self.epochs, changed_from=None)
        for offset in [offset for offset in self.files.snapshots if offset > end_offset]:
            self.files.remove_snapshot(offset)
        self.begin_segment(end_offset, wall_ms)
        self.producers = replay.producer_states(
            self.files,
            start_offset=self.log_start_offset,
            end_offset=end_offset,
            trace=self.trace,
        )
        self.producers.on_high_watermark(self.high_watermark)
        self.trace.emit(
            events.LogTruncated(
                partition=str(self.topic_partition),
                from_end_offset=before,
                to_end_offset=end_offset,
            )
        )

    def start_anew_at(self, offset: int, *, wall_ms: int | None = None) -> None:
        """Forget everything; the next record gets `offset`."""
        try:
            self._start_anew(offset, wall_ms)
        except DiskError as error:
            self.fail(error)

    def _start_anew(self, offset: int, wall_ms: int | None) -> None:
        self._rewind(0, offset)
        self.files.drop_all()
        self.files.durability.start_anew(offset)
        self.producers = ProducerStates()
        self.epochs.clear()
        self.log_start_offset = self.log_end_offset = self.high_watermark = offset
        if self.files.exists:
            self.files.write_epochs(self.epochs, changed_from=None)
            self.begin_segment(offset, wall_ms)
        self.trace.emit(
            events.LogStartedAnew(partition=str(self.topic_partition), at_offset=offset)
        )

    def _rewind(self, recovery_point: int, log_start_offset: int) -> None:
        """Before data is destroyed, nothing durable may claim that it need not be scanned."""
        self.files.durability.truncate(recovery_point)
        self.log_start_offset = min(self.log_start_offset, log_start_offset)
        if self.keeper is not None:
            self.keeper.before_rewind(self)

    # Deleting from the start.

    def delete_records_before(self, offset: int) -> int:
        """Move the log start to `offset`, not beyond the high watermark; the new log start."""
        if offset > self.high_watermark or offset < 0:
            raise OffsetOutOfRange(f"{offset} is beyond the high watermark {self.high_watermark}")
        try:
            self._move_log_start(offset, "records deleted")
            self._drop_behind_log_start("records deleted")
        except DiskError as error:
            self.fail(error)
        return self.log_start_offset

    def enforce_retention(self, wall_ms: int) -> int:
        """Delete the segments that the topic's settings do not keep; how many."""
        try:
            count = self._drop_behind_log_start("log start")
            size = retention.by_size(
                self.files.segments,
                config=self.config,
                high_watermark=self.high_watermark,
                log_end_offset=self.log_end_offset,
            )
            count += self._drop_first(size, "retention size", wall_ms)
            age = retention.by_time(
                self.files.segments,
                config=self.config,
                high_watermark=self.high_watermark,
                log_end_offset=self.log_end_offset,
                wall_ms=wall_ms,
            )
            return count + self._drop_first(age, "retention time", wall_ms)
        except DiskError as error:
            self.fail(error)
            return 0

    def _drop_behind_log_start(self, because: str) -> int:
        count = retention.behind_log_start(
            self.files.segments,
            log_start_offset=self.log_start_offset,
            log_end_offset=self.log_end_offset,
        )
        return self._drop_first(count, because, None)

    def _drop_first(self, count: int, because: str, wall_ms: int | None) -> int:
        if not count:
            return 0
        segments = self.files.segments
        if count == len(segments):
            self.roll(because="retention", base_offset=self.log_end_offset, wall_ms=wall_ms)
        start_offset = segments[count].base_offset
        self._move_log_start(start_offset, because)
        gone = self.files.drop_first(count, end_offset=start_offset)
        self._rename_pending_deletes()
        self.trace.emit(
            events.SegmentsDeleted(
                partition=str(self.topic_partition),
                base_offsets=tuple(segment.base_offset for segment in gone),
                because=because,
            )
        )
        return count

    def _move_log_start(self, offset: int, because: str) -> None:
        before = self.log_start_offset
        if offset <= before:
            return
        self.log_start_offset = offset
        if self.epochs.cut_start(offset):
            self.files.write_epochs(self.epochs, changed_from=None)
            self.files.want_epochs()
        self.trace.emit(
            events.LogStartMoved(
                partition=str(self.topic_partition),
                from_offset=before,
                to_offset=offset,
                because=because,
            )
        )

    def delete_due_files(self, wall_ms: int) -> int:
        """Go on with deletions: rename what may be renamed, remove what waited long enough."""
        try:
            self._rename_pending_deletes()
            return self.files.remove_pending_deletes(
                wall_ms=wall_ms, delay_ms=self.config.file_delete_delay_ms
            )
        except DiskError as error:
            self.fail(error)
            return 0

    def _rename_pending_deletes(self) -> None:
        durable = self.log_start_offset
        if self.keeper is not None:
            durable = self.durable_log_start_offset or 0
        self.files.rename_pending_deletes(durable_log_start_offset=durable)

    def expire_producers(self, wall_ms: int) -> int:
        """Forget the producers that have been idle for too long."""
        count = self.producers.expire(
            wall_ms=wall_ms, expiration_ms=self.config.producer_id_expiration_ms
        )
        if count:
            self.trace.emit(
                events.ProducersExpired(partition=str(self.topic_partition), count=count)
            )
        return count
