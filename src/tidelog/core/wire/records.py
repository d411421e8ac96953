"""The records inside a batch: taken apart, and put together into a new batch.

Nothing on the way of a Fetch needs this, and a Produce only where a record is refused
(`record_walk.py` is its way); it is for compaction, recompression, control records, tools and
clients. Whatever a length inside claims, it is compared with the bytes that are
there, and any disagreement is CorruptBatch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from tidelog.core.model.limits import DECOMPRESSED_BATCH_BYTES_MAX, INT64_MAX, INT64_MIN
from tidelog.core.wire.compression import compress, decompress
from tidelog.core.wire.malformed import MalformedMessage
from tidelog.core.wire.record_batch import (
    COMPRESSION_MASK,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_BYTES,
    LENGTH_PREFIX_BYTES,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    TRANSACTIONAL_BIT,
    BatchHeader,
    CorruptBatch,
    read_whole_header,
    renew_crc,
)
from tidelog.core.wire.varint import read_varint, read_varlong, varint, varlong

Header = tuple[str, bytes | None]

_HEADER_NAME_ERRORS = "surrogateescape"
"""The broker never looks into header names, so one that is not UTF-8 must survive, too."""


class Record(NamedTuple):
    """One record with its place in the log."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: list[Header]


class NewRecord(NamedTuple):
    """One record to be put into a batch; without an `offset_delta` it follows the one before."""

    value: bytes | None
    key: bytes | None = None
    timestamp_ms: int = -1
    headers: Sequence[Header] = ()
    offset_delta: int | None = None


def iterate(
    view: memoryview | bytes | bytearray,
    position: int = 0,
    *,
    decompressed_bytes_max: int = DECOMPRESSED_BATCH_BYTES_MAX,
) -> Iterator[Record]:
    """The records of the batch at `position`, in order. The CRC is not checked."""
    header = read_whole_header(view, position)
    data = _records_section(view, position, header, decompressed_bytes_max)
    if header.records_count < 0:
        raise CorruptBatch(f"a batch with {header.records_count} records")
    appended_at_ms = header.max_timestamp_ms if header.is_log_append_time else None
    base_offset = header.base_offset
    base_timestamp_ms = header.base_timestamp_ms
    for _, offset_delta, timestamp_delta, key, value, headers in _read_records(data, header):
        timestamp_ms = appended_at_ms
        if timestamp_ms is None:
            timestamp_ms = base_timestamp_ms + timestamp_delta
            if not INT64_MIN <= timestamp_ms <= INT64_MAX:
                raise CorruptBatch(f"timestamp {timestamp_ms}")
        yield Record(base_offset + offset_delta, timestamp_ms, key, value, headers)


def build(
    records: Iterable[NewRecord],
    *,
    base_offset: int = 0,
    leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    compression: int = 0,
    compression_level: int | None = None,
    transactional: bool = False,
    control: bool = False,
    log_append_time_ms: int | None = None,
) -> bytearray:
    """One batch with a valid CRC that holds these records; there must be at least one."""
    packed = bytearray()
    count, next_delta, base_timestamp_ms, max_timestamp_ms = 0, 0, -1, -1
    for record in records:
        offset_delta = next_delta if record.offset_delta is None else record.offset_delta
        assert offset_delta >= next_delta, "offsets within a batch only grow"
        if count == 0:
            base_timestamp_ms = record.timestamp_ms
        max_timestamp_ms = max(max_timestamp_ms, record.timestamp_ms)
        body = _record_body(record, offset_delta, record.timestamp_ms - base_timestamp_ms)
        packed += varint(len(body))
        packed += body
        next_delta = offset_delta + 1
        count += 1
    assert count > 0, "a batch without records"
    attributes = compression & COMPRESSION_MASK
    attributes |= transactional * TRANSACTIONAL_BIT | control * CONTROL_BIT
    if log_append_time_ms is not None:
        attributes |= LOG_APPEND_TIME_BIT
        max_timestamp_ms = log_append_time_ms
    header = BatchHeader(
        base_offset=base_offset,
        batch_length=0,
        leader_epoch=leader_epoch,
        magic=MAGIC,
        crc=0,
        attributes=attributes,
        last_offset_delta=next_delta - 1,
        base_timestamp_ms=base_timestamp_ms,
        max_timestamp_ms=max_timestamp_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        records_count=count,
    )
    return _assemble(header, compress(compression, packed, level=compression_level))


