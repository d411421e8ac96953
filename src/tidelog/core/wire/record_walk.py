"""A walk over the records of a batch: whether they are what its header says, without reading them.

Lengths must add up, offset deltas must count from 0, and nothing may be left over. Keys, values and
headers are skipped. A batch often holds many records of one layout: those are compared by columns
(`record_runs.py`): a step of Python for each would cost more than all the rest of an append.
"""

from __future__ import annotations

from struct import Struct, unpack
from typing import NamedTuple

from tidelog.core.model.limits import BATCH_RECORDS_MAX, INT64_MAX, INT64_MIN
from tidelog.core.wire.malformed import MalformedMessage
from tidelog.core.wire.record_batch import CorruptBatch
from tidelog.core.wire.record_runs import (
    FIRST_OF_MORE,
    LAST_OF_ONE,
    LAST_OF_TWO,
    OFFSET_WIDTH_ENDS,
    SHORT_DELTA_MAX,
    RecordLayout,
    latest_delta,
    offset_width,
    repeated,
    run_length,
)
from tidelog.core.wire.records import read_number
from tidelog.core.wire.varint import read_varlong

RECORD_BYTES_MIN = 7

_NO_DELTA = -(2**70)
_SAFE_TIMESTAMP_MS = 2**62
_RUN_MIN = 8
"""A run that is shorter was not worth its columns; the next one is tried later."""
_PAUSE_RECORDS_MAX = 512
_RUN_HEADERS_MAX = 16
"""In each record of a run: every one takes two columns or more."""

# The numbers between a record's size and its value, if its timestamp takes one byte.
_FRONTS = (Struct("x"), Struct(">BBBBB"), Struct(">BHBBB"), Struct(">B3sBBB"))
_AHEAD_BYTES = 16
"""More than these numbers take: as many bytes can be read without a look at the end."""


class TooManyRecords(CorruptBatch):
    """The records may be sound, but are more than a broker takes its time for."""


class WalkedRecords(NamedTuple):
    """What the walk learnt beside the records' soundness."""

    latest_delta_ms: int
    """The largest timestamp delta."""
    earliest_delta_ms: int
    """No timestamp delta is less; the least one may be more."""
    has_null_key: bool


def walk(data: bytes | bytearray | memoryview, count: int, base_timestamp_ms: int) -> WalkedRecords:
    """The `count` records that `data` must consist of; CorruptBatch if it does not.

    TooManyRecords if there are more than BATCH_RECORDS_MAX, or more record headers than that.
    """
    if count > BATCH_RECORDS_MAX:
        raise TooManyRecords(f"{count} records in one batch; {BATCH_RECORDS_MAX} are allowed")
    if count * RECORD_BYTES_MIN > len(data):
        raise CorruptBatch(f"{count} records do not fit {len(data)} bytes")
    try:
        return _walk(bytes(data), count, base_timestamp_ms)
    except IndexError:
        raise CorruptBatch("a record goes on beyond the end of its batch") from None
    except MalformedMessage as error:
        raise CorruptBatch(str(error)) from None


def _walk(data: bytes, count: int, base_ms: int) -> WalkedRecords:
    """On `bytes`: a column of those is cut ten times as fast as one of a memoryview."""
    by_columns = -_SAFE_TIMESTAMP_MS < base_ms < _SAFE_TIMESTAMP_MS
    latest, earliest, null_key = _NO_DELTA, 0, False
    at = index = headers = 0
    pause = 1
    if by_columns and count < _RUN_MIN:
        at, index, latest, null_key, headers = _walk_plain(data, 0, 0, count)
        earliest = -SHORT_DELTA_MAX
    while index < count:
        layout = _read_layout(data, at, index, base_ms)
        delta = layout.timestamp_delta
        latest, earliest = max(latest, delta), min(earliest, delta)
        null_key = null_key or layout.has_null_key
        headers += layout.headers_count
        _refuse_many_headers(headers)
        at += layout.size_bytes
        index += 1
        if index == count or not by_columns:
            continue
        length = run_length(data, at, index, count, layout)
        if length:
            latest = max(latest, latest_delta(data, at, length, layout))
            earliest = min(earliest, -SHORT_DELTA_MAX)
            at += length * layout.size_bytes
            index += length
        if length >= _RUN_MIN or index == count:
            pause = 1
            continue
        at, index, delta, no_key, more = _walk_plain(data, at, index, min(count, index + pause))
        headers += more
        _refuse_many_headers(headers)
        latest, earliest = max(latest, delta), min(earliest, -SHORT_DELTA_MAX)
        null_key = null_key or no_key
        pause = min(2 * pause, _PAUSE_RECORDS_MAX)
    if at != len(data):
        raise CorruptBatch(f"{len(data) - at} bytes after the last record")
    return WalkedRecords(latest, earliest, null_key)


def _refuse_many_headers(count: int) -> None:
    if count > BATCH_RECORDS_MAX:
        raise TooManyRecords(f"{count} record headers in one batch")


# One record, whatever its layout.


