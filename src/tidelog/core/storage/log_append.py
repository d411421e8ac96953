"""How batches get into a log: checked, given their offsets, written at the end, remembered.

The hot path of a Produce: one header, one checksum, one walk over the records, one producer lookup,
one write. A refusal is a value and leaves no trace in the log. `Log` takes the public functions as
methods.
"""

# Size: every way into a log on one page: from clients, from coordinators, from the leader.

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.exceptions import TidelogError
from tidelog.core.storage import validation
from tidelog.core.storage.disk import DiskError
from tidelog.core.storage.producers import RememberedBatch
from tidelog.core.storage.record_validation import checked_records
from tidelog.core.storage.segment import Segment
from tidelog.core.storage.validation import BatchRefusal, RecordErrors
from tidelog.core.storage.verification import NOT_REQUIRED, Verification
from tidelog.core.wire.control_records import EndTransactionMarker
from tidelog.core.wire.record_batch import (
    CONTROL_BIT,
    HEADER_BYTES,
    LENGTH_PREFIX_BYTES,
    LOG_APPEND_TIME_BIT,
    TRANSACTIONAL_BIT,
    BatchHeader,
    CorruptBatch,
    batches,
    crc_is_valid,
    read_header,
    rebase,
    stamp_log_append_time,
)

if TYPE_CHECKING:
    from tidelog.core.storage.log import Log

_NONE = ErrorCode.NONE
_NO_LEADER_EPOCH = -1
"""What a batch says that was written before there were any."""


class Appended(NamedTuple):
    """What became of an append."""

    error: ErrorCode
    base_offset: int | None
    end_offset: int | None
    log_append_time_ms: int | None
    is_duplicate: bool
    message: str | None
    record_errors: RecordErrors = ()


class OffsetsOutOfOrder(TidelogError):
    """A copied batch does not continue the log."""

    def __init__(self, *, base_offset: int, end_offset: int, log_end_offset: int) -> None:
        super().__init__(
            f"offset {base_offset} does not continue a log that ends at {log_end_offset}"
        )
        self.base_offset = base_offset
        self.holds_log_end = base_offset <= log_end_offset < end_offset
        """Whether the batch begins earlier and reaches beyond the end of the log."""


def append_as_leader(
    log: Log,
    view: memoryview,
    *,
    leader_epoch: int,
    wall_ms: int,
    from_client: bool = True,
    verification: Verification | None = NOT_REQUIRED,
    transaction_version: int = 0,
) -> Appended:
    """Give the batch the next offsets and write it; `view` is changed in place.

    A client sends exactly one batch. The broker itself may append several at once, control
    batches among them; sequences are not checked then. The first batch of a transaction needs the
    verification that was begun for it; a marker is judged by the version of its transaction.
    """
    if log.failed is not None:
        return _storage_error(log.failed)
    try:
        if from_client:
            return _append_from_client(log, view, leader_epoch, wall_ms, verification)
        return _append_own(log, view, leader_epoch, wall_ms, verification, transaction_version)
    except DiskError as error:
        log.fail(error)
        return _storage_error(str(error))


def append_as_follower(
    log: Log, view: memoryview, *, wall_ms: int, leader_epoch_max: int | None = None
) -> Appended:
    """Write batches as the leader has them, offsets and leader epochs included.

    A partial batch at the end is left out, and so is everything from a batch on that is later
    than `leader_epoch_max`: the sender was no leader any more when it read that. CorruptBatch
    or OffsetsOutOfOrder: nothing of the view was written. Gaps are allowed in compacted
    topics only.
    """
    if log.failed is not None:
        return _storage_error(log.failed)
    found = list(batches(view))
    if leader_epoch_max is not None:
        later = (at for at, (_, each) in enumerate(found) if each.leader_epoch > leader_epoch_max)
        del found[next(later, len(found)) :]
    expected = first = log.log_end_offset
    leader_epoch = log.epochs.latest
    markers: dict[int, EndTransactionMarker | None] = {}
    for position, header in found:
        if not crc_is_valid(view, position, header):
            raise CorruptBatch(f"wrong checksum at offset {header.base_offset}")
        base_offset = header.base_offset
        if base_offset < expected or (base_offset > expected and not log.config.compact):
            raise OffsetsOutOfOrder(
                base_offset=base_offset, end_offset=header.end_offset, log_end_offset=expected
            )
        leader_epoch = _refuse_older(header.leader_epoch, leader_epoch)
        if header.attributes & CONTROL_BIT:
            markers[position] = validation.end_marker_of(view[position:], header)
        expected = header.end_offset
    try:
        _write_run(log, view, found, markers, wall_ms)
    except DiskError as error:
        log.fail(error)
        return _storage_error(str(error))
    return Appended(_NONE, first, log.log_end_offset, None, False, None)


# The leader.


