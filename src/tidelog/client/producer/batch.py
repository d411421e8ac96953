"""A batch on its way: the records of one partition that share their fate."""

from __future__ import annotations

from typing import NamedTuple

from tidelog.client.producer.outcome import SendOk, SendRefused, SendTicket, SendUnknown
from tidelog.core.model.ids import ProducerIdAndEpoch, TopicPartition
from tidelog.core.wire.compression import Compression
from tidelog.core.wire.record_batch import HEADER_BYTES
from tidelog.core.wire.records import NewRecord, build

RECORD_OVERHEAD_BYTES_MAX = 21
"""Length, attributes, two deltas, two lengths and a count, each as long as it can be."""


class BatchSequence(NamedTuple):
    """Which batch of its producer this is, for this partition."""

    identity: ProducerIdAndEpoch
    base_sequence: int


class ProducerBatch:
    """Invariant: its tickets are completed exactly once, by `done` or `failed`."""

    __slots__ = (
        "_bytes",
        "_failures_at_leader_epoch",
        "_leader_epoch",
        "attempts",
        "created_ms",
        "is_closed",
        "is_done",
        "is_in_flight",
        "is_part",
        "is_transactional",
        "last_attempt_ms",
        "may_be_written",
        "numbered",
        "partition",
        "reserved_bytes",
        "retry_at_ms",
        "size_bytes",
        "tickets",
        "was_renumbered",
    )

    def __init__(self, partition: TopicPartition, *, reserved_bytes: int, now_ms: int) -> None:
        self.partition = partition
        self.reserved_bytes = reserved_bytes
        self.created_ms = now_ms
        self.last_attempt_ms = now_ms
        self.retry_at_ms = now_ms
        self.attempts = 0
        """How often it went back into its queue."""
        self.size_bytes = HEADER_BYTES
        self.tickets: list[SendTicket] = []
        self.is_closed = False
        """Takes no more records."""
        self.is_in_flight = False
        self.is_done = False
        self.is_part = False
        """Made of a batch that was too large."""
        self.is_transactional = False
        self.may_be_written = False
        """Some attempt ended without a refusal that means: not written."""
        self.numbered: BatchSequence | None = None
        self.was_renumbered = False
        """A request with its former number may still be on the wire."""
        self._bytes: bytes | None = None
        self._leader_epoch: int | None = None
        self._failures_at_leader_epoch = 0

    @property
    def count(self) -> int:
        return len(self.tickets)

    def try_append(self, ticket: SendTicket, *, batch_size: int) -> bool:
        """False, and closed: it is full. The first record is always taken."""
        size_bytes = record_bytes(ticket, count=self.count, base_ms=self._base_ms())
        if self.tickets and (self.is_closed or self.size_bytes + size_bytes > batch_size):
            self.is_closed = True
            return False
        self.tickets.append(ticket)
        self.size_bytes += size_bytes
        if self.size_bytes >= batch_size:
            self.is_closed = True
        return True

    def _base_ms(self) -> int | None:
        return self.tickets[0].timestamp_ms if self.tickets else None

    def number(self, numbered: BatchSequence, *, again: bool = False) -> None:
        self.numbered = numbered
        self.was_renumbered |= again
        self._bytes = None

    def encoded(self, compression: Compression) -> bytes:
        """The bytes to be sent; the same ones at every attempt with the same number."""
        if self._bytes is None:
            self._bytes = bytes(self._build(compression))
        return self._bytes

    def _build(self, compression: Compression) -> bytearray:
        records = [
            NewRecord(each.value, each.key, each.timestamp_ms, each.headers)
            for each in self.tickets
        ]
        if self.numbered is None:
            return build(records, compression=compression)
        identity = self.numbered.identity
        return build(
            records,
            compression=compression,
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            base_sequence=self.numbered.base_sequence,
            transactional=self.is_transactional,
        )

    # Attempts

    def see_leader_epoch(self, leader_epoch: int | None) -> None:
        """A retry that goes to a newer leader need not pause."""
        if leader_epoch is None:
            return
        if self._leader_epoch is None or self._leader_epoch < leader_epoch:
            self._leader_epoch = leader_epoch
            self._failures_at_leader_epoch = self.attempts

    def is_backing_off(self, now_ms: int) -> bool:
        if self.attempts == 0 or self.attempts == self._failures_at_leader_epoch:
            return False
        return now_ms < self.retry_at_ms

    def requeued(self, *, pause_ms: int, now_ms: int) -> None:
        self.attempts += 1
        self.last_attempt_ms = max(self.last_attempt_ms, now_ms)
        self.retry_at_ms = now_ms + pause_ms
        self.is_closed = True

    # The end

    def done(self, *, base_offset: int | None, append_time_ms: int | None, now_ms: int) -> None:
        self._end()
        for index, ticket in enumerate(self.tickets):
            offset = None if base_offset is None else base_offset + index
            timestamp_ms = ticket.timestamp_ms if append_time_ms is None else append_time_ms
            ticket.complete(SendOk(offset, timestamp_ms), now_ms)

    def failed(
        self, error: str, reason: str, now_ms: int, *, reasons: dict[int, str] | None = None
    ) -> None:
        """`reasons` are those of single records, by their index in the batch."""
        self._end()
        kind = SendUnknown if self.may_be_written else SendRefused
        for index, ticket in enumerate(self.tickets):
            if reasons and index not in reasons:
                ticket.complete(kind(error, "another record of its batch was invalid"), now_ms)
            else:
                ticket.complete(kind(error, (reasons or {}).get(index, reason)), now_ms)

    def _end(self) -> None:
        assert not self.is_done, "a batch ends once"
        self.is_done = True
        self.is_in_flight = False
        self._bytes = None

    def parts(self, *, batch_size: int) -> list[ProducerBatch]:
        """The same records in smaller batches, numbered as they were."""
        parts: list[ProducerBatch] = []
        for ticket in self.tickets:
            if not parts or not parts[-1].try_append(ticket, batch_size=batch_size):
                part = ProducerBatch(self.partition, reserved_bytes=0, now_ms=self.created_ms)
                part.is_part = True
                part.may_be_written = self.may_be_written
                part.is_transactional = self.is_transactional
                part.try_append(ticket, batch_size=batch_size)
                parts.append(part)
        for part in parts:
            part.is_closed = True
        self.is_done = True
        return parts