def _read_layout(data: bytes, start: int, index: int, base_ms: int) -> RecordLayout:
    """IndexError and MalformedMessage mean that the data ends early or is no number."""
    size, body = read_number(data, start)
    end = body + size
    if size < 0 or end > len(data):
        raise CorruptBatch(f"a record of {size} bytes, {len(data) - body} are left")
    lengths = list(range(body - start))
    timestamp_at = body + 1
    timestamp_delta, offset_at = read_number(data, timestamp_at, read_varlong)
    if not INT64_MIN <= base_ms + timestamp_delta <= INT64_MAX:
        raise CorruptBatch(f"timestamp {base_ms + timestamp_delta}")
    offset_delta, key_at = read_number(data, offset_at)
    if offset_delta != index:
        raise CorruptBatch(f"offset delta {offset_delta} instead of {index}")
    key_size, at = _skip_field(data, key_at, start, end, lengths)
    _, at = _skip_field(data, at, start, end, lengths)
    headers_at = at
    headers_count, at = read_number(data, at)
    lengths.extend(range(headers_at - start, at - start))
    if not 0 <= headers_count <= end - at:
        raise CorruptBatch(f"{headers_count} record headers in {end - at} bytes")
    _refuse_many_headers(headers_count)
    for _ in range(headers_count):
        name_size, at = _skip_field(data, at, start, end, lengths)
        if name_size < 0:
            raise CorruptBatch("a record header without a name")
        _, at = _skip_field(data, at, start, end, lengths)
    if at != end:
        raise CorruptBatch(f"a record of {size} bytes whose fields take {size + at - end}")
    return RecordLayout(
        size_bytes=end - start,
        timestamp_at=timestamp_at - start,
        offset_at=offset_at - start,
        key_at=key_at - start,
        lengths=tuple(lengths) if headers_count <= _RUN_HEADERS_MAX else (),
        headers_count=headers_count,
        timestamp_delta=timestamp_delta,
        has_null_key=key_size < 0,
    )


def _skip_field(data: bytes, at: int, start: int, end: int, lengths: list[int]) -> tuple[int, int]:
    """The field's length, negative for none, and where the next one begins."""
    size, content = read_number(data, at)
    lengths.extend(range(at - start, content - start))
    if size <= 0:
        return size, content
    if content + size > end:
        raise CorruptBatch(f"a field of {size} bytes, {end - content} are left in its record")
    return size, content + size


# Records of all sizes.


def _walk_plain(
    data: bytes, at: int, index: int, index_end: int
) -> tuple[int, int, int, bool, int]:
    """Records of the usual form one by one, up to the first of another form: where that begins, its
    index, the largest timestamp delta, whether a key is null, and how many headers there were.

    The usual form has numbers of one or two bytes, and of one in keys' sizes and in headers. A
    wrong record is not of this form: `_read_layout` says what is wrong with it.
    """
    # Size: one loop without calls, because every call would cost a quarter of a record's time.
    latest = _NO_DELTA
    null_key = False
    headers = 0
    bytes_end = len(data)
    ahead = bytes_end - _AHEAD_BYTES
    width = offset_width(index)
    index_end = min(index_end, OFFSET_WIDTH_ENDS[width])
    unpack = _FRONTS[width].unpack_from
    offsets = _FRONT_OFFSETS[width]
    while index < index_end and at <= ahead:
        number = data[at]
        position = at + 2
        if number >= 0x80:
            second = data[at + 1]
            if second >= 0x80:
                break
            number += (second - 1) << 7
            position = at + 3
        end = position - 1 + (number >> 1)
        delta, offset, key_size, size, second = unpack(data, position)
        if delta >= 0x80:
            low = delta
            position += 1
            delta, offset, key_size, size, second = unpack(data, position)
            if delta >= 0x80:
                break
            delta = low + ((delta - 1) << 7)
        if offset != offsets[index] or number & 1:
            break
        position += 3 + width
        if key_size == 1:
            null_key = True
        else:
            position += key_size >> 1
            if key_size & 1 or key_size >= 0x80 or position > ahead:
                break
            size = data[position - 1]
            second = data[position]
        if size >= 0x80:
            if second >= 0x80:
                break
            size += (second - 1) << 7
            position += 1
        if not size & 1:
            position += size >> 1
        elif size != 1:
            break
        if position + 1 != end or data[position]:
            if not position < end <= bytes_end or _skip_headers(data, position, end) != end:
                break
            headers += data[position] >> 1
        if not delta & 1:
            if delta > latest:
                latest = delta
        elif latest < 0:
            latest = max(latest, -delta - 1)
        at = end
        index += 1
    return at, index, latest >> 1, null_key, headers


class _ThreeByteOffsets:
    """Offset deltas of three bytes, which few batches have: made one by one."""

    def __getitem__(self, index: int) -> bytes:
        number = index << 1
        return bytes((number & 0x7F | 0x80, number >> 7 & 0x7F | 0x80, number >> 14))


def _two_byte_offsets() -> tuple[int, ...]:
    pairs = bytearray(2 * OFFSET_WIDTH_ENDS[2])
    pairs[0::2] = repeated(FIRST_OF_MORE, 0, OFFSET_WIDTH_ENDS[2])
    pairs[1::2] = LAST_OF_TWO
    return unpack(f">{OFFSET_WIDTH_ENDS[2]}H", pairs)


_FRONT_OFFSETS = ((), tuple(LAST_OF_ONE), _two_byte_offsets(), _ThreeByteOffsets())


def _skip_headers(data: bytes, position: int, end: int) -> int:
    """Where the headers end whose count is at `position`; -1 if their sizes are long or wrong."""
    number = data[position]
    if number & 1 or number >= 0x80:
        return -1
    position += 1
    for _ in range(number >> 1):
        if position >= end or (size := data[position]) >= 0x80 or size & 1:
            return -1
        position += 1 + (size >> 1)
        if position >= end or (size := data[position]) >= 0x80:
            return -1
        position += 1 if size & 1 else 1 + (size >> 1)
    return position
