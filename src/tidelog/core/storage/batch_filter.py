"""What compaction leaves of one batch: all of it, some records, an empty batch, or nothing.

A record stays if no later one has its key. A tombstone stays until its batch's delete horizon:
`delete.retention.ms` after the first cleaning that kept it, so that every reader has the time to
see it. Offsets never change: a batch keeps its first and last offset, whatever it loses. Some
batches stay although they are empty:

- a producer's latest one: it has the sequence that the next one must continue;
- the first of a leader epoch: leader epochs are rebuilt from batches after a damage;
- the final one of a segment: the segment must end where the next begins, or recovery would take
  the gap for a lost segment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tidelog.core.storage.cleaned_transactions import CleanedTransactions
from tidelog.core.storage.key_offset_map import KeyOffsetMap
from tidelog.core.storage.producers import AbortedTransaction, ProducerStates
from tidelog.core.storage.validation import end_marker_of
from tidelog.core.wire.record_batch import BatchHeader, CorruptBatch, crc_is_valid
from tidelog.core.wire.records import PackedRecord, packed_records, rebased, rebuild

WORK_BYTES = 4096
"""Reading so many bytes counts as much as looking at one record."""

Work = Iterator[int]
"""A task that is done in slices: each value is how much work was done since the one before."""


@dataclass(slots=True, kw_only=True)
class BatchFilter:
    """The rules of one round of compaction, applied batch by batch in the order of the log."""

    keys: KeyOffsetMap
    producers: ProducerStates
    transactions: CleanedTransactions
    wall_ms: int
    delete_retention_ms: int
    kept: bytes | bytearray | None = None
    """What is left of the latest batch; None: nothing."""
    aborted: AbortedTransaction | None = None
    """The entry of the index of aborted transactions that the latest batch needs."""
    _leader_epoch: int = -1

    def run(self, data: bytes, header: BatchHeader, *, is_final: bool) -> Work:
        """Set `kept` and `aborted`. CorruptBatch: the batch was damaged after it was written."""
        if not crc_is_valid(data, 0, header):
            raise CorruptBatch(f"wrong checksum at offset {header.base_offset}")
        yield 1 + len(data) // WORK_BYTES
        is_first = header.leader_epoch > self._leader_epoch
        self._leader_epoch = max(self._leader_epoch, header.leader_epoch)
        must_stay = is_final or is_first or self._is_latest_of_producer(header)
        self.aborted = self.kept = None
        guards_nothing = False
        if header.is_control:
            guards_nothing, self.aborted = self.transactions.on_marker(
                header, end_marker_of(data, header)
            )
            discards = guards_nothing and self._is_past_horizon(header)
        else:
            discards = self.transactions.on_data(header)
        if discards or header.records_count == 0:
            self.kept = rebuild(header, ()) if must_stay else None
            return
        if header.is_control:
            self.kept = data
            if guards_nothing and header.delete_horizon_ms is None:
                yield from self._start_horizon(header, list(packed_records(data)))
            return
        yield from self._filter(data, header, must_stay)

    def _filter(self, data: bytes, header: BatchHeader, must_stay: bool) -> Work:
        left: list[PackedRecord] = []
        has_tombstone = False
        keeps_tombstones = not self._is_past_horizon(header)
        latest_offset, newest_of = self.keys.latest_offset, self.keys.get
        for record in packed_records(data):
            yield 1
            offset = header.base_offset + record.offset_delta
            if offset <= latest_offset:
                key = record.key
                if key is None or offset < newest_of(key):
                    continue
                if not (record.has_value or keeps_tombstones):
                    continue
            left.append(record)
            has_tombstone |= not record.has_value
        if not left:
            self.kept = rebuild(header, ()) if must_stay else None
            return
        starts_horizon = has_tombstone and header.delete_horizon_ms is None
        if len(left) == header.records_count and not starts_horizon:
            self.kept = data
            return
        if starts_horizon:
            yield from self._start_horizon(header, left)
            return
        yield len(left) // 4  # before and after: what follows is one piece
        self.kept = rebuild(header, left)
        yield len(left) // 4

    def _start_horizon(self, header: BatchHeader, left: list[PackedRecord]) -> Work:
        """From now on it is known when the tombstones, or the marker, of this batch may go."""
        horizon_ms = self.wall_ms + self.delete_retention_ms
        for at, record in enumerate(left):
            left[at] = rebased(record, from_ms=header.base_timestamp_ms, to_ms=horizon_ms)
            yield 1
        self.kept = rebuild(header, left, delete_horizon_ms=horizon_ms)
        yield len(left) // 4

    def _is_past_horizon(self, header: BatchHeader) -> bool:
        horizon_ms = header.delete_horizon_ms
        return horizon_ms is not None and horizon_ms <= self.wall_ms

    def _is_latest_of_producer(self, header: BatchHeader) -> bool:
        producer = self.producers.by_id.get(header.producer_id)
        if producer is None:
            return False
        if producer.batches:
            return header.end_offset == producer.batches[-1].end_offset
        return header.is_control and header.producer_epoch == producer.producer_epoch