def _append_from_client(
    log: Log,
    view: memoryview,
    leader_epoch: int,
    wall_ms: int,
    verification: Verification | None,
) -> Appended:
    if len(view) < HEADER_BYTES or (
        header := read_header(view)
    ).batch_length + LENGTH_PREFIX_BYTES != len(view):
        found = validation.single_batch(view)
        if isinstance(found, BatchRefusal):
            return _refused(found)
        view, header = found
    config = log.config
    refusal = validation.refuse_bytes(view, header, config) or validation.refuse_client(header)
    if refusal is not None:
        return _refused(refusal)
    checked = checked_records(view, header, config, wall_ms)
    if isinstance(checked, BatchRefusal):
        return _refused(checked)
    header = checked
    log_append_time_ms = None
    if not log.is_plain or header.attributes & LOG_APPEND_TIME_BIT:
        prepared = _prepare(log, view, header, wall_ms)
        if isinstance(prepared, BatchRefusal):
            return _refused(prepared)
        view, header = prepared
        if header.attributes & LOG_APPEND_TIME_BIT:
            log_append_time_ms = wall_ms
    if header.producer_id >= 0:
        if verification is NOT_REQUIRED or not header.attributes & TRANSACTIONAL_BIT:
            verdict = log.producers.decide(header)
        else:
            verdict = log.producers.decide_first(header, verification)
        if verdict is not None:
            return _not_appended(verdict, header)
    base_offset = log.log_end_offset
    rebase(view, 0, base_offset=base_offset, leader_epoch=leader_epoch)
    _write_one(log, view, header, leader_epoch, wall_ms, None)
    return Appended(_NONE, base_offset, log.log_end_offset, log_append_time_ms, False, None)


def _prepare(
    log: Log, view: memoryview, header: BatchHeader, wall_ms: int
) -> tuple[memoryview, BatchHeader] | BatchRefusal:
    """What the topic's settings require beyond the ordinary: codec, time of appending."""
    packed = validation.recompressed(view, header, log.config)
    if isinstance(packed, BatchRefusal):
        return packed
    if packed is not None:
        view = packed
    if log.config.message_timestamp_type == "LogAppendTime":
        stamp_log_append_time(view, 0, timestamp_ms=wall_ms)
    elif header.attributes & LOG_APPEND_TIME_BIT:
        validation.clear_log_append_time(view, header)
    return view, read_header(view)


def _append_own(
    log: Log,
    view: memoryview,
    leader_epoch: int,
    wall_ms: int,
    verification: Verification | None,
    transaction_version: int,
) -> Appended:
    found = validation.split_batches(view)
    if isinstance(found, BatchRefusal):
        return _refused(found)
    markers: list[EndTransactionMarker | None] = []
    for batch, header in found:
        refusal = validation.refuse_bytes(batch, header, log.config)
        if refusal is not None:
            return _refused(refusal)
        try:
            marker = validation.end_marker_of(batch, header)
        except CorruptBatch as error:
            return _refused(BatchRefusal(ErrorCode.INVALID_RECORD, str(error)))
        if header.producer_id >= 0:
            code = log.producers.decide_from_coordinator(
                header,
                marker,
                verification=verification,
                transaction_version=transaction_version,
            )
            if code is not None:
                return _not_appended(code, header)
        markers.append(marker)
    base_offset = log.log_end_offset
    for (batch, header), marker in zip(found, markers, strict=True):
        rebase(batch, 0, base_offset=log.log_end_offset, leader_epoch=leader_epoch)
        _write_one(log, batch, header, leader_epoch, wall_ms, marker)
    return Appended(_NONE, base_offset, log.log_end_offset, None, False, None)


def _write_one(
    log: Log,
    view: memoryview,
    header: BatchHeader,
    leader_epoch: int,
    wall_ms: int,
    marker: EndTransactionMarker | None,
) -> None:
    """The batch is rebased to the log end; once this returns it is part of the log."""
    base_offset = log.log_end_offset
    end_offset = base_offset + header.last_offset_delta + 1
    size_bytes = len(view)
    max_timestamp_ms = header.max_timestamp_ms
    if leader_epoch != log.epochs.latest:
        log.assign_leader_epoch(leader_epoch, base_offset)
    segment = _segment_for(log, size_bytes, base_offset, end_offset, max_timestamp_ms, wall_ms)
    file = segment.file
    position = file.size_bytes
    file.append(view)
    segment.note_batch(
        position=position,
        size_bytes=size_bytes,
        end_offset=end_offset,
        max_timestamp_ms=max_timestamp_ms,
        index_interval_bytes=log.config.index_interval_bytes,
    )
    if header.producer_id >= 0:
        _apply(log, segment, header, base_offset, marker)
    log.log_end_offset = end_offset
    if log.config.flush_messages is not None:
        _flush_by_count(log, log.config.flush_messages)


def _flush_by_count(log: Log, flush_messages: int) -> None:
    if log.log_end_offset - log.files.durability.wanted_end_offset >= flush_messages:
        log.files.want_sync(log.log_end_offset)