class PackedRecord(NamedTuple):
    """One record as its batch holds it, length included, with what compaction looks at."""

    packed: bytes
    offset_delta: int
    timestamp_delta_ms: int
    key: bytes | None
    has_value: bool


def packed_records(
    view: memoryview | bytes | bytearray,
    position: int = 0,
    *,
    decompressed_bytes_max: int = DECOMPRESSED_BATCH_BYTES_MAX,
) -> Iterator[PackedRecord]:
    """The records of a batch, their bytes untouched, one by one. The CRC is not checked."""
    header = read_whole_header(view, position)
    data = _records_section(view, position, header, decompressed_bytes_max)
    start = 0
    for end, offset_delta, timestamp_delta, key, value, _ in _read_records(data, header):
        has_value = value is not None
        yield PackedRecord(data[start:end], offset_delta, timestamp_delta, key, has_value)
        start = end


def rebuild(
    header: BatchHeader, records: Sequence[PackedRecord], *, delete_horizon_ms: int | None = None
) -> bytearray:
    """The batch of this header with only these of its records: offsets, producer, codec stay.

    A delete horizon takes the place of the base timestamp, as in Kafka; the records must have been
    `rebased` to it. The largest timestamp is that of the records that are left, unless the broker
    gave it (or none is left).
    """
    attributes, base_timestamp_ms = header.attributes, header.base_timestamp_ms
    if delete_horizon_ms is not None:
        attributes |= DELETE_HORIZON_BIT
        base_timestamp_ms = delete_horizon_ms
    max_timestamp_ms = header.max_timestamp_ms
    if records and not header.is_log_append_time:
        max_timestamp_ms = base_timestamp_ms + max(each.timestamp_delta_ms for each in records)
    if not records:
        attributes &= ~(COMPRESSION_MASK | DELETE_HORIZON_BIT)
        base_timestamp_ms = -1
    packed = b"".join([record.packed for record in records])
    rebuilt = header._replace(
        attributes=attributes,
        base_timestamp_ms=base_timestamp_ms,
        max_timestamp_ms=max_timestamp_ms,
        records_count=len(records),
    )
    return _assemble(rebuilt, compress(rebuilt.compression, packed) if records else b"")


def rebased(record: PackedRecord, *, from_ms: int, to_ms: int) -> PackedRecord:
    """The same record for a batch with another base timestamp: its delta and length change."""
    timestamp_delta_ms = record.timestamp_delta_ms + from_ms - to_ms
    data = record.packed
    _, body_at = read_number(data, 0)
    _, after = read_number(data, body_at + 1, read_varlong)
    body = data[body_at : body_at + 1] + varlong(timestamp_delta_ms) + data[after:]
    return record._replace(packed=varint(len(body)) + body, timestamp_delta_ms=timestamp_delta_ms)


def recompress(
    view: memoryview | bytes | bytearray,
    position: int = 0,
    *,
    compression: int,
    compression_level: int | None = None,
    decompressed_bytes_max: int = DECOMPRESSED_BATCH_BYTES_MAX,
) -> bytearray:
    """The same batch under another codec: offsets, times, producer and records stay as they are."""
    header = read_whole_header(view, position)
    data = _records_section(view, position, header, decompressed_bytes_max)
    attributes = header.attributes & ~COMPRESSION_MASK | compression
    packed = compress(compression, data, level=compression_level)
    return _assemble(header._replace(attributes=attributes), packed)


def _assemble(header: BatchHeader, packed: bytes | bytearray | memoryview) -> bytearray:
    length = HEADER_BYTES + len(packed) - LENGTH_PREFIX_BYTES
    batch = bytearray(HEADER.pack(*header._replace(batch_length=length)))
    batch += packed
    renew_crc(batch)
    return batch


