"""How a log loses records: its end is truncated, it starts anew, its oldest segments are deleted.

What destroys data first makes durable that it may be gone. A truncation lowers the recovery point
in the directory's checkpoint; the files of deleted segments are touched only once the checkpoint
and the leader epochs say that the log starts behind them. So what a power loss brings back is
recognised, even if one of the two is lost. `Log` takes the public functions as methods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.model.exceptions import TidelogError
from tidelog.core.storage import events, replay, retention
from tidelog.core.storage.disk import DiskError
from tidelog.core.storage.producers import ProducerStates

if TYPE_CHECKING:
    from tidelog.core.storage.log import Log


class OffsetOutOfRange(TidelogError):
    """The offset lies before the log's start or behind its end."""


# Cutting.


def truncate_to(log: Log, end_offset: int, *, wall_ms: int | None = None) -> bool:
    """Drop every batch that reaches beyond `end_offset`; False if there is none.

    A batch that holds `end_offset` in its middle goes as a whole.
    """
    assert end_offset >= 0, end_offset
    try:
        if end_offset >= log.log_end_offset:
            if log.epochs.cut_end(log.log_end_offset):
                log.files.write_epochs(log.epochs, changed_from=None)
            return False
        _truncate(log, end_offset, wall_ms)
    except DiskError as error:
        log.fail(error)
    return True


def _truncate(log: Log, end_offset: int, wall_ms: int | None) -> None:
    segments = log.files.segments
    if not segments or end_offset < segments[0].base_offset:
        _start_anew(log, end_offset, wall_ms)
        return
    before = log.log_end_offset
    end_offset = log.files.end_of_cut(end_offset)
    _rewind(log, end_offset, end_offset)
    log.files.cut_to(end_offset)
    log.log_end_offset = end_offset
    log.log_start_offset = min(log.log_start_offset, end_offset)
    log.high_watermark = min(log.high_watermark, end_offset)
    if log.epochs.cut_end(end_offset):
        log.files.write_epochs(log.epochs, changed_from=None)
    for offset in [offset for offset in log.files.snapshots if offset > end_offset]:
        log.files.remove_snapshot(offset)
    log.begin_segment(end_offset, wall_ms)
    log.producers = replay.producer_states(
        log.files,
        start_offset=log.log_start_offset,
        end_offset=end_offset,
        trace=log.trace,
    )
    log.producers.on_high_watermark(log.high_watermark)
    log.trace.emit(
        events.LogTruncated(
            partition=str(log.topic_partition),
            from_end_offset=before,
            to_end_offset=end_offset,
        )
    )


def start_anew_at(log: Log, offset: int, *, wall_ms: int | None = None) -> None:
    """Forget everything; the next record gets `offset`."""
    try:
        _start_anew(log, offset, wall_ms)
    except DiskError as error:
        log.fail(error)


def _start_anew(log: Log, offset: int, wall_ms: int | None) -> None:
    _rewind(log, 0, offset)
    log.files.drop_all()
    log.files.durability.start_anew(offset)
    log.producers = ProducerStates()
    log.epochs.clear()
    log.log_start_offset = log.log_end_offset = log.high_watermark = offset
    if log.files.exists:
        log.files.write_epochs(log.epochs, changed_from=None)
        log.begin_segment(offset, wall_ms)
    log.trace.emit(events.LogStartedAnew(partition=str(log.topic_partition), at_offset=offset))


def _rewind(log: Log, recovery_point: int, log_start_offset: int) -> None:
    """Before data is destroyed, nothing durable may claim that it need not be scanned."""
    log.files.durability.truncate(recovery_point)
    log.log_start_offset = min(log.log_start_offset, log_start_offset)
    if log.cleaned_end_offset is not None:
        log.cleaned_end_offset = min(log.cleaned_end_offset, recovery_point)
    if log.keeper is not None:
        log.keeper.before_rewind(log)


# Deleting from the start.


def delete_records_before(log: Log, offset: int) -> int:
    """Move the log start to `offset`, not beyond the high watermark; the new log start."""
    if offset > log.high_watermark or offset < 0:
        raise OffsetOutOfRange(f"{offset} is beyond the high watermark {log.high_watermark}")
    try:
        _move_log_start(log, offset, "records deleted")
        _drop_behind_log_start(log, "records deleted")
    except DiskError as error:
        log.fail(error)
    return log.log_start_offset


def enforce_retention(log: Log, wall_ms: int) -> int:
    """Delete the segments that the topic's settings do not keep; how many."""
    try:
        count = _drop_behind_log_start(log, "log start")
        size = retention.by_size(
            log.files.segments,
            config=log.config,
            high_watermark=log.high_watermark,
            log_end_offset=log.log_end_offset,
        )
        count += _drop_first(log, size, "retention size", wall_ms)
        age = retention.by_time(
            log.files.segments,
            config=log.config,
            high_watermark=log.high_watermark,
            log_end_offset=log.log_end_offset,
            wall_ms=wall_ms,
        )
        return count + _drop_first(log, age, "retention time", wall_ms)
    except DiskError as error:
        log.fail(error)
        return 0


def _drop_behind_log_start(log: Log, because: str) -> int:
    count = retention.behind_log_start(
        log.files.segments,
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
    )
    return _drop_first(log, count, because, None)


def _drop_first(log: Log, count: int, because: str, wall_ms: int | None) -> int:
    if not count:
        return 0
    segments = log.files.segments
    if count == len(segments):
        log.roll(because="retention", base_offset=log.log_end_offset, wall_ms=wall_ms)
    start_offset = segments[count].base_offset
    _move_log_start(log, start_offset, because)
    gone = log.files.drop_first(count, end_offset=start_offset)
    _rename_pending_deletes(log)
    log.trace.emit(
        events.SegmentsDeleted(
            partition=str(log.topic_partition),
            base_offsets=tuple(segment.base_offset for segment in gone),
            because=because,
        )
    )
    return count


def _move_log_start(log: Log, offset: int, because: str) -> None:
    before = log.log_start_offset
    if offset <= before:
        return
    log.log_start_offset = offset
    if log.epochs.cut_start(offset):
        log.files.write_epochs(log.epochs, changed_from=None)
        log.files.want_epochs()
    log.trace.emit(
        events.LogStartMoved(
            partition=str(log.topic_partition),
            from_offset=before,
            to_offset=offset,
            because=because,
        )
    )


def delete_due_files(log: Log, wall_ms: int) -> int:
    """Go on with deletions: rename what may be renamed, remove what waited long enough."""
    try:
        _rename_pending_deletes(log)
        return log.files.remove_pending_deletes(
            wall_ms=wall_ms, delay_ms=log.config.file_delete_delay_ms
        )
    except DiskError as error:
        log.fail(error)
        return 0


def _rename_pending_deletes(log: Log) -> None:
    durable = log.log_start_offset
    if log.keeper is not None:
        durable = log.durable_log_start_offset or 0
    log.files.rename_pending_deletes(durable_log_start_offset=durable)


def expire_producers(log: Log, wall_ms: int) -> int:
    """Forget the producers that have been idle for too long."""
    count = log.producers.expire(
        wall_ms=wall_ms, expiration_ms=log.config.producer_id_expiration_ms
    )
    if count:
        log.trace.emit(events.ProducersExpired(partition=str(log.topic_partition), count=count))
    return count
