"""The dense tail: where each of the latest batches of the active segment lies, in memory.

Readers at the end of a log, and the fences that they must not pass, are found here without looking
into any file.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right

BATCHES_MAX = 1024
"""When so many are remembered, the older half is forgotten."""


class DenseTail:
    """Invariant: the batches follow each other in the file without a gap, up to its end."""

    __slots__ = ("end_offsets", "positions", "start_offset")

    def __init__(self, start_offset: int) -> None:
        self.start_offset = start_offset
        """Offsets from here on are covered."""
        self.end_offsets = array("q")
        self.positions = array("q")

    def add(self, *, position: int, end_offset: int) -> None:
        self.positions.append(position)
        self.end_offsets.append(end_offset)
        if len(self.positions) >= BATCHES_MAX:
            half = BATCHES_MAX // 2
            self.start_offset = self.end_offsets[half - 1]
            del self.positions[:half], self.end_offsets[:half]

    def position_of(self, offset: int, *, file_bytes: int) -> int:
        """Where the first batch begins that ends after `offset`; the end of the file if none."""
        at = bisect_right(self.end_offsets, offset)
        return self.positions[at] if at < len(self.positions) else file_bytes

    def offsets_of_batch_at(self, offset: int) -> tuple[int, int] | None:
        """Where the batch before that one ends, and where it ends itself; None if there is none."""
        at = bisect_right(self.end_offsets, offset)
        if at == len(self.positions):
            return None
        return self.end_offsets[at - 1] if at else self.start_offset, self.end_offsets[at]

    def position_after(self, position: int, *, file_bytes: int) -> int:
        """Where the batch at `position` ends."""
        at = bisect_right(self.positions, position)
        return self.positions[at] if at < len(self.positions) else file_bytes

    def check(self) -> None:
        assert len(self.end_offsets) == len(self.positions) < BATCHES_MAX
        before, position_before = self.start_offset, -1
        for end_offset, position in zip(self.end_offsets, self.positions, strict=True):
            assert before < end_offset and position_before < position
            before, position_before = end_offset, position
