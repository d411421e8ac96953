"""Metadata records as batches of the metadata log: written by its leader, read by everyone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tidelog.core.metadata.records import MetadataRecord, decode_record, encode_record
from tidelog.core.model.limits import MIB
from tidelog.core.node.metadata.node_identity import CannotStart
from tidelog.core.storage.disk import read_slice
from tidelog.core.storage.log import Log
from tidelog.core.wire.malformed import MalformedMessage
from tidelog.core.wire.record_batch import CorruptBatch, batches, crc_is_valid
from tidelog.core.wire.records import NewRecord, build, iterate

READ_BYTES = 1 * MIB


class MetadataUnreadable(CannotStart):
    """The metadata log holds something that this software does not understand."""


class MetadataBatch(NamedTuple):
    """The records of one batch; a control batch has none for us."""

    base_offset: int
    end_offset: int
    size_bytes: int
    timestamp_ms: int
    records: Sequence[MetadataRecord]


def batch_of(records: Sequence[MetadataRecord], wall_ms: int) -> bytearray:
    return build(NewRecord(value=encode_record(record), timestamp_ms=wall_ms) for record in records)


def read_batches(log: Log, start_offset: int, end_offset: int) -> Iterator[MetadataBatch]:
    """Every batch of the range, in order; it begins and ends where batches do."""
    offset = start_offset
    try:
        while offset < end_offset:
            found = log.read(offset, bytes_max=READ_BYTES, end_offset=end_offset)
            assert found is not None, "there is something before the end"
            before = offset
            for batch in decode_batches(memoryview(read_slice(found))):
                if batch.end_offset > offset:
                    yield batch
                    offset = batch.end_offset
            assert offset > before, "a read gives at least one batch"
    except (CorruptBatch, MalformedMessage) as error:
        raise MetadataUnreadable(f"from offset {offset} on: {error}") from error


def decode_batches(view: memoryview) -> Iterator[MetadataBatch]:
    """Raises CorruptBatch, MalformedMessage or MetadataUnreadable."""
    for position, header in batches(view):
        if not crc_is_valid(view, position, header):
            raise MetadataUnreadable(f"damaged at offset {header.base_offset}")
        records: list[MetadataRecord] = []
        if not header.is_control:
            records = [decode_record(record.value) for record in iterate(view, position)]
        yield MetadataBatch(
            header.base_offset,
            header.end_offset,
            header.size_bytes,
            header.max_timestamp_ms,
            records,
        )
