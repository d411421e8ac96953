"""What a leader finds in the records of a batch, for every lie and every codec."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.golden.batches import OLD_TIME_MS, built, damaged
from tests.lying_batches import (
    CODEC_LIES,
    CODECS,
    CONTENT_LIES,
    plain_records,
    repacked,
    sound,
    with_payload,
)
from tests.unit.core.storage.given import NOW_MS, SMALL, Rig, append, batch, read_values
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.limits import BATCH_RECORDS_MAX, DECOMPRESSED_BATCH_BYTES_MAX
from tidelog.core.storage.log import Appended, Log
from tidelog.core.wire.compression import compress
from tidelog.core.wire.record_batch import CorruptBatch, crc_is_valid, read_header
from tidelog.core.wire.records import NewRecord, iterate
from tidelog.core.wire.varint import varint

HOUR_MS = 3_600_000
BOTH = {**CONTENT_LIES, **CODEC_LIES}
COMPRESSED = [name for name in CODECS if name != "none"]


def opened(**settings: object) -> Log:
    config = replace(SMALL, segment_bytes=2**24, message_bytes_max=2**23)
    return Rig(replace(config, **settings)).open()  # type: ignore[arg-type]


def offered(log: Log, data: bytes) -> Appended:
    return append(log, memoryview(bytearray(data)))


def refused_between_sound_batches(lie: bytes, expected: ErrorCode) -> None:
    log = opened()
    append(log, batch(["before"]))

    result = offered(log, lie)

    assert (result.error, result.base_offset, result.record_errors) == (expected, None, ())
    assert result.message
    assert log.log_end_offset == 1
    append(log, batch(["behind"]))
    assert read_values(log) == ["before", "behind"]


@pytest.mark.scenario("X-48")
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("lie", CONTENT_LIES)
def test_records_that_contradict_their_header_are_invalid(lie: str, codec: str) -> None:
    """A count, an offset delta or a length that is a lie costs its batch, and nothing else."""
    refused_between_sound_batches(CONTENT_LIES[lie](CODECS[codec]), ErrorCode.INVALID_RECORD)


@pytest.mark.scenario("X-48")
@pytest.mark.parametrize("codec", COMPRESSED)
@pytest.mark.parametrize("lie", CODEC_LIES)
def test_bytes_that_do_not_unpack_are_refused_as_kafka_does(lie: str, codec: str) -> None:
    lying = CODEC_LIES[lie](CODECS[codec])
    refused_between_sound_batches(lying, ErrorCode.UNKNOWN_SERVER_ERROR)


@pytest.mark.parametrize("codec", CODECS)
def test_the_same_batch_without_a_lie_is_stored_byte_for_byte(codec: str) -> None:
    log = opened()
    data = bytearray(sound(CODECS[codec]))

    assert append(log, memoryview(data)).error == 0

    assert read_values(log) == ["first", "second", "third"]
    assert bytes(data[17:]) == sound(CODECS[codec])[17:]


def test_snappy_without_framing_is_stored() -> None:
    """One raw block, as librdkafka writes it."""
    from cramjam import snappy

    log = opened()
    block = bytes(snappy.compress_raw(plain_records()))

    assert offered(log, with_payload(block, CODECS["snappy"])).error == 0
    assert read_values(log) == ["first", "second", "third"]


@pytest.mark.parametrize("lie", BOTH)
def test_with_header_alone_the_records_are_believed(lie: str) -> None:
    """The setting that leaves batches closed; a count that cannot fit is still seen."""
    log = opened(records_validation="header")
    gzip = CODECS["gzip"]

    assert offered(log, BOTH[lie](gzip)).error == 0


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_bomb_is_refused_as_too_large(codec: str) -> None:
    """A few kilobytes that unpack to more than anybody reads: producers split such a batch."""
    number = CODECS[codec]
    log = opened()
    bomb = compress(number, bytes(DECOMPRESSED_BATCH_BYTES_MAX + 1))

    result = offered(log, with_payload(bytes(bomb), number))

    assert result.error == ErrorCode.MESSAGE_TOO_LARGE
    assert log.log_end_offset == 0


def test_more_records_than_are_looked_at_are_refused() -> None:
    log = opened()
    one = plain_records()
    count = BATCH_RECORDS_MAX + 1
    lie = repacked(one, CODECS["gzip"], records_count=count, last_offset_delta=count - 1)

    assert offered(log, lie).error == ErrorCode.MESSAGE_TOO_LARGE


def test_more_headers_than_are_looked_at_are_refused() -> None:
    """One record of a megabyte may hold half a million headers, and they pack to nothing."""
    log = opened()
    count = BATCH_RECORDS_MAX + 1
    body = bytes(3) + varint(-1) + varint(-1) + varint(count) + bytes(2 * count)
    lie = repacked(varint(len(body)) + body, CODECS["gzip"], records_count=1, last_offset_delta=0)

    assert offered(log, lie).error == ErrorCode.MESSAGE_TOO_LARGE


def test_the_headers_of_many_records_count_together() -> None:
    log = opened()
    headers = [("", b"")] * 60
    records = [NewRecord(value=bytes(at % 50), headers=headers) for at in range(4_500)]

    assert offered(log, built(records, compression=1)).error == ErrorCode.MESSAGE_TOO_LARGE
    assert offered(log, built(records[:4_300], compression=1)).error == 0


def at_times(*times: int, codec: int = 0, **fields: int) -> bytes:
    records = [NewRecord(value=b"v", key=b"k", timestamp_ms=time_ms) for time_ms in times]
    return damaged(built(records, compression=codec), crc_follows=True, **fields)


@pytest.mark.parametrize("codec", CODECS)
def test_a_largest_timestamp_that_no_record_has_is_put_right(codec: str) -> None:
    data = memoryview(
        bytearray(
            at_times(
                OLD_TIME_MS,
                OLD_TIME_MS + 900,
                OLD_TIME_MS - 3,
                codec=CODECS[codec],
                max_timestamp_ms=OLD_TIME_MS + 7,
            )
        )
    )

    assert append(opened(), data).error == 0

    header = read_header(data)
    assert header.max_timestamp_ms == OLD_TIME_MS + 900
    assert crc_is_valid(data, 0, header)


@pytest.mark.parametrize(
    ("settings", "data", "error", "indexes"),
    [
        ({}, at_times(NOW_MS, NOW_MS + 2 * HOUR_MS, max_timestamp_ms=NOW_MS), 32, [1]),
        ({}, at_times(NOW_MS, NOW_MS + HOUR_MS), 0, []),
        ({}, at_times(NOW_MS, max_timestamp_ms=NOW_MS + 2 * HOUR_MS), 0, []),
        (
            {"message_timestamp_before_max_ms": HOUR_MS},
            at_times(NOW_MS, NOW_MS - 2 * HOUR_MS, NOW_MS - HOUR_MS, -1),
            32,
            [1],
        ),
        (
            {"message_timestamp_type": "LogAppendTime"},
            at_times(NOW_MS, NOW_MS, attributes=8),
            32,
            [0, 1],
        ),
        ({}, at_times(-1, -1, attributes=8), 32, [0, 1]),
        ({"message_timestamp_type": "LogAppendTime"}, at_times(NOW_MS + 9 * HOUR_MS), 0, []),
    ],
)
def test_each_timestamp_is_looked_at_where_the_header_may_lie(
    settings: dict[str, object], data: bytes, error: int, indexes: list[int]
) -> None:
    result = offered(opened(**settings), data)

    assert result.error == error
    assert [index for index, _ in result.record_errors] == indexes


@pytest.mark.parametrize(
    ("late", "error", "indexes"),
    [((), 87, [1, 3]), ((2,), 32, [1, 2, 3]), ((1,), 87, [1, 3]), ((0, 1, 2, 3), 32, [0, 1, 2, 3])],
)
def test_a_missing_key_comes_before_a_bad_timestamp_but_not_in_the_code(
    late: tuple[int, ...], error: int, indexes: list[int]
) -> None:
    """All bad records are named; one that is bad for its timestamp decides the code."""
    records = [
        NewRecord(
            value=b"v",
            key=None if at in (1, 3) else b"k",
            timestamp_ms=NOW_MS + 2 * HOUR_MS * (at in late),
        )
        for at in range(4)
    ]

    result = offered(opened(compact=True), built(records))

    assert result.error == error
    assert [index for index, _ in result.record_errors] == indexes


@pytest.mark.parametrize("lie", BOTH)
def test_a_follower_takes_what_its_leader_has(lie: str) -> None:
    """Old logs may hold such batches: replicas stay equal, and recovery does not cut them."""
    log = opened()
    data = bytearray(BOTH[lie](CODECS["gzip"]))

    log.append_as_follower(memoryview(data), wall_ms=NOW_MS)

    assert log.log_end_offset == read_header(data).end_offset


@pytest.mark.parametrize("lie", BOTH)
def test_no_lie_can_be_read(lie: str) -> None:
    """So none of them is refused without a reason: readers stop at each, or lose records."""
    data = BOTH[lie](CODECS["gzip"])
    try:
        offsets = [record.offset for record in iterate(data)]
    except CorruptBatch:
        return
    assert offsets != [0, 1, 2]
