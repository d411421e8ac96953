"""Which batches belong to aborted transactions: Kafka's rule for read_committed consumers.

A fetch response lists aborted transactions by producer and first offset. From there on the
producer's transactional batches are aborted, until its ABORT marker. Every response lists all that
touch its range, so a transaction may be listed again after its marker has been read: it is ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidelog.core.wire.control_records import ControlType, control_type
from tidelog.core.wire.record_batch import BatchHeader
from tidelog.core.wire.records import iterate


@dataclass(frozen=True, slots=True)
class Aborted:
    """An aborted transaction: its producer, and where it began."""

    producer_id: int
    first_offset: int


class AbortedProducers:
    """The open aborted transactions of one partition; batches must come in offset order."""

    def __init__(self) -> None:
        self._listed: list[Aborted] = []
        self._aborted: set[int] = set()
        self._marker_offsets: dict[int, int] = {}

    def start_response(self, aborted: Sequence[Aborted]) -> None:
        """Take the list of a new response, which replaces the list of the one before."""
        by_offset = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
        self._listed = [each for each in by_offset if not self._is_over(each)]
        self._aborted = set()

    def take_batch(self, view: memoryview, position: int, header: BatchHeader) -> bool:
        """Take the next batch, its CRC checked; returns whether it is of an aborted transaction."""
        if header.producer_id < 0:
            return False
        self._open_before(header.end_offset)
        if header.is_control:
            if _is_abort_marker(view, position, header):
                self._aborted.discard(header.producer_id)
                self._marker_offsets[header.producer_id] = header.base_offset
            return False
        return header.is_transactional and header.producer_id in self._aborted

    def _open_before(self, end_offset: int) -> None:
        while self._listed and self._listed[-1].first_offset < end_offset:
            self._aborted.add(self._listed.pop().producer_id)

    def _is_over(self, aborted: Aborted) -> bool:
        marker_offset = self._marker_offsets.get(aborted.producer_id)
        return marker_offset is not None and aborted.first_offset < marker_offset


def _is_abort_marker(view: memoryview, position: int, header: BatchHeader) -> bool:
    if header.records_count == 0:
        return False
    first = next(iterate(view, position))
    return control_type(first) == ControlType.ABORT
