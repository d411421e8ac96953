"""How far a log is durable: syncs requested, syncs done, and the offset that follows from both.

A *mark* says: once so many bytes of this segment are durable, and all marks before it are met, the
log is durable up to this offset. A leader epoch that the checkpoint file does not durably hold
keeps the offset back, too:

  1. Leader epoch 2 begins at offset 10; its line is written, but not synced.
  2. Records 10 to 20 are synced, the recovery point becomes 20. The power fails.
  3. The checkpoint is the old one, and nothing below the recovery point is scanned again:
     records 10 to 20 would belong to leader epoch 1 for ever.
"""

from __future__ import annotations

from typing import NamedTuple

from tidelog.core.storage.disk import File
from tidelog.core.storage.segment import Segment


class SyncMark(NamedTuple):
    segment: Segment
    size_bytes: int
    end_offset: int


class Durability:
    """Invariant: marks are in the order of their offsets, all beyond `synced_end_offset`."""

    __slots__ = ("_barrier", "_marks", "_reached", "recovery_point", "synced_end_offset")

    def __init__(self, synced_end_offset: int) -> None:
        self.synced_end_offset = synced_end_offset
        """Everything before it, if there is anything, survives a power loss."""
        self.recovery_point = synced_end_offset
        """Segments that end before it need not be scanned by the next start."""
        self._reached = synced_end_offset
        """What the segments alone would allow."""
        self._marks: list[SyncMark] = []
        self._barrier: int | None = None

    @property
    def wanted_end_offset(self) -> int:
        """What will be durable once all requested syncs are done."""
        return self._marks[-1].end_offset if self._marks else self._reached

    @property
    def is_held_back(self) -> bool:
        """Whether the leader epochs' file must become durable first."""
        return self._barrier is not None

    def mark(self, segment: Segment, end_offset: int) -> None:
        """A sync of everything in this segment has been, or is about to be, requested."""
        assert end_offset >= self.wanted_end_offset, (segment.file.path, end_offset)
        self._marks.append(SyncMark(segment, segment.file.size_bytes, end_offset))

    def awaited_segment(self, file: File) -> Segment | None:
        """The segment with this file that a mark waits for, be it deleted in the meantime or not.

        1. A sync of the oldest segment is under way when retention deletes the segment.
        2. It is done. If nobody took note, every later mark would wait for ever behind it.
        """
        return next((mark.segment for mark in self._marks if mark.segment.file is file), None)

    def on_segment_synced(self, segment: Segment, size_bytes: int) -> None:
        size_bytes = min(size_bytes, segment.file.size_bytes)
        segment.synced_bytes = max(segment.synced_bytes, size_bytes)
        self._advance()

    def hold_back(self, offset: int) -> None:
        """Nothing from `offset` on counts as durable until `release`."""
        self._barrier = offset if self._barrier is None else min(self._barrier, offset)

    def release(self) -> None:
        self._barrier = None
        self._advance()

    def truncate(self, end_offset: int) -> None:
        """The log now ends at `end_offset`."""
        while self._marks and self._marks[-1].end_offset > end_offset:
            self._marks.pop()
        self._reached = min(self._reached, end_offset)
        self.synced_end_offset = min(self.synced_end_offset, end_offset)
        self.recovery_point = min(self.recovery_point, end_offset)

    def start_anew(self, offset: int) -> None:
        """Old segments may come back until the names are synced: all must be scanned then."""
        self._marks.clear()
        self._barrier = None
        self._reached = self.synced_end_offset = offset
        self.recovery_point = 0

    def on_all_synced(self, end_offset: int) -> None:
        self._marks.clear()
        self._barrier = None
        self._reached = self.synced_end_offset = self.recovery_point = end_offset

    def _advance(self) -> None:
        marks = self._marks
        while marks and marks[0].segment.synced_bytes >= marks[0].size_bytes:
            self._reached = marks.pop(0).end_offset
        reached, barrier = self._reached, self._barrier
        if barrier is not None and reached > barrier:
            reached = barrier
        self.synced_end_offset = max(self.synced_end_offset, reached)
        self.recovery_point = self.synced_end_offset

    def check(self, *, log_end_offset: int) -> None:
        assert self.recovery_point <= self.synced_end_offset <= self._reached <= log_end_offset
        before = self._reached
        for mark in self._marks:
            assert before <= mark.end_offset <= log_end_offset, mark
            before = mark.end_offset
