"""What one fetch brought of one partition, taken out record by record.

Batches are checked and unpacked when their turn comes. Markers are never given to a program; under
read_committed neither are records of transactions that the broker says were aborted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tidelog.client.consumer.errors import CorruptRecords
from tidelog.core.model.ids import TopicPartition
from tidelog.core.model.limits import SEQUENCE_MODULUS
from tidelog.core.wire.control_records import ControlType, control_type
from tidelog.core.wire.record_batch import BatchHeader, CorruptBatch, batches, crc_is_valid
from tidelog.core.wire.records import Header, Record, iterate


class ConsumerRecord(NamedTuple):
    """One record as a program gets it."""

    partition: TopicPartition
    offset: int
    leader_epoch: int | None
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: list[Header]
    producer_id: int | None = None
    producer_epoch: int | None = None
    sequence: int | None = None


class FetchedRecords:
    """Invariant: `next_offset` is where the next fetch begins if nothing more is taken out."""

    def __init__(
        self,
        partition: TopicPartition,
        data: bytes,
        *,
        offset: int,
        aborted: Sequence[tuple[int, int]] | None,
        checks_crcs: bool,
    ) -> None:
        """`aborted`: (first offset, producer id) under read_committed, None otherwise."""
        self.partition = partition
        self.next_offset = offset
        self.next_epoch: int | None = None
        """The leader epoch of what was taken out last."""
        self.is_empty = False
        self._data = memoryview(data)
        self._checks_crcs = checks_crcs
        self._aborted = None if aborted is None else sorted(aborted)
        self._aborted_producers: set[int] = set()
        self._records = self._all()

    def take(self, records_max: int) -> list[ConsumerRecord]:
        """The next records, at most `records_max`. CorruptRecords only if they come first."""
        taken: list[ConsumerRecord] = []
        while len(taken) < records_max:
            try:
                record = next(self._records, None)
            except CorruptBatch as bad:
                self.is_empty = True
                if taken:
                    break
                raise CorruptRecords(self.partition, self.next_offset, str(bad)) from None
            if record is None:
                self.is_empty = True
                break
            taken.append(record)
            self.next_offset = record.offset + 1
            self.next_epoch = record.leader_epoch
        return taken

    def _all(self) -> Iterator[ConsumerRecord]:
        at = None
        for at, header in batches(self._data):
            if self._checks_crcs and not crc_is_valid(self._data, at, header):
                raise CorruptBatch("its checksum is wrong")
            if not self._is_skipped(header, at):
                for record in iterate(self._data, at):
                    if record.offset >= self.next_offset:
                        yield self._received(header, record)
            # A batch takes up offsets to its very end, even where records are gone.
            self.next_offset = max(self.next_offset, header.end_offset)
            self.next_epoch = _leader_epoch(header)
        if at is None and self._data:
            raise CorruptBatch("not one whole batch")

    def _is_skipped(self, header: BatchHeader, at: int) -> bool:
        if self._aborted is not None and header.producer_id >= 0:
            while self._aborted and self._aborted[0][0] < header.end_offset:
                self._aborted_producers.add(self._aborted.pop(0)[1])
            if header.is_control:
                if _is_abort_marker(self._data, at):
                    self._aborted_producers.discard(header.producer_id)
                return True
            if header.is_transactional and header.producer_id in self._aborted_producers:
                return True
        return header.is_control

    def _received(self, header: BatchHeader, record: Record) -> ConsumerRecord:
        producer: tuple[int | None, int | None, int | None] = (None, None, None)
        if header.producer_id >= 0:
            delta = record.offset - header.base_offset
            sequence = (header.base_sequence + delta) % SEQUENCE_MODULUS
            producer = (header.producer_id, header.producer_epoch, sequence)
        return ConsumerRecord(
            self.partition,
            record.offset,
            _leader_epoch(header),
            record.timestamp_ms,
            record.key,
            record.value,
            record.headers,
            *producer,
        )


def _leader_epoch(header: BatchHeader) -> int | None:
    return header.leader_epoch if header.leader_epoch >= 0 else None


def _is_abort_marker(data: memoryview, at: int) -> bool:
    first = next(iterate(data, at), None)
    return first is not None and control_type(first) == ControlType.ABORT