def _segment_for(
    log: Log,
    size_bytes: int,
    base_offset: int,
    end_offset: int,
    max_timestamp_ms: int,
    wall_ms: int,
) -> Segment:
    """The active segment, or a new one if the batch may not go into it."""
    segments = log.files.segments
    if not segments:
        return log.begin_segment(log.log_end_offset, wall_ms)
    segment = segments[-1]
    because = segment.roll_reason(
        size_bytes=size_bytes,
        end_offset=end_offset,
        max_timestamp_ms=max_timestamp_ms,
        wall_ms=wall_ms,
        config=log.config,
        jitter_ms=log.jitter_ms,
    )
    if because is None or not segment.file.size_bytes:
        return segment
    # Named after the end of the log, so that after a power loss a missing segment is noticed.
    # Only a gap of two billion offsets (a copy of a compacted log) does not fit that.
    if because == "offsets" and end_offset - 1 - log.log_end_offset > 2**31 - 1:
        return log.roll(because=because, base_offset=base_offset, wall_ms=wall_ms)
    return log.roll(because=because, base_offset=log.log_end_offset, wall_ms=wall_ms)


def _apply(
    log: Log,
    segment: Segment,
    header: BatchHeader,
    base_offset: int,
    marker: EndTransactionMarker | None,
) -> None:
    aborted = log.producers.apply(header, base_offset=base_offset, marker=marker)
    if aborted is not None:
        log.files.aborted.add(segment.base_offset, aborted)


# The follower.


def _write_run(
    log: Log,
    view: memoryview,
    found: list[tuple[int, BatchHeader]],
    markers: dict[int, EndTransactionMarker | None],
    wall_ms: int,
) -> None:
    """Consecutive batches go into their segment with one write."""
    run: list[tuple[int, BatchHeader]] = []
    for position, header in found:
        if header.leader_epoch >= 0 and header.leader_epoch != log.epochs.latest:
            _write_together(log, view, run, markers, wall_ms)
            run = []
            log.assign_leader_epoch(header.leader_epoch, header.base_offset)
        run_bytes = position - run[0][0] if run else 0
        active = log.files.active
        if run and (active is None or not _fits(log, active, run_bytes, header, wall_ms)):
            _write_together(log, view, run, markers, wall_ms)
            run = []
        run.append((position, header))
    _write_together(log, view, run, markers, wall_ms)


def _fits(log: Log, active: Segment, run_bytes: int, header: BatchHeader, wall_ms: int) -> bool:
    because = active.roll_reason(
        size_bytes=run_bytes + header.size_bytes,
        end_offset=header.end_offset,
        max_timestamp_ms=header.max_timestamp_ms,
        wall_ms=wall_ms,
        config=log.config,
        jitter_ms=log.jitter_ms,
    )
    return because is None


def _write_together(
    log: Log,
    view: memoryview,
    run: list[tuple[int, BatchHeader]],
    markers: dict[int, EndTransactionMarker | None],
    wall_ms: int,
) -> None:
    if not run:
        return
    (start, first), (end, last) = run[0], run[-1]
    end += last.size_bytes
    largest_ms = max(header.max_timestamp_ms for _, header in run)
    segment = _segment_for(
        log, end - start, first.base_offset, last.end_offset, largest_ms, wall_ms
    )
    file_position = segment.file.size_bytes - start
    segment.file.append(view[start:end])
    for position, header in run:
        segment.note_batch(
            position=file_position + position,
            size_bytes=header.size_bytes,
            end_offset=header.end_offset,
            max_timestamp_ms=header.max_timestamp_ms,
            index_interval_bytes=log.config.index_interval_bytes,
        )
        if header.producer_id >= 0:
            _apply(log, segment, header, header.base_offset, markers.get(position))
    log.log_end_offset = last.end_offset


def _refuse_older(leader_epoch: int, before: int | None) -> int | None:
    """The latest leader epoch after this batch. No checksum covers it, so its order must do."""
    if leader_epoch < _NO_LEADER_EPOCH or (before is not None and 0 <= leader_epoch < before):
        raise CorruptBatch(f"leader epoch {leader_epoch} after {before}")
    return before if leader_epoch == _NO_LEADER_EPOCH else leader_epoch


def _refused(refusal: BatchRefusal) -> Appended:
    return Appended(refusal.error, None, None, None, False, refusal.message, refusal.records)


def _storage_error(reason: str) -> Appended:
    return Appended(ErrorCode.KAFKA_STORAGE_ERROR, None, None, None, False, reason)


def _not_appended(verdict: ErrorCode | RememberedBatch, header: BatchHeader) -> Appended:
    """A retry is answered like the batch it repeats, as in Kafka with that batch's time."""
    if isinstance(verdict, RememberedBatch):
        return Appended(
            _NONE, verdict.base_offset, verdict.end_offset, verdict.timestamp_ms, True, None
        )
    return Appended(
        verdict,
        None,
        None,
        None,
        False,
        f"{verdict.name}: producer {header.producer_id}, producer epoch {header.producer_epoch}, "
        f"sequence {header.base_sequence}",
    )
