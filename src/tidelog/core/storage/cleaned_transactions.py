"""Which transactional batches compaction may drop: aborted data at once, markers once it is gone.

It walks the log together with the cleaner, from the log start on. A marker is kept as long as a
batch of its transaction was met on the way: without the marker, a reader would take aborted records
for committed ones, and would wait for the end of a transaction for ever.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from tidelog.core.storage.producers import AbortedTransaction
from tidelog.core.wire.control_records import EndTransactionMarker
from tidelog.core.wire.record_batch import BatchHeader


class CleanedTransactions:
    """The transactions under way at the place where the walk is."""

    def __init__(self) -> None:
        self._to_come: list[tuple[int, AbortedTransaction]] = []
        self._aborted: dict[int, AbortedTransaction] = {}
        """Aborted ones that the walk is inside of, by producer id."""
        self._aborted_with_batches: set[int] = set()
        self._committed: set[int] = set()
        """Producers of which a batch of a transaction that is not aborted was met."""
        self._known: set[AbortedTransaction] = set()

    def add_aborted(self, found: Iterable[AbortedTransaction]) -> None:
        """What the index of the next segment says; one that spans segments comes repeatedly."""
        for aborted in found:
            if aborted not in self._known:
                self._known.add(aborted)
                heappush(self._to_come, (aborted.first_offset, aborted))

    def on_data(self, header: BatchHeader) -> bool:
        """True: the batch is of an aborted transaction, and its records may go."""
        self._go_to(header.end_offset)
        if not header.is_transactional:
            return False
        if header.producer_id in self._aborted:
            self._aborted_with_batches.add(header.producer_id)
            return True
        self._committed.add(header.producer_id)
        return False

    def on_marker(
        self, header: BatchHeader, marker: EndTransactionMarker | None
    ) -> tuple[bool, AbortedTransaction | None]:
        """Whether the marker guards nothing any more; the index entry to keep if it does.

        None as the marker: an emptied control batch, or one that ends no transaction.
        """
        self._go_to(header.end_offset)
        if marker is None:
            return header.records_count == 0, None
        if marker.commit:
            had_batches = header.producer_id in self._committed
            self._committed.discard(header.producer_id)
            return not had_batches, None
        aborted = self._aborted.pop(header.producer_id, None)
        had_batches = header.producer_id in self._aborted_with_batches
        self._aborted_with_batches.discard(header.producer_id)
        return not had_batches, aborted if had_batches else None

    def _go_to(self, end_offset: int) -> None:
        while self._to_come and self._to_come[0][0] < end_offset:
            _, aborted = heappop(self._to_come)
            self._aborted.setdefault(aborted.producer_id, aborted)