def record_bytes_max(ticket: SendTicket) -> int:
    """What a batch of this record alone takes at most."""
    size_bytes = HEADER_BYTES + RECORD_OVERHEAD_BYTES_MAX
    return size_bytes + len(ticket.key or b"") + len(ticket.value or b"") + _headers_bytes(ticket)


def record_bytes(ticket: SendTicket, *, count: int, base_ms: int | None) -> int:
    """What this record adds to a batch that has `count` already."""
    delta_ms = 0 if base_ms is None else ticket.timestamp_ms - base_ms
    size_bytes = 1 + _varint_bytes(delta_ms) + _varint_bytes(count)
    for part in (ticket.key, ticket.value):
        size_bytes += 1 if part is None else _varint_bytes(len(part)) + len(part)
    size_bytes += _varint_bytes(len(ticket.headers)) + _headers_bytes(ticket)
    return _varint_bytes(size_bytes) + size_bytes


def _headers_bytes(ticket: SendTicket) -> int:
    size_bytes = 0
    for name, content in ticket.headers:
        name_bytes = len(name.encode("utf-8", "surrogateescape"))
        size_bytes += _varint_bytes(name_bytes) + name_bytes
        size_bytes += 1 if content is None else _varint_bytes(len(content)) + len(content)
    return size_bytes


def _varint_bytes(value: int) -> int:
    """How long the zigzag form of a number is."""
    zigzag = value << 1 if value >= 0 else (-value << 1) - 1
    return max(1, (zigzag.bit_length() + 6) // 7)
