"""The state of all producers at an offset, as the entries of a producer snapshot and back.

An entry has a producer's latest batch only. So a restart remembers one batch per producer where the
running log remembers five, exactly as in Kafka; the batches after the snapshot are replayed from
the log.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidelog.core.formats.producer_snapshots import (
    SnapshotEntry,
    decode_snapshot,
    encode_snapshot,
)
from tidelog.core.storage.producers import (
    ProducerStateEntry,
    RememberedBatch,
    sequence_after,
    sequence_before,
)

_NOT_NUMBERED = -1


def encode(producers: Iterable[ProducerStateEntry]) -> bytes:
    return encode_snapshot([_entry(producer) for producer in producers])


def decode(data: bytes) -> list[ProducerStateEntry]:
    return [_producer(entry) for entry in decode_snapshot(data)]


def _entry(producer: ProducerStateEntry) -> SnapshotEntry:
    sequence, offset, delta = None, None, 0
    if producer.batches:
        batch = producer.batches[-1]
        offset = batch.end_offset - 1
        delta = offset - batch.base_offset
        if batch.first_sequence >= 0:
            sequence = sequence_before(batch.next_sequence, 1)
    return SnapshotEntry(
        producer.producer_id,
        producer.producer_epoch,
        sequence,
        offset,
        delta,
        producer.timestamp_ms,
        producer.coordinator_epoch,
        producer.transaction_first_offset,
    )


def _producer(entry: SnapshotEntry) -> ProducerStateEntry:
    producer = ProducerStateEntry(entry.producer_id, entry.producer_epoch)
    producer.timestamp_ms = entry.timestamp_ms
    producer.coordinator_epoch = entry.coordinator_epoch
    producer.transaction_first_offset = entry.transaction_first_offset
    if entry.offset is not None:
        first_sequence, next_sequence = _NOT_NUMBERED, 0
        if entry.sequence is not None:
            first_sequence = sequence_before(entry.sequence, entry.offset_delta)
            next_sequence = sequence_after(entry.sequence, 1)
        producer.batches.append(
            RememberedBatch(
                first_sequence,
                next_sequence,
                entry.offset - entry.offset_delta,
                entry.offset + 1,
                entry.timestamp_ms,
            )
        )
    return producer
