"""What a leader accepts, refuses and changes; what a follower copies."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.core.storage.given import (
    NOW_MS,
    SMALL,
    Rig,
    append,
    append_values,
    batch,
    headers_of,
    read_all,
    read_values,
)
from tidelog.core.model.errors import ErrorCode
from tidelog.core.storage.config import LogConfig
from tidelog.core.storage.disk import read_slice
from tidelog.core.storage.log import Appended, Log, OffsetsOutOfOrder
from tidelog.core.wire.control_records import end_txn_marker
from tidelog.core.wire.record_batch import (
    CONTROL_BIT,
    LOG_APPEND_TIME_BIT,
    CorruptBatch,
    batches,
    crc_is_valid,
    read_header,
    renew_crc,
)
from tidelog.core.wire.records import NewRecord, build


def opened(**settings: object) -> Log:
    return Rig(replace(SMALL, **settings)).open()  # type: ignore[arg-type]


def stored(log: Log) -> bytes:
    piece = log.read(log.log_start_offset, bytes_max=2**20, end_offset=log.log_end_offset)
    assert piece is not None
    return read_slice(piece)


def with_header(view: memoryview, at: int, content: bytes) -> memoryview:
    """The batch with some header bytes changed and its checksum right."""
    view[at : at + len(content)] = content
    renew_crc(view)
    return view


def test_batches_get_consecutive_offsets_and_the_leaders_epoch() -> None:
    log = opened()

    first = append(log, batch(3), leader_epoch=5)
    second = append(log, batch(2), leader_epoch=5)

    assert first == Appended(ErrorCode.NONE, 0, 3, None, False, None)
    assert (second.base_offset, second.end_offset) == (3, 5)
    assert [(one.base_offset, one.leader_epoch) for one in headers_of(stored(log))] == [
        (0, 5),
        (3, 5),
    ]
    assert log.log_end_offset == 5


def test_the_bytes_under_the_checksum_stay_as_they_came() -> None:
    log = opened()
    sent = bytes(batch(2, compression=1))

    append(log, memoryview(bytearray(sent)))

    assert stored(log)[16:] == sent[16:]


def test_nothing_is_made_on_disk_before_the_first_append() -> None:
    rig = Rig()
    log = rig.open()
    log.begin_leader_epoch(4)
    log.want_sync()

    assert rig.names() == []
    assert log.latest_leader_epoch == 4

    append(log, leader_epoch=4)

    assert rig.names() == [
        "00000000000000000000.log",
        "leader-epoch-checkpoint",
        "partition.metadata",
    ]
    assert bytes(rig.file("leader-epoch-checkpoint").data) == b"0\n1\n4 0\n"
    assert bytes(rig.file("partition.metadata").data) == (
        b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    )


@pytest.mark.parametrize(
    ("view", "code"),
    [
        (memoryview(b""), ErrorCode.INVALID_RECORD),
        (batch()[:40], ErrorCode.INVALID_RECORD),
        (batch()[:-1], ErrorCode.INVALID_RECORD),
        (memoryview(bytearray(bytes(batch()) * 2)), ErrorCode.INVALID_RECORD),
        (memoryview(bytearray(bytes(8) + b"\0\0\0\x05" + bytes(40))), ErrorCode.CORRUPT_MESSAGE),
        (memoryview(bytearray(bytes(8) + b"\0\0\0\x28" + bytes(40))), ErrorCode.INVALID_RECORD),
        (
            memoryview(bytearray(bytes(8) + b"\0\0\0\x28" + bytes(4) + b"\x03" + bytes(35))),
            ErrorCode.CORRUPT_MESSAGE,
        ),
        (
            memoryview(bytearray(bytes(8) + b"\0\0\0\x28" + bytes(4) + b"\x02" + bytes(35))),
            ErrorCode.CORRUPT_MESSAGE,
        ),
        (batch(["x" * 900]), ErrorCode.MESSAGE_TOO_LARGE),
        (batch(base_offset=4), ErrorCode.INVALID_RECORD),
        (batch(producer_id=3, producer_epoch=0, sequence=-1), ErrorCode.INVALID_RECORD),
        (with_header(batch(), 57, b"\0\0\0\x02"), ErrorCode.INVALID_RECORD),
        (with_header(batch(), 57, b"\xff\xff\xff\xff"), ErrorCode.INVALID_RECORD),
        (
            with_header(with_header(batch(), 57, b"\0\0\0\x64"), 23, b"\0\0\0\x63"),
            ErrorCode.INVALID_RECORD,
        ),
        (with_header(batch(), 21, bytes([0, CONTROL_BIT])), ErrorCode.INVALID_RECORD),
        (with_header(batch(), 21, b"\0\x05"), ErrorCode.UNKNOWN_SERVER_ERROR),
        (batch(timestamp_ms=NOW_MS + 3_600_001), ErrorCode.INVALID_TIMESTAMP),
    ],
    ids=[
        "nothing",
        "less than a header",
        "cut by a byte",
        "two batches",
        "absurd length",
        "old magic",
        "future magic",
        "header cut short",
        "too large",
        "not from offset 0",
        "producer without sequence",
        "more records than offsets",
        "negative count",
        "more records than bytes",
        "control batch",
        "unknown codec",
        "from the future",
    ],
)
def test_a_batch_that_nobody_may_trust_is_refused_and_leaves_nothing(
    view: memoryview, code: ErrorCode
) -> None:
    log = opened(message_bytes_max=800)

    result = append(log, memoryview(bytearray(view)))

    assert result.error == code, result.message
    assert result.message
    assert result.base_offset is None
    assert log.log_end_offset == 0
    assert log.files.segments == []


def test_a_flipped_bit_is_noticed_by_the_checksum() -> None:
    view = batch()
    view[-3] ^= 4

    assert append(opened(), view).error == ErrorCode.CORRUPT_MESSAGE


def test_a_batch_larger_than_a_segment_is_refused() -> None:
    log = opened(segment_bytes=200, message_bytes_max=4_000)

    assert append(log, batch(["x" * 300])).error == ErrorCode.RECORD_LIST_TOO_LARGE


def test_trailing_bytes_that_are_no_batch_are_dropped_as_kafka_does() -> None:
    log = opened()

    assert append(log, memoryview(bytearray(bytes(batch()) + b"\0" * 11))).error == 0
    assert len(stored(log)) == len(batch())


def test_records_older_than_the_topic_allows_are_refused() -> None:
    log = opened(message_timestamp_before_max_ms=1_000)

    assert append(log, batch(timestamp_ms=NOW_MS - 1_001)).error == ErrorCode.INVALID_TIMESTAMP
    assert append(log, batch(timestamp_ms=NOW_MS - 1_000)).error == 0
    assert append(log, batch(timestamp_ms=-1)).error == 0


def test_a_topic_with_log_append_time_stamps_every_batch() -> None:
    log = opened(message_timestamp_type="LogAppendTime")

    result = append(log, batch(2, timestamp_ms=5))

    assert result.log_append_time_ms == NOW_MS
    assert [record.timestamp_ms for record in read_all(log)] == [NOW_MS, NOW_MS]
    data = stored(log)
    assert crc_is_valid(data, 0, read_header(data))


def test_a_producer_may_not_claim_the_brokers_time() -> None:
    claimed = with_header(batch(), 21, bytes([0, LOG_APPEND_TIME_BIT]))

    log = opened(message_timestamp_type="LogAppendTime")
    assert append(log, memoryview(bytearray(claimed))).error == ErrorCode.INVALID_TIMESTAMP

    log = opened()
    assert append(log, claimed).error == 0
    data = stored(log)
    assert not read_header(data).is_log_append_time
    assert crc_is_valid(data, 0, read_header(data))


def test_a_compacted_topic_needs_keys() -> None:
    log = opened(compact=True)

    assert append(log, batch(key=None)).error == ErrorCode.INVALID_RECORD
    assert append(log, batch(key=b"k")).error == 0


@pytest.mark.parametrize(
    ("codec", "number"), [("gzip", 1), ("snappy", 2), ("lz4", 3), ("zstd", 4), ("uncompressed", 0)]
)
def test_a_topic_with_a_codec_of_its_own_packs_batches_anew(codec: str, number: int) -> None:
    log = opened(compression_type=codec)

    append(log, batch(["a", "b"], compression=1 if number != 1 else 0))

    assert read_header(stored(log)).compression == number
    assert read_values(log) == ["a", "b"]


def test_a_batch_that_grows_beyond_the_limit_when_repacked_is_refused() -> None:
    log = opened(compression_type="uncompressed", message_bytes_max=500, segment_bytes=10_000)

    assert append(log, batch(["x" * 600], compression=1)).error == ErrorCode.MESSAGE_TOO_LARGE


def test_changed_settings_hold_from_the_next_batch_on() -> None:
    log = opened()
    append(log, batch(["a"]))

    log.update_config(replace(log.config, compression_type="gzip"))
    append(log, batch(["b"]))

    assert [one.compression for one in headers_of(stored(log))] == [0, 1]


def test_the_broker_itself_may_append_control_batches_several_at_once() -> None:
    log = opened()
    control = build([NewRecord(key=b"\0\0\0\2", value=b"leader")], control=True)
    both = memoryview(bytearray(control) + bytearray(batch(2)))

    result = log.append_as_leader(both, leader_epoch=1, wall_ms=NOW_MS, from_client=False)

    assert (result.error, result.base_offset, result.end_offset) == (0, 0, 3)
    assert [one.is_control for one in headers_of(stored(log))] == [True, False]


def test_a_marker_of_an_older_coordinator_is_refused() -> None:
    log = opened()

    def mark(coordinator_epoch: int) -> Appended:
        marker = end_txn_marker(commit=True, coordinator_epoch=coordinator_epoch)
        view = build([marker], producer_id=1, producer_epoch=0, transactional=True, control=True)
        return log.append_as_leader(
            memoryview(view), leader_epoch=0, wall_ms=NOW_MS, from_client=False
        )

    assert mark(3).error == 0
    assert mark(2).error == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert mark(3).error == 0


# The follower.


def copied(source: Log, start_offset: int = 0) -> memoryview:
    return memoryview(b"".join(bytes(read_slice(piece)) for piece in pieces(source, start_offset)))


def pieces(source: Log, start_offset: int) -> list:  # type: ignore[type-arg]
    found = []
    offset = start_offset
    while offset < source.log_end_offset:
        piece = source.read(offset, bytes_max=2**20, end_offset=source.log_end_offset)
        assert piece is not None
        found.append(piece)
        for _, header in batches(read_slice(piece)):
            offset = header.end_offset
    return found


def test_a_follower_has_the_same_bytes_segments_and_leader_epochs() -> None:
    leader, follower = opened(), opened()
    for at in range(30):
        append_values(leader, f"value {at}", leader_epoch=at // 10)

    result = follower.append_as_follower(copied(leader), wall_ms=NOW_MS)
    follower.check()

    assert (result.error, result.end_offset) == (0, 30)
    assert read_values(follower) == read_values(leader)
    assert follower.epochs.entries == leader.epochs.entries == [(0, 0), (1, 10), (2, 20)]
    assert [bytes(read_slice(piece)) for piece in pieces(follower, 0)] == [
        bytes(read_slice(piece)) for piece in pieces(leader, 0)
    ]


@pytest.mark.scenario("X-33")
def test_a_follower_refuses_a_damaged_batch_and_takes_nothing_of_the_answer() -> None:
    leader, follower = opened(), opened()
    append_values(leader, "a", "b", "c")
    data = bytearray(copied(leader))
    data[-2] ^= 1

    with pytest.raises(CorruptBatch):
        follower.append_as_follower(memoryview(data), wall_ms=NOW_MS)

    assert follower.log_end_offset == 0


def test_a_follower_leaves_out_a_batch_that_is_cut() -> None:
    leader, follower = opened(), opened()
    append_values(leader, "a", "b")

    follower.append_as_follower(copied(leader)[:-1], wall_ms=NOW_MS)

    assert read_values(follower) == ["a"]


def test_a_follower_takes_no_batch_of_a_later_leader_than_its_own() -> None:
    """KAFKA-18723: the sender was cut and grew again while it sent what it had read before."""
    leader, follower = opened(), opened()
    for leader_epoch in (0, 1, 2):
        append_values(leader, f"of {leader_epoch}", leader_epoch=leader_epoch)

    follower.append_as_follower(copied(leader), wall_ms=NOW_MS, leader_epoch_max=1)

    assert read_values(follower) == ["of 0", "of 1"]


def test_a_follower_refuses_offsets_that_do_not_continue_its_log() -> None:
    leader, follower = opened(), opened()
    append_values(leader, "a", "b", "c")
    append_values(follower, "a")

    with pytest.raises(OffsetsOutOfOrder):
        follower.append_as_follower(copied(leader), wall_ms=NOW_MS)
    with pytest.raises(OffsetsOutOfOrder):
        follower.append_as_follower(copied(leader, 2), wall_ms=NOW_MS)

    follower.append_as_follower(copied(leader, 1), wall_ms=NOW_MS)
    assert read_values(follower) == ["a", "b", "c"]


def test_a_follower_of_a_compacted_log_accepts_gaps() -> None:
    follower = opened(compact=True)
    for offset in (0, 5, 6, 30):
        view = batch([f"at {offset}"], base_offset=offset, leader_epoch=0)
        follower.append_as_follower(view, wall_ms=NOW_MS)
        follower.check()

    assert [record.offset for record in read_all(follower)] == [0, 5, 6, 30]
    piece = follower.read(8, bytes_max=1, end_offset=31)
    assert piece is not None and read_header(read_slice(piece)).base_offset == 30


def test_a_follower_remembers_producers_like_its_leader() -> None:
    leader, follower = opened(), opened()
    for sequence in range(7):
        append(leader, batch(producer_id=1, producer_epoch=0, sequence=sequence))

    follower.append_as_follower(copied(leader), wall_ms=NOW_MS)

    again = append(follower, batch(producer_id=1, producer_epoch=0, sequence=5))
    assert (again.is_duplicate, again.base_offset) == (True, 5)


def test_the_defaults_are_kafkas() -> None:
    config = LogConfig()

    assert (config.segment_bytes, config.segment_ms) == (1_073_741_824, 604_800_000)
    assert (config.index_interval_bytes, config.segment_index_bytes) == (4_096, 10_485_760)
    assert (config.message_bytes_max, config.retention_ms) == (1_048_588, 604_800_000)
    assert (config.file_delete_delay_ms, config.producer_id_expiration_ms) == (60_000, 86_400_000)