def _records_section(
    view: memoryview | bytes | bytearray, position: int, header: BatchHeader, bytes_max: int
) -> bytes:
    """Unpacked, and as `bytes`: indexing those is twice as fast as indexing a memoryview."""
    section = memoryview(view)[position + HEADER_BYTES : position + header.size_bytes]
    return bytes(decompress(header.compression, section, bytes_max=bytes_max))


_Fields = tuple[int, int, int, bytes | None, bytes | None, list[Header]]
"""Where the next record begins, offset delta, timestamp delta, key, value, headers."""


def _read_records(data: bytes, header: BatchHeader) -> Iterator[_Fields]:
    """As many as the header promises, and nothing behind them."""
    at = 0
    try:
        for _ in range(header.records_count):
            fields = _read_record(data, at)
            at = fields[0]
            if not 0 <= fields[1] <= header.last_offset_delta:
                raise CorruptBatch(f"offset delta {fields[1]} in {header}")
            yield fields
    except IndexError:
        raise CorruptBatch("a record goes on beyond the end of its batch") from None
    except MalformedMessage as error:
        raise CorruptBatch(str(error)) from None
    if at != len(data):
        raise CorruptBatch(f"{len(data) - at} bytes after the last record")


def _read_record(data: bytes, at: int) -> _Fields:
    """The record at `at` and where the next one begins. IndexError means that `data` ends early."""
    size, at = read_number(data, at)
    end = at + size
    if size < 0 or end > len(data):
        raise CorruptBatch(f"a record of {size} bytes, {len(data) - at} are left")
    at += 1  # the record's attributes: unused
    timestamp_delta, at = read_number(data, at, read_varlong)
    offset_delta, at = read_number(data, at)
    key, at = _read_bytes(data, at, end)
    value, at = _read_bytes(data, at, end)
    headers_count, at = read_number(data, at)
    if not 0 <= headers_count <= end - at:
        raise CorruptBatch(f"{headers_count} record headers in {end - at} bytes")
    headers: list[Header] = []
    for _ in range(headers_count):
        name, at = _read_bytes(data, at, end)
        if name is None:
            raise CorruptBatch("a record header without a name")
        content, at = _read_bytes(data, at, end)
        headers.append((name.decode("utf-8", _HEADER_NAME_ERRORS), content))
    if at != end:
        raise CorruptBatch(f"a record of {size} bytes whose fields take {size + at - end}")
    return at, offset_delta, timestamp_delta, key, value, headers


def _read_bytes(data: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    """Any negative length means none, as in Kafka."""
    size, at = read_number(data, at)
    if size < 0:
        return None, at
    after = at + size
    if after > end:
        raise CorruptBatch(f"a field of {size} bytes, {end - at} are left in its record")
    return data[at:after], after


def read_number(
    data: bytes, at: int, read: Callable[[bytes, int], tuple[int, int]] = read_varint
) -> tuple[int, int]:
    """A varint of one or two bytes, as nearly all of them are; `read` takes the longer ones."""
    number = data[at]
    if number < 0x80:
        return (number >> 1) ^ -(number & 1), at + 1
    second = data[at + 1]
    if second < 0x80:
        number += (second - 1) << 7
        return (number >> 1) ^ -(number & 1), at + 2
    return read(data, at)


def _record_body(record: NewRecord, offset_delta: int, timestamp_delta: int) -> bytearray:
    body = bytearray(1)
    body += varlong(timestamp_delta)
    body += varint(offset_delta)
    _write_bytes(body, record.key)
    _write_bytes(body, record.value)
    body += varint(len(record.headers))
    for name, content in record.headers:
        _write_bytes(body, name.encode("utf-8", _HEADER_NAME_ERRORS))
        _write_bytes(body, content)
    return body


def _write_bytes(out: bytearray, content: bytes | None) -> None:
    if content is None:
        out.append(1)  # -1
        return
    out += varint(len(content))
    out += content
