"""What travels between a sink's driver and its tasks; everything here can be pickled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from tidelog.core.model.ids import ProducerIdAndEpoch, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchTicket:
    """Permission to write one batch, which every task gets."""

    transactional_id: str
    batch_id: int
    identity: ProducerIdAndEpoch
    end_offsets: Mapping[TopicPartition, int]
    """Where each partition of the sink ended before this batch; no others may be written."""
    transaction_timeout_ms: int

    def partition_count(self, topic: str) -> int | None:
        """None: the sink was not given this topic."""
        return sum(each.topic == topic for each in self.end_offsets) or None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlreadyPublished:
    """This very batch was committed before: skip it."""

    batch_id: int


class EncodedRecordBatch(Protocol):
    """A record batch, ready for the wire under the identity of its ticket."""

    @property
    def data(self) -> bytes | bytearray: ...

    @property
    def records(self) -> int: ...

    @property
    def base_sequence(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What one task wrote to one partition."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    first_sequence: int
    next_sequence: int
    base_offset: int
    next_offset: int
    records: int

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)
