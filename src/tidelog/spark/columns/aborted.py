"""Which batches belong to transactions that were aborted: Kafka's rule for readers of commits.

A fetch answer names aborted transactions by their producer and first offset. From there on the
producer's transactional batches are void, until its ABORT marker. Every answer names all that touch
its range, so a transaction may be named again after its marker has been read: such news is old.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidelog.core.wire.control_records import ControlType, control_type
from tidelog.core.wire.record_batch import BatchHeader
from tidelog.core.wire.records import iterate


@dataclass(frozen=True, slots=True)
class Aborted:
    """A transaction that was aborted: whose it was, and where it began."""

    producer_id: int
    first_offset: int


class AbortedProducers:
    """Follows one partition; batches must be shown in the order of their offsets."""

    def __init__(self) -> None:
        self._announced: list[Aborted] = []
        self._void: set[int] = set()
        self._marker_offsets: dict[int, int] = {}

    def announce(self, aborted: Sequence[Aborted]) -> None:
        """A new answer with its own list, which stands for all that was announced before."""
        by_offset = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
        self._announced = [each for each in by_offset if not self._is_over(each)]
        self._void = set()

    def follow(self, view: memoryview, position: int, header: BatchHeader) -> bool:
        """The next batch, its CRC checked: whether it is void for readers of commits."""
        if header.producer_id < 0:
            return False
        self._begin_those_before(header.end_offset)
        if header.is_control:
            if _is_abort_marker(view, position, header):
                self._void.discard(header.producer_id)
                self._marker_offsets[header.producer_id] = header.base_offset
            return False
        return header.is_transactional and header.producer_id in self._void

    def _begin_those_before(self, end_offset: int) -> None:
        while self._announced and self._announced[-1].first_offset < end_offset:
            self._void.add(self._announced.pop().producer_id)

    def _is_over(self, aborted: Aborted) -> bool:
        marker_offset = self._marker_offsets.get(aborted.producer_id)
        return marker_offset is not None and aborted.first_offset < marker_offset


def _is_abort_marker(view: memoryview, position: int, header: BatchHeader) -> bool:
    if header.records_count == 0:
        return False
    first = next(iterate(view, position))
    return control_type(first) == ControlType.ABORT
