"""What a leader checks in a batch's header before it is appended, cheapest first.

Its records are the next question (`record_validation.py`). A refusal is an error code with a
sentence; nothing has been written then.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from tidelog.core.model.errors import ErrorCode
from tidelog.core.storage.config import LogConfig
from tidelog.core.wire.control_records import EndTransactionMarker, read_end_txn_marker
from tidelog.core.wire.crc import crc32c
from tidelog.core.wire.record_batch import (
    BATCH_LENGTH_MIN,
    COMPRESSION_MASK,
    CONTROL_BIT,
    CRC_COVERS_FROM,
    HEADER_BYTES,
    LENGTH_PREFIX_BYTES,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    TRANSACTIONAL_BIT,
    BatchHeader,
    CorruptBatch,
    read_header,
    renew_crc,
)
from tidelog.core.wire.records import iterate, recompress

CODECS = {"uncompressed": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
_CODECS_END = 5
_RECORD_BYTES_MIN = 7
_LEGACY_LENGTH_MIN = 14
_LENGTH_AND_MAGIC_BYTES = 17
_ATTRIBUTES_AT = 21
_INT16 = Struct(">h")
_INT32 = Struct(">i")


RecordErrors = tuple[tuple[int, str], ...]


class BatchRefusal(NamedTuple):
    """Why a batch was not appended."""

    error: ErrorCode
    message: str
    records: RecordErrors = ()
    """The bad records by their index in the batch, each with a message."""


def single_batch(view: memoryview) -> tuple[memoryview, BatchHeader] | BatchRefusal:
    """A client sends exactly one batch; a partial one behind it is left out."""
    found = split_batches(view)
    if isinstance(found, BatchRefusal):
        return found
    if len(found) > 1:
        return BatchRefusal(ErrorCode.INVALID_RECORD, f"{len(found)} batches, not one")
    return found[0]


def split_batches(view: memoryview) -> list[tuple[memoryview, BatchHeader]] | BatchRefusal:
    """Each whole batch by itself, as Kafka cuts them: a partial one at the end is dropped."""
    found: list[tuple[memoryview, BatchHeader]] = []
    position, end = 0, len(view)
    while end - position >= LENGTH_PREFIX_BYTES:
        (batch_length,) = _INT32.unpack_from(view, position + 8)
        if batch_length < _LEGACY_LENGTH_MIN:
            return BatchRefusal(ErrorCode.CORRUPT_MESSAGE, f"batch length {batch_length}")
        if end - position < _LENGTH_AND_MAGIC_BYTES:
            break
        magic = view[position + 16]
        if magic > MAGIC:
            return BatchRefusal(ErrorCode.CORRUPT_MESSAGE, f"magic {magic}")
        next_position = position + batch_length + LENGTH_PREFIX_BYTES
        if next_position > end:
            break
        if magic != MAGIC:
            return BatchRefusal(ErrorCode.INVALID_RECORD, f"magic {magic} instead of {MAGIC}")
        if batch_length < BATCH_LENGTH_MIN:
            return BatchRefusal(ErrorCode.CORRUPT_MESSAGE, f"batch length {batch_length}")
        found.append((view[position:next_position], read_header(view, position)))
        position = next_position
    if not found:
        return BatchRefusal(ErrorCode.INVALID_RECORD, "no record batch")
    return found


def refuse_bytes(view: memoryview, header: BatchHeader, config: LogConfig) -> BatchRefusal | None:
    """Size, format and checksum: checked for every batch, whoever sends it."""
    size_bytes = header.batch_length + LENGTH_PREFIX_BYTES
    if header.magic != MAGIC:
        return BatchRefusal(ErrorCode.INVALID_RECORD, f"magic {header.magic} instead of {MAGIC}")
    if header.batch_length < BATCH_LENGTH_MIN:
        return BatchRefusal(ErrorCode.CORRUPT_MESSAGE, f"batch length {header.batch_length}")
    if size_bytes > config.message_bytes_max:
        return BatchRefusal(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"a batch of {size_bytes} bytes; {config.message_bytes_max} are allowed",
        )
    if crc32c(view[CRC_COVERS_FROM:size_bytes]) != header.crc:
        return BatchRefusal(ErrorCode.CORRUPT_MESSAGE, "wrong checksum")
    if header.attributes & COMPRESSION_MASK >= _CODECS_END:
        return BatchRefusal(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"codec {header.compression} is nobody's"
        )
    if size_bytes > config.segment_bytes:
        return BatchRefusal(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"a batch of {size_bytes} bytes; a segment has {config.segment_bytes}",
        )
    return None


def refuse_client(header: BatchHeader) -> BatchRefusal | None:
    """What only a client can get wrong: offsets, counts, control records, sequences."""
    count = header.last_offset_delta + 1
    if header.base_offset != 0:
        return BatchRefusal(
            ErrorCode.INVALID_RECORD, f"base offset {header.base_offset} instead of 0"
        )
    if count <= 0 or count != header.records_count:
        return BatchRefusal(
            ErrorCode.INVALID_RECORD,
            f"{header.records_count} records over {count} offsets",
        )
    if header.attributes & CONTROL_BIT:
        return BatchRefusal(ErrorCode.INVALID_RECORD, "clients may not write control records")
    if header.producer_id >= 0 and header.base_sequence < 0:
        return BatchRefusal(
            ErrorCode.INVALID_RECORD,
            f"sequence {header.base_sequence} of producer {header.producer_id}",
        )
    if not header.attributes & COMPRESSION_MASK:
        least_bytes = HEADER_BYTES + count * _RECORD_BYTES_MIN
        if header.batch_length + LENGTH_PREFIX_BYTES < least_bytes:
            return BatchRefusal(ErrorCode.INVALID_RECORD, f"{count} records do not fit their batch")
    return None


def recompressed(
    view: memoryview, header: BatchHeader, config: LogConfig
) -> memoryview | BatchRefusal | None:
    """The batch under the codec that the topic demands; None if it has that already."""
    wanted = CODECS.get(config.compression_type, header.attributes & COMPRESSION_MASK)
    is_plain_control = header.attributes & CONTROL_BIT and not header.compression
    if wanted == header.attributes & COMPRESSION_MASK or is_plain_control:
        return None
    try:
        batch = recompress(view, compression=wanted, compression_level=config.compression_level)
    except CorruptBatch as error:
        return BatchRefusal(ErrorCode.UNKNOWN_SERVER_ERROR, str(error))
    if len(batch) > config.message_bytes_max:
        return BatchRefusal(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"a batch of {len(batch)} bytes once it is packed as the topic demands; "
            f"{config.message_bytes_max} are allowed",
        )
    return memoryview(batch)


def clear_log_append_time(view: memoryview, header: BatchHeader) -> None:
    """A producer's claim that the broker set the times, on a topic where it does not."""
    _INT16.pack_into(view, _ATTRIBUTES_AT, header.attributes & ~LOG_APPEND_TIME_BIT)
    renew_crc(view)


def end_marker_of(view: memoryview | bytes, header: BatchHeader) -> EndTransactionMarker | None:
    """The end of a transaction that this batch marks, if it is a control batch that does."""
    if not header.attributes & CONTROL_BIT or not header.attributes & TRANSACTIONAL_BIT:
        return None
    for record in iterate(view):
        return read_end_txn_marker(record)
    return None
