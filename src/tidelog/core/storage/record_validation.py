"""What a leader checks in the records of a client's batch before it is appended.

A batch that contradicts itself would stop every consumer that comes to it, for ever. So it is
opened as its codec says, its records are walked (`wire/record_walk.py`), and each one must suit the
topic: a key where the topic is compacted, a timestamp within the topic's bounds. Followers and
recovery trust what a leader has accepted. `tidelog.records.validation=header` leaves batches
closed and believes their headers.

Memory is bounded: of one batch at a time no more than DECOMPRESSED_BATCH_BYTES_MAX is unpacked, and
a buffer is touched only as far as real output reaches. So is time, by BATCH_RECORDS_MAX.
"""

from __future__ import annotations

from struct import Struct

from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.limits import DECOMPRESSED_BATCH_BYTES_MAX, INT64_MAX
from tidelog.core.storage.config import LogConfig
from tidelog.core.storage.validation import BatchRefusal, RecordErrors
from tidelog.core.wire.compression import DecompressedTooLarge, decompress
from tidelog.core.wire.record_batch import (
    COMPRESSION_MASK,
    HEADER_BYTES,
    LOG_APPEND_TIME_BIT,
    BatchHeader,
    CorruptBatch,
    renew_crc,
)
from tidelog.core.wire.record_walk import TooManyRecords, WalkedRecords, walk
from tidelog.core.wire.records import Record, iterate
from tidelog.core.wire.sentinels import NO_TIMESTAMP

_MAX_TIMESTAMP_AT = 35
_INT64 = Struct(">q")


def checked_records(
    view: memoryview, header: BatchHeader, config: LogConfig, wall_ms: int
) -> BatchHeader | BatchRefusal:
    """The header, with the largest timestamp put right as Kafka does it, or why not."""
    walked = _walked(view, header, config)
    if isinstance(walked, BatchRefusal):
        return walked
    stamped = header.attributes & LOG_APPEND_TIME_BIT
    base_ms, latest_ms = header.base_timestamp_ms, header.max_timestamp_ms
    if not stamped:
        latest_ms = max(NO_TIMESTAMP, base_ms + walked.latest_delta_ms)
    if config.message_timestamp_type != "CreateTime" or latest_ms == NO_TIMESTAMP:
        bad_timestamps = bool(stamped)
    else:
        bad_timestamps = latest_ms - wall_ms > config.message_timestamp_after_max_ms
    if config.message_timestamp_before_max_ms != INT64_MAX:
        earliest_ms = latest_ms if stamped else base_ms + walked.earliest_delta_ms
        bad_timestamps |= wall_ms - earliest_ms > config.message_timestamp_before_max_ms
    if bad_timestamps or (walked.has_null_key and config.compact):
        refusal = _refuse_single_records(view, header, config, wall_ms)
        if refusal is not None:
            return refusal
    if latest_ms == header.max_timestamp_ms:
        return header
    _INT64.pack_into(view, _MAX_TIMESTAMP_AT, latest_ms)
    renew_crc(view)
    return header._replace(max_timestamp_ms=latest_ms)


def _walked(
    view: memoryview, header: BatchHeader, config: LogConfig
) -> WalkedRecords | BatchRefusal:
    """The records' own word, or their header's where the broker is set to believe that."""
    if config.records_validation == "header":
        latest_delta_ms = header.max_timestamp_ms - header.base_timestamp_ms
        return WalkedRecords(latest_delta_ms, 0, has_null_key=True)
    records: bytes | bytearray | memoryview = view[HEADER_BYTES:]
    codec = header.attributes & COMPRESSION_MASK
    try:
        if codec:
            records = decompress(codec, records, bytes_max=DECOMPRESSED_BATCH_BYTES_MAX)
    except DecompressedTooLarge as error:
        return BatchRefusal(ErrorCode.MESSAGE_TOO_LARGE, str(error))
    except CorruptBatch as error:
        return BatchRefusal(ErrorCode.UNKNOWN_SERVER_ERROR, str(error))
    try:
        return walk(records, header.records_count, header.base_timestamp_ms)
    except TooManyRecords as error:
        return BatchRefusal(ErrorCode.MESSAGE_TOO_LARGE, str(error))
    except CorruptBatch as error:
        return BatchRefusal(ErrorCode.INVALID_RECORD, str(error))


def _refuse_single_records(
    view: memoryview, header: BatchHeader, config: LogConfig, wall_ms: int
) -> BatchRefusal | None:
    """Every bad record by its index. One with a bad timestamp makes it a refusal for timestamps."""
    error, message = (
        ErrorCode.INVALID_RECORD,
        "a record without a key; a compacted topic needs keys",
    )
    found: list[tuple[int, str]] = []
    try:
        for index, record in enumerate(iterate(view)):
            if config.compact and record.key is None:
                found.append((index, "without a key; a compacted topic needs keys"))
            elif bad := _bad_timestamp(record, header, config, wall_ms):
                error, message = ErrorCode.INVALID_TIMESTAMP, "a record with an invalid timestamp"
                found.append((index, bad))
    except CorruptBatch as damage:
        return BatchRefusal(ErrorCode.INVALID_RECORD, str(damage))
    records: RecordErrors = tuple(found)
    return BatchRefusal(error, message, records) if records else None


def _bad_timestamp(
    record: Record, header: BatchHeader, config: LogConfig, wall_ms: int
) -> str | None:
    timestamp_ms = record.timestamp_ms
    if config.message_timestamp_type != "CreateTime" or timestamp_ms == NO_TIMESTAMP:
        if header.attributes & LOG_APPEND_TIME_BIT:
            return "only the broker sets the time of appending"
        return None
    least_ms = wall_ms - config.message_timestamp_before_max_ms
    most_ms = wall_ms + config.message_timestamp_after_max_ms
    if least_ms <= timestamp_ms <= most_ms:
        return None
    return f"timestamp {timestamp_ms} is not within {least_ms} to {most_ms}"
