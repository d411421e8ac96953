"""Opening a log: trust what is known to be durable, scan the rest, rebuild the files beside it.

After a clean stop nothing is read but the end of the active segment. After any other stop the
segments from the recovery point on are scanned (recovery_scan.py); their indexes, the leader epochs
and the producer states are rebuilt. Segments below the recovery point are trusted: they were
synced with their names and indexes; an index that is missing all the same is rebuilt.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from tidelog.core.formats import file_names
from tidelog.core.formats.text_checkpoints import CorruptCheckpoint
from tidelog.core.model.ids import TopicId, TopicPartition
from tidelog.core.model.trace import Trace
from tidelog.core.storage import events, partition_files, replay
from tidelog.core.storage.aborted import AbortedIndex
from tidelog.core.storage.config import LogConfig
from tidelog.core.storage.disk import Disk
from tidelog.core.storage.epochs import LeaderEpochs
from tidelog.core.storage.log_files import LogFiles
from tidelog.core.storage.producers import ProducerStates
from tidelog.core.storage.recovery_scan import RecoveryScan
from tidelog.core.storage.segment import Segment
from tidelog.core.storage.segment_swap import BESIDE_LOG, finish_swaps
from tidelog.core.wire.record_batch import CorruptBatch


class Opened(NamedTuple):
    """The parts of a log as they were found on disk, or made good."""

    files: LogFiles
    epochs: LeaderEpochs
    producers: ProducerStates
    log_start_offset: int
    log_end_offset: int
    unsynced: list[Segment]
    """Not growing any more, whole, but perhaps not durable yet."""


class Recovery:
    """One opening of one log."""

    def __init__(
        self,
        *,
        disk: Disk,
        directory: str,
        topic_partition: TopicPartition,
        config: LogConfig,
        trace: Trace,
        wall_ms: int,
        recovery_point: int,
        log_start_offset: int | None,
    ) -> None:
        self._disk = disk
        self._directory = directory
        self._partition = str(topic_partition)
        self._config = config
        self._trace = trace
        self._wall_ms = wall_ms
        self._recovery_point = recovery_point
        self._log_start_offset = log_start_offset or 0
        self._is_start_known = log_start_offset is not None
        self._names_changed = False

    def run(self, *, clean: bool, topic_id: TopicId | None) -> Opened:
        if finish_swaps(self._disk, self._directory, trace=self._trace):
            self._names_changed = True
        names = self._disk.list_names(self._directory)
        segments = self._tidy_up(names)
        self._drop_before(self._log_start_offset, segments)
        self._drop_stale_head(segments)
        scan: RecoveryScan | None = None
        log_end_offset = self._clean_end(segments) if clean else None
        if log_end_offset is None and segments:
            scan, segments = self._scan(segments)
            log_end_offset = scan.end_offset
        if log_end_offset is None or log_end_offset < self._log_start_offset:
            for segment in segments:
                self._drop(segment, "all of the log lies before its start")
            segments, log_end_offset, scan = [], self._log_start_offset, None
        if segments:
            self._log_start_offset = max(self._log_start_offset, segments[0].base_offset)
        self._check_indexes(names, segments, log_end_offset, scan)
        files = LogFiles(
            disk=self._disk,
            directory=self._directory,
            topic_id=topic_id or partition_files.read_topic_id(self._disk, self._directory),
            exists=bool(names) or self._disk.is_directory(self._directory),
            synced_end_offset=log_end_offset
            if scan is None
            else min(self._recovery_point, log_end_offset),
        )
        files.segments = segments
        if scan is not None:
            files.doubt_names()
        self._find_beside(files, names, log_end_offset, scan)
        epochs = self._leader_epochs(files, log_end_offset, scan)
        producers = self._producer_states(files, log_end_offset, scan)
        unsynced = self._mark_synced(segments, scan)
        if self._names_changed:
            self._disk.sync_directory_now(self._directory)
        if scan is not None:
            self._emit_outcome(scan, segments, log_end_offset)
        return Opened(files, epochs, producers, self._log_start_offset, log_end_offset, unsynced)

    # Segments.

    def _tidy_up(self, names: list[str]) -> list[Segment]:
        """Remove what interrupted operations left behind; the segments that are there."""
        offsets = (file_names.offset_of(name, file_names.LOG) for name in names)
        bases = {offset for offset in offsets if offset is not None}
        for name in names:
            if name.endswith(file_names.LEFTOVERS):
                self._discard(name, "left behind by an interrupted operation")
            for suffix in BESIDE_LOG:
                offset = file_names.offset_of(name, suffix)
                if offset is not None and offset not in bases:
                    self._discard(name, "an index without its segment")
        return [
            Segment.existing(
                disk=self._disk,
                directory=self._directory,
                base_offset=base_offset,
                created_ms=self._wall_ms,
            )
            for base_offset in sorted(bases)
        ]

    def _drop_before(self, start_offset: int, segments: list[Segment]) -> None:
        """They were being deleted when the broker stopped; a power loss may bring some back."""
        while len(segments) > 1 and segments[1].base_offset <= start_offset:
            self._drop(segments.pop(0), "lies before the log start")

    def _drop_stale_head(self, segments: list[Segment]) -> None:
        """Find out which side of a hole is stale when the log start checkpoint does not tell.

        The leader epochs begin at the log start, and their file is durable before a deleted
        segment loses its name.

        1. Records before 128 are deleted, segments 42 to 117 renamed. The power fails, and names
           42, 49 and 90 come back.
        2. The log start checkpoint is damaged. The log seems to begin at 42, with holes.
        3. Leader epochs from 128 on tell that the holes lie in the deleted head. Taken for holes
           in an unsynced tail, they would cost everything behind them.

        If the leader epochs are lost, too, the recovery point tells: everything before it was
        synced, so a hole there is no hole in an unsynced tail. Without a hole nothing is dropped:
        records that come back cost less than records that go.
        """
        epochs_start = self._leader_epochs_start()
        known_end = epochs_start
        if known_end is None:
            known_end = 0 if self._is_start_known else self._recovery_point
        hole = 0
        for at, (before, after) in enumerate(pairwise(segments), start=1):
            if after.base_offset > known_end:
                break
            if not self._ends_at(before, after.base_offset):
                hole = at
        if not hole:
            return
        for segment in segments[:hole]:
            self._drop(segment, "before a hole in a deleted head")
        del segments[:hole]
        if epochs_start is not None:
            self._drop_before(epochs_start, segments)
            self._log_start_offset = max(self._log_start_offset, epochs_start)

    def _leader_epochs_start(self) -> int | None:
        try:
            entries = LeaderEpochs.decode(self._read_leader_epochs()).entries
        except CorruptCheckpoint:
            return None
        return entries[0][1] if entries else None

    def _ends_at(self, segment: Segment, offset: int) -> bool:
        try:
            return segment.read_end_offset() == offset
        except CorruptBatch:
            return False

    def _clean_end(self, segments: list[Segment]) -> int | None:
        """Where the log ends; None if its end is not what a clean stop leaves behind."""
        if not segments:
            return None
        try:
            return segments[-1].read_end_offset()
        except CorruptBatch:
            return None

    def _scan(self, segments: list[Segment]) -> tuple[RecoveryScan, list[Segment]]:
        scan = RecoveryScan(
            partition=self._partition,
            recovery_point=self._recovery_point,
            index_interval_bytes=self._config.index_interval_bytes,
            trace=self._trace,
        )
        kept = scan.run(segments)
        for segment, reason in scan.dropped:
            self._drop(segment, reason)
        return scan, kept

    def _check_indexes(
        self,
        names: list[str],
        segments: list[Segment],
        log_end_offset: int,
        scan: RecoveryScan | None,
    ) -> None:
        """Of the trusted segments: after a clean stop only that the files are there."""
        present = set(names)
        for at, segment in enumerate(segments):
            if scan is not None and segment.base_offset >= scan.start_offset:
                return
            is_active = at + 1 == len(segments)
            end_offset = log_end_offset if is_active else segments[at + 1].base_offset
            complaint = None
            is_small = segment.file.size_bytes <= self._config.index_interval_bytes
            if is_active and is_small and segment.offsets.file_or_none() is None:
                continue  # closed without any index
            if segment.offsets.path.rpartition("/")[2] not in present:
                complaint = "offset index missing"
            elif segment.times.path.rpartition("/")[2] not in present:
                complaint = "time index missing"
            elif scan is not None or is_active:
                complaint = segment.complaint_about_indexes(end_offset=end_offset)
            if complaint is not None:
                segment.rebuild_indexes(self._config.index_interval_bytes)
                self._trace.emit(
                    events.IndexRebuilt(
                        partition=self._partition,
                        base_offset=segment.base_offset,
                        reason=complaint,
                    )
                )

    def _mark_synced(self, segments: list[Segment], scan: RecoveryScan | None) -> list[Segment]:
        """What was scanned may still be in memory only: it has to be synced (again)."""
        for segment in segments:
            if scan is None or segment.base_offset < scan.start_offset:
                segment.synced_bytes = segment.file.size_bytes
        if scan is None:
            return []
        return [segment for segment in segments[:-1] if segment.base_offset >= scan.start_offset]

    # Beside the segments.

    def _find_beside(
        self, files: LogFiles, names: list[str], log_end_offset: int, scan: RecoveryScan | None
    ) -> None:
        """Indexes of aborted transactions, and the snapshots that may be trusted."""
        bases = [segment.base_offset for segment in files.segments]
        aborted = {file_names.offset_of(name, file_names.ABORTED_INDEX) for name in names}
        files.aborted = AbortedIndex.existing(
            self._disk, self._directory, [base for base in bases if base in aborted]
        )
        # Beyond the scanned part's start a snapshot may be of a tail that was truncated since.
        trusted_end = log_end_offset if scan is None else scan.start_offset
        for name in names:
            offset = file_names.offset_of(name, file_names.SNAPSHOT)
            if offset is None or not self._disk.exists(f"{self._directory}/{name}"):
                continue
            is_stray = offset not in bases and (not bases or offset < bases[-1])
            if is_stray or not self._log_start_offset < offset <= trusted_end:
                self._discard(name, "a snapshot that does not belong to the log")
            else:
                files.snapshots.append(offset)
        if scan is not None:
            for base_offset in bases:
                if base_offset >= scan.start_offset:
                    files.aborted.truncate(base_offset, 0)

    def _leader_epochs(
        self, files: LogFiles, log_end_offset: int, scan: RecoveryScan | None
    ) -> LeaderEpochs:
        content = self._read_leader_epochs()
        try:
            epochs = LeaderEpochs.decode(content)
            trusted_end = log_end_offset if scan is None else scan.start_offset
            if trusted_end > self._log_start_offset:
                if not epochs.reach_back_to(self._log_start_offset):
                    raise CorruptCheckpoint("it begins behind the log start")
            elif files.segments:
                epochs.clear()  # all of the log was scanned: the scan knows better
        except CorruptCheckpoint as error:
            epochs = replay.leader_epochs(files.segments, start_offset=self._log_start_offset)
            if files.segments:
                self._trace.emit(
                    events.LeaderEpochsRebuilt(partition=self._partition, reason=str(error))
                )
        if scan is not None:
            epochs.cut_end(scan.start_offset)
            for leader_epoch, start_offset in scan.leader_epochs:
                latest = epochs.latest
                if latest is None or leader_epoch > latest:
                    epochs.assign(leader_epoch, start_offset)
        epochs.cut_end(log_end_offset)
        epochs.cut_start(self._log_start_offset)
        changed_from = None if scan is None else scan.start_offset
        if files.segments and epochs.encode() != content:
            files.write_epochs(epochs, changed_from=changed_from)
        elif changed_from is not None:
            path = f"{self._directory}/{file_names.LEADER_EPOCHS}"
            files.doubt_epochs(self._disk.open(path), changed_from=changed_from)
        return epochs

    def _read_leader_epochs(self) -> bytes:
        path = f"{self._directory}/{file_names.LEADER_EPOCHS}"
        if not self._disk.exists(path):
            return b""
        file = self._disk.open(path)
        return file.read(0, file.size_bytes)

    def _producer_states(
        self, files: LogFiles, log_end_offset: int, scan: RecoveryScan | None
    ) -> ProducerStates:
        states = replay.producer_states(
            files,
            start_offset=self._log_start_offset,
            end_offset=log_end_offset,
            trace=self._trace,
            aborted_from=None if scan is None else scan.start_offset,
        )
        expiration_ms = self._config.producer_id_expiration_ms
        states.expire(wall_ms=self._wall_ms, expiration_ms=expiration_ms)
        return states

    def _drop(self, segment: Segment, reason: str) -> None:
        self._trace.emit(
            events.SegmentDropped(
                partition=self._partition,
                base_offset=segment.base_offset,
                size_bytes=segment.file.size_bytes,
                reason=reason,
            )
        )
        segment.file.remove()
        for suffix in (*BESIDE_LOG, file_names.SNAPSHOT):
            path = file_names.offset_file(self._directory, segment.base_offset, suffix)
            if self._disk.exists(path):
                self._disk.open(path).remove()
        self._names_changed = True

    def _discard(self, name: str, reason: str) -> None:
        path = f"{self._directory}/{name}"
        self._disk.open(path).remove()
        self._names_changed = True  # its former name must not come back behind what is written now
        self._trace.emit(events.FileDiscarded(path=path, reason=reason))

    def _emit_outcome(
        self, scan: RecoveryScan, segments: list[Segment], log_end_offset: int
    ) -> None:
        self._trace.emit(
            events.LogRecovered(
                partition=self._partition,
                recovery_point=self._recovery_point,
                scanned_segments=sum(
                    1 for segment in segments if segment.base_offset >= scan.start_offset
                ),
                scanned_bytes=scan.scanned_bytes,
                log_start_offset=self._log_start_offset,
                log_end_offset=log_end_offset,
            )
        )
