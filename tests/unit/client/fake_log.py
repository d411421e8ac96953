"""One partition of the fake cluster: a log of real batches, with Kafka's rules for duplicates."""

from __future__ import annotations

from typing import Any, NamedTuple

from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.record_batch import BatchHeader, batches, crc_is_valid, read_header, rebase
from tidelog.core.wire.records import NewRecord, build, iterate

REMEMBERED = 5


class Written(NamedTuple):
    """A numbered batch that a leader remembers."""

    first: int
    records: int
    base_offset: int


class ProducerMemory:
    """What a leader knows of one producer."""

    def __init__(self, producer_epoch: int) -> None:
        self.producer_epoch = producer_epoch
        self.written: list[Written] = []


class FakePartition:
    """The leader's log. `elect` moves it, and cuts what the new leader did not have."""

    def __init__(self, *, leader: int) -> None:
        self.leader: int | None = leader
        self.leader_epoch = 0
        self.replicas = (1, 2, 3)
        self.log: list[bytearray] = []
        self.log_start_offset = 0
        self.hidden = 0
        """So many records at the end are not committed yet."""
        self.batch_bytes_max = 1 << 20
        self.producers: dict[int, ProducerMemory] = {}
        self.preferred_replica: int | None = None
        self.follower_lag = 0
        """So many committed records the preferred replica does not have yet."""
        self.aborted: list[tuple[int, int]] = []

    @property
    def end_offset(self) -> int:
        return read_header(self.log[-1]).end_offset if self.log else self.log_start_offset

    @property
    def high_watermark(self) -> int:
        return self.end_offset - self.hidden

    def values(self) -> list[str]:
        return [(record.value or b"").decode() for batch in self.log for record in iterate(batch)]

    def offsets(self) -> list[int]:
        return [record.offset for batch in self.log for record in iterate(batch)]

    def headers(self) -> list[BatchHeader]:
        return [read_header(batch) for batch in self.log]

    def write(self, *values: str, timestamp_ms: int = 0, **more: Any) -> None:
        """One batch, as if a producer had sent it."""
        records = [NewRecord(value.encode(), timestamp_ms=timestamp_ms) for value in values]
        error, _ = self.append(bytes(build(records, **more)))
        assert error == ErrorCode.NONE

    def elect(self, leader: int | None, *, end_offset: int | None = None) -> None:
        """A new leader epoch; the log is cut at `end_offset`, state of producers with it."""
        self.leader = leader
        self.leader_epoch += 1
        if end_offset is not None:
            self.log = [batch for batch in self.log if read_header(batch).end_offset <= end_offset]
            for memory in self.producers.values():
                memory.written = [each for each in memory.written if each.base_offset < end_offset]
            self.producers = {
                producer_id: memory
                for producer_id, memory in self.producers.items()
                if memory.written
            }

    def end_of_epoch(self, leader_epoch: int) -> tuple[int, int] | None:
        """The largest epoch not above the asked one, and its end; none before all of them."""
        below = [each.leader_epoch for each in self.headers() if each.leader_epoch <= leader_epoch]
        if not below and leader_epoch < self.leader_epoch:
            return None
        found = leader_epoch if leader_epoch >= self.leader_epoch else max(below)
        later = [each.base_offset for each in self.headers() if each.leader_epoch > found]
        return found, min(later, default=self.end_offset)

    def append(self, records: bytes) -> tuple[ErrorCode, int]:
        """As a leader does: the error, and the base offset."""
        (_, header), *rest = batches(records)
        assert not rest and crc_is_valid(records, 0, header)
        if len(records) > self.batch_bytes_max:
            return ErrorCode.MESSAGE_TOO_LARGE, -1
        if header.producer_id >= 0:
            error, base_offset = self._check_sequence(header)
            if error or base_offset >= 0:
                return error, base_offset
        base_offset = self.end_offset
        batch = bytearray(records)
        rebase(batch, 0, base_offset=base_offset, leader_epoch=self.leader_epoch)
        self.log.append(batch)
        if header.producer_id >= 0:
            memory = self.producers[header.producer_id]
            memory.written.append(Written(header.base_sequence, header.records_count, base_offset))
            del memory.written[:-REMEMBERED]
        return ErrorCode.NONE, base_offset

    def _check_sequence(self, header: BatchHeader) -> tuple[ErrorCode, int]:
        memory = self.producers.get(header.producer_id)
        if memory is None:
            self.producers[header.producer_id] = ProducerMemory(header.producer_epoch)
            return ErrorCode.NONE, -1
        if header.producer_epoch < memory.producer_epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH, -1
        if header.producer_epoch > memory.producer_epoch:
            if header.base_sequence != 0:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
            self.producers[header.producer_id] = ProducerMemory(header.producer_epoch)
            return ErrorCode.NONE, -1
        for each in memory.written:
            if (each.first, each.records) == (header.base_sequence, header.records_count):
                return ErrorCode.NONE, each.base_offset
        if memory.written:
            expected = (memory.written[-1].first + memory.written[-1].records) % 2**31
            if header.base_sequence != expected:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        return ErrorCode.NONE, -1


def check_epoch(partition: FakePartition, broker_id: int, asked_epoch: int) -> ErrorCode:
    """What a broker says to somebody who believes in this leader epoch."""
    if asked_epoch >= 0 and asked_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if asked_epoch > partition.leader_epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    if partition.leader != broker_id:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.NONE
