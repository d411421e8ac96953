"""Producer snapshots: the state of all producers at an offset, in Kafka's `.snapshot` format.

Version and CRC-32C, then one entry per producer with its latest batch only. So a restart remembers
one batch per producer where the running log remembers five, exactly as in Kafka; the batches after
the snapshot are replayed from the log.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from struct import Struct

from tidelog.core.model.exceptions import TidelogError
from tidelog.core.storage.producers import (
    ProducerStateEntry,
    RememberedBatch,
    sequence_after,
    sequence_before,
)
from tidelog.core.wire.crc import crc32c

VERSION = 1

_HEADER = Struct(">hIi")
_ENTRY = Struct(">qhiqiqiq")
_CRC_COVERS_FROM = 6
_NONE = -1


class CorruptSnapshot(TidelogError):
    """Not a snapshot that anybody may trust: go back to an older one, or to the log."""


def encode(producers: Iterable[ProducerStateEntry]) -> bytes:
    entries = [_encode_producer(producer) for producer in producers]
    body = len(entries).to_bytes(4, "big") + b"".join(entries)
    return VERSION.to_bytes(2, "big") + crc32c(body).to_bytes(4, "big") + body


def decode(data: bytes) -> list[ProducerStateEntry]:
    try:
        version, crc, count = _HEADER.unpack_from(data)
    except struct.error:
        raise CorruptSnapshot(f"{len(data)} bytes") from None
    if version != VERSION:
        raise CorruptSnapshot(f"version {version}")
    if len(data) != _HEADER.size + count * _ENTRY.size:
        raise CorruptSnapshot(f"{len(data)} bytes for {count} producers")
    if crc32c(memoryview(data)[_CRC_COVERS_FROM:]) != crc:
        raise CorruptSnapshot("wrong checksum")
    return [_decode_producer(entry) for entry in _ENTRY.iter_unpack(data[_HEADER.size :])]


def _encode_producer(producer: ProducerStateEntry) -> bytes:
    sequence, offset, delta = _NONE, _NONE, 0
    if producer.batches:
        batch = producer.batches[-1]
        offset = batch.end_offset - 1
        delta = offset - batch.base_offset
        if batch.first_sequence >= 0:
            sequence = sequence_before(batch.next_sequence, 1)
    first_offset = producer.transaction_first_offset
    coordinator_epoch = producer.coordinator_epoch
    return _ENTRY.pack(
        producer.producer_id,
        producer.producer_epoch,
        sequence,
        offset,
        delta,
        producer.timestamp_ms,
        _NONE if coordinator_epoch is None else coordinator_epoch,
        _NONE if first_offset is None else first_offset,
    )


def _decode_producer(entry: tuple[int, ...]) -> ProducerStateEntry:
    producer_id, producer_epoch, sequence, offset, delta, timestamp_ms, coordinator, first = entry
    producer = ProducerStateEntry(producer_id, producer_epoch)
    producer.timestamp_ms = timestamp_ms
    producer.coordinator_epoch = None if coordinator < 0 else coordinator
    producer.transaction_first_offset = None if first < 0 else first
    if offset >= 0:
        first_sequence, next_sequence = _NONE, 0
        if sequence >= 0:
            first_sequence = sequence_before(sequence, delta)
            next_sequence = sequence_after(sequence, 1)
        producer.batches.append(
            RememberedBatch(first_sequence, next_sequence, offset - delta, offset + 1, timestamp_ms)
        )
    return producer
