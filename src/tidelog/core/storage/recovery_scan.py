"""Recovery's scan: checks every batch that may not be durable, and cuts at the first bad one.

Bad is a batch that is torn, corrupt, out of order, or of an older leader than the one before it (a
tail that had been truncated came back with the power). Segments behind a cut or a gap go as well: a
power loss may keep a later file and lose an earlier one. (A deleted head that came back with gaps
was dropped before: recovery.py.) Compaction leaves gaps inside of segments only: each ends where
the next one begins.
"""

from __future__ import annotations

from tidelog.core.model.limits import INT32_MAX, REQUEST_BYTES_MAX
from tidelog.core.model.trace import Trace
from tidelog.core.storage import events
from tidelog.core.storage.batch_reader import refuse_implausible
from tidelog.core.storage.segment import Segment
from tidelog.core.wire.record_batch import (
    HEADER_BYTES,
    BatchHeader,
    CorruptBatch,
    crc_is_valid,
    read_header,
)

_READ_BYTES = 2**20


class RecoveryScan:
    """One pass over the segments from the recovery point on. Files of dropped ones are left."""

    def __init__(
        self, *, partition: str, recovery_point: int, index_interval_bytes: int, trace: Trace
    ) -> None:
        self._partition = partition
        self._recovery_point = recovery_point
        self._index_interval_bytes = index_interval_bytes
        self._trace = trace
        self._leader_epoch = -1
        self.scanned_bytes = 0
        self.start_offset = 0
        """Everything from here on was scanned."""
        self.end_offset = 0
        self.leader_epochs: list[tuple[int, int]] = []
        """The leader epochs that were seen, with their first offsets."""
        self.dropped: list[tuple[Segment, str]] = []
        """Segments that are no part of the log any more, and why."""

    def run(self, segments: list[Segment]) -> list[Segment]:
        """The segments that are left; the first ones, below the recovery point, are trusted."""
        at = 0
        while at + 1 < len(segments) and segments[at + 1].base_offset <= self._recovery_point:
            at += 1
        self.start_offset = self.end_offset = segments[at].base_offset
        kept = segments[:at]
        for segment in segments[at:]:
            if self.dropped:
                self.dropped.append((segment, "behind a cut or a gap"))
            elif segment.base_offset != self.end_offset:
                self.dropped.append((segment, f"the log before it ends at {self.end_offset}"))
            else:
                kept.append(segment)
                if not self._scan(segment):
                    self._drop_rest(segments[len(kept) :])
                    break
        for segment in kept[at:-1]:
            segment.become_inactive()
        return kept

    def _drop_rest(self, segments: list[Segment]) -> None:
        self.dropped.extend((segment, "behind a cut or a gap") for segment in segments)

    def _scan(self, segment: Segment) -> bool:
        """Check and index every batch; False if the file had to be cut."""
        segment.forget_batches()
        file = segment.file
        position = 0
        data, data_position = b"", 0
        while position < file.size_bytes:
            try:
                if position + HEADER_BYTES > data_position + len(data):
                    data, data_position = file.read(position, _READ_BYTES), position
                header = read_header(data, position - data_position)
                self._judge(header, segment, file.size_bytes - position)
                if position + header.size_bytes > data_position + len(data):
                    size_bytes = max(_READ_BYTES, header.size_bytes)
                    data, data_position = file.read(position, size_bytes), position
                if not crc_is_valid(data, position - data_position, header):
                    raise CorruptBatch("wrong checksum")
            except CorruptBatch as error:
                self._cut(segment, position, str(error))
                return False
            self._note(segment, position, header)
            position += header.size_bytes
            self.scanned_bytes += header.size_bytes
        return True

    def _judge(self, header: BatchHeader, segment: Segment, bytes_left: int) -> None:
        refuse_implausible(header, bytes_left=bytes_left)
        if header.size_bytes > REQUEST_BYTES_MAX:
            raise CorruptBatch(f"a batch of {header.size_bytes} bytes")
        if header.base_offset < self.end_offset:
            raise CorruptBatch(f"offset {header.base_offset}, {self.end_offset} was expected")
        if header.end_offset - 1 - segment.base_offset > INT32_MAX:
            raise CorruptBatch(f"offset {header.base_offset} is too far from its segment's base")
        if 0 <= header.leader_epoch < self._leader_epoch:
            raise CorruptBatch(f"leader epoch {header.leader_epoch} after {self._leader_epoch}")

    def _note(self, segment: Segment, position: int, header: BatchHeader) -> None:
        segment.note_batch(
            position=position,
            size_bytes=header.size_bytes,
            end_offset=header.end_offset,
            max_timestamp_ms=header.max_timestamp_ms,
            index_interval_bytes=self._index_interval_bytes,
        )
        self.end_offset = header.end_offset
        if header.leader_epoch > self._leader_epoch:
            self._leader_epoch = header.leader_epoch
            self.leader_epochs.append((header.leader_epoch, header.base_offset))

    def _cut(self, segment: Segment, position: int, reason: str) -> None:
        """Durably: what is written behind the cut from now on must not mix with what was there."""
        cut_bytes = segment.file.size_bytes - position
        segment.file.truncate(position)
        segment.file.sync_now()
        self._trace.emit(
            events.TailCut(
                partition=self._partition,
                base_offset=segment.base_offset,
                position=position,
                cut_bytes=cut_bytes,
                end_offset=self.end_offset,
                reason=reason,
                below_recovery_point=self.end_offset < self._recovery_point,
            )
        )
