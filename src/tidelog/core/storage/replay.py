"""Rebuilding what the batches of a log imply: producer states and leader epochs."""

from __future__ import annotations

from contextlib import suppress

from tidelog.core.formats import file_names
from tidelog.core.formats.producer_snapshots import CorruptSnapshot
from tidelog.core.model.trace import Trace
from tidelog.core.storage import events, producer_snapshot
from tidelog.core.storage.epochs import LeaderEpochs
from tidelog.core.storage.log_files import LogFiles
from tidelog.core.storage.producers import ProducerStateEntry, ProducerStates
from tidelog.core.storage.segment import Segment
from tidelog.core.storage.validation import end_marker_of
from tidelog.core.wire.record_batch import CONTROL_BIT, CorruptBatch


def producer_states(
    files: LogFiles,
    *,
    start_offset: int,
    end_offset: int,
    trace: Trace,
    aborted_from: int | None = None,
) -> ProducerStates:
    """The newest usable snapshot and the batches after it.

    Transactions whose abort marker lies at `aborted_from` or later are put into the index of
    aborted transactions, which must not know them yet.
    """
    states = ProducerStates()
    offset = start_offset
    found = _newest_snapshot(files, trace)
    if found is not None:
        states.load(found[1])
        offset = max(offset, found[0])
    if offset >= end_offset or not files.segments:
        return states
    for segment in files.segments[files.position_in_list(offset) :]:
        with suppress(CorruptBatch):  # an old segment was damaged: whoever reads it will notice
            _replay_segment(files, states, segment, offset, end_offset, aborted_from)
    return states


def _replay_segment(
    files: LogFiles,
    states: ProducerStates,
    segment: Segment,
    offset: int,
    end_offset: int,
    aborted_from: int | None,
) -> None:
    for position, header in segment.sound_batches(segment.position_past_damage(offset)):
        if header.base_offset >= end_offset:
            return
        if header.producer_id < 0:
            continue
        marker = None
        if header.attributes & CONTROL_BIT:
            marker = end_marker_of(segment.file.read(position, header.size_bytes), header)
        aborted = states.apply(header, base_offset=header.base_offset, marker=marker)
        is_new = aborted_from is not None and header.base_offset >= aborted_from
        if aborted is not None and is_new:
            files.aborted.add(segment.base_offset, aborted)


def _newest_snapshot(files: LogFiles, trace: Trace) -> tuple[int, list[ProducerStateEntry]] | None:
    for offset in reversed(files.snapshots.copy()):
        path = file_names.offset_file(files.directory, offset, file_names.SNAPSHOT)
        file = files.disk.open(path)
        try:
            return offset, producer_snapshot.decode(file.read(0, file.size_bytes))
        except CorruptSnapshot as error:
            files.remove_snapshot(offset)
            trace.emit(events.FileDiscarded(path=path, reason=f"corrupt snapshot: {error}"))
    return None


def leader_epochs(segments: list[Segment], *, start_offset: int) -> LeaderEpochs:
    """From the headers of all batches but those that were damaged."""
    epochs = LeaderEpochs()
    for segment in segments:
        for _, header in segment.sound_batches():
            latest = epochs.latest
            if header.leader_epoch >= 0 and (latest is None or header.leader_epoch > latest):
                epochs.assign(header.leader_epoch, header.base_offset)
    epochs.cut_start(start_offset)
    return epochs
