"""Replay: a partition's records from its log into a new shard, a bounded number per turn.

A broker that takes over fifty partitions goes on serving meanwhile. The reader stands between two
records when a turn ends, also within a batch, because one commit may hold thousands.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidelog.core.coordinator.log_port import CoordinatorLog, CoordinatorLogUnreadable
from tidelog.core.coordinator.record import CoordinatorRecord
from tidelog.core.coordinator.shard import CoordinatorShard
from tidelog.core.wire.control_records import read_end_txn_marker
from tidelog.core.wire.malformed import MalformedMessage
from tidelog.core.wire.record_batch import BatchHeader, CorruptBatch, batches, crc_is_valid
from tidelog.core.wire.records import iterate


class ShardLoader:
    """Inputs: load. State: how far it has come. `end_offset` is where the log ended at first."""

    def __init__(
        self, shard: CoordinatorShard, log: CoordinatorLog, *, read_bytes_max: int
    ) -> None:
        self._shard = shard
        self._log = log
        self._read_bytes_max = read_bytes_max
        self.end_offset = log.log_end_offset
        self.records_count = 0
        self._steps = self._replay()

    def load(self, records_max: int) -> int | None:
        """Apply up to so many records; how many it were, or None when all are applied.

        Raises CoordinatorLogUnreadable.
        """
        try:
            for count in range(records_max):
                if next(self._steps, None) is None:
                    self.records_count += count
                    return None
        except (CorruptBatch, MalformedMessage) as error:
            raise CoordinatorLogUnreadable(str(error)) from error
        self.records_count += records_max
        return records_max

    def _replay(self) -> Iterator[bool]:
        """Yields after each record."""
        offset = self._log.log_start_offset
        while offset < self.end_offset:
            offset = max(offset, self._log.log_start_offset)
            view = memoryview(self._log.read(offset, bytes_max=self._read_bytes_max))
            before = offset
            for position, header in batches(view):
                if header.end_offset > offset:
                    yield from self._replay_batch(view, position, header, offset)
                    offset = header.end_offset
            if offset == before:
                raise CoordinatorLogUnreadable(f"no batch at offset {offset}")

    def _replay_batch(
        self, view: memoryview, position: int, header: BatchHeader, start_offset: int
    ) -> Iterator[bool]:
        if not crc_is_valid(view, position, header):
            raise CoordinatorLogUnreadable(f"wrong checksum at offset {header.base_offset}")
        shard, producer_id = self._shard, header.producer_id
        for found in iterate(view, position):
            if found.offset < start_offset:
                continue
            if header.is_control:
                marker = read_end_txn_marker(found)
                if marker is not None:
                    shard.apply_marker(producer_id=producer_id, is_commit=marker.commit)
            elif found.key is None:
                raise CoordinatorLogUnreadable(f"a record without a key at {found.offset}")
            else:
                record = CoordinatorRecord(found.key, found.value)
                at, timestamp_ms = found.offset, found.timestamp_ms
                if header.is_transactional:
                    shard.apply_transactional(
                        record, producer_id=producer_id, offset=at, timestamp_ms=timestamp_ms
                    )
                else:
                    shard.apply(record, offset=at, timestamp_ms=timestamp_ms)
            yield True
