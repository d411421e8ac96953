"""Offsets of a partition's batches only rise, from where the partition ended before the attempt.

An acknowledgement with an offset from before is the answer to somebody else's batch: Kafka took
ours for a repetition of it, and wrote nothing.
"""

from __future__ import annotations

from tidelog.client.sink.errors import GuardFailed
from tidelog.core.model.ids import TopicPartition


class RisingOffsets:
    """Told the offsets of one partition's batches, in the order of their sequences."""

    def __init__(self, partition: TopicPartition, *, end_offset: int) -> None:
        self._partition = partition
        self.base_offset: int | None = None
        self.next_offset = end_offset

    def accept(self, base_offset: int, *, records: int) -> None:
        if base_offset < self.next_offset:
            raise GuardFailed(
                f"{self._partition}: a batch was acknowledged at offset {base_offset}, before"
                f" {self.next_offset}, where it could be at the earliest: another writer wrote it"
            )
        if self.base_offset is None:
            self.base_offset = base_offset
        self.next_offset = base_offset + records
