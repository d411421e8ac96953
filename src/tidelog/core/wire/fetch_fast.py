"""Fetch (api key 1) by hand: requests into plain tuples, answers as bytes around file slices.

Versions 4 to 18. The schema table in `messages/api_01_fetch.py` says the same thing readably; a
property test holds the two equal. An answer is a list of parts: what we encode, and where the
records lie in their files.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from tidelog.core.wire.fast_fields import (
    INT,
    LONG,
    SHORT,
    Endpoint,
    Topic,
    check_end,
    compact_count,
    compact_string,
    nullable_compact_string,
    plain_count,
    plain_string,
    put_count,
    put_endpoints,
    put_topic,
    skip_tags,
    tagged_fields,
    topic_id,
)
from tidelog.core.wire.malformed import MalformedMessage
from tidelog.core.wire.schema import ZERO_UUID
from tidelog.core.wire.varint import unsigned_varint

FLEXIBLE_FROM = 12
TOPIC_IDS_FROM = 13
NEW_LEADERS_FROM = 16
"""Leaders are named with their addresses, though the field without them is older: as Kafka does."""
UNKNOWN_HIGH_WATERMARK = 2**63 - 1

_SESSION = Struct(">ii")
_HEAD_4 = Struct(">iiiib")
_HEAD_15 = Struct(">iiib")
_PARTITION_12 = Struct(">iiqiqi")
_PARTITION_9 = Struct(">iiqqi")
_PARTITION_5 = Struct(">iqqi")
_PARTITION_4 = Struct(">iqi")
_ANSWER = Struct(">ihqqq")
_ANSWER_4 = Struct(">ihqq")
_ABORTED = Struct(">qq")
_REPLICA_STATE = Struct(">iq")


class FetchedPartition(NamedTuple):
    """One partition of a request: raw wire values, -1 for unknown.

    The directory id is None where no replica of the metadata log asks; the high watermark that the
    asker knows is None where it does not say.
    """

    partition_index: int
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    bytes_max: int
    replica_directory_id: bytes | None = None
    high_watermark: int | None = None


class FetchCall(NamedTuple):
    """A decoded request."""

    replica_id: int
    replica_epoch: int
    wait_ms_max: int
    bytes_min: int
    bytes_max: int
    isolation_level: int
    session_id: int
    session_epoch: int
    topics: list[tuple[Topic, list[FetchedPartition]]]
    forgotten: list[tuple[Topic, list[int]]]
    rack_id: str
    cluster_id: str | None = None


class FetchPartitionAnswer(NamedTuple):
    """What one partition answers; `records_bytes` of records follow, as the given part.

    Raw wire values: `diverging` is (epoch, end offset), `current_leader` (id, epoch), `snapshot_id`
    (end offset, epoch).
    """

    partition_index: int
    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: Sequence[tuple[int, int]] | None = None
    records: object = None
    records_bytes: int = 0
    diverging: tuple[int, int] | None = None
    current_leader: tuple[int, int] | None = None
    preferred_read_replica: int = -1
    snapshot_id: tuple[int, int] | None = None


def decode_fetch(body: memoryview, version: int) -> FetchCall:
    """Raises MalformedMessage for anything short, over-long or negative."""
    try:
        if version >= FLEXIBLE_FROM:
            return _decode_flexible(body, version)
        return _decode_plain(body, version)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise MalformedMessage(f"Fetch v{version}: {error}") from error


def _decode_plain(body: memoryview, version: int) -> FetchCall:
    replica_id, wait_ms_max, bytes_min, bytes_max, isolation = _HEAD_4.unpack_from(body, 0)
    at = 17
    session_id, session_epoch = 0, -1
    if version >= 7:
        session_id, session_epoch = _SESSION.unpack_from(body, at)
        at += 8
    topic_count, at = plain_count(body, at)
    topics: list[tuple[Topic, list[FetchedPartition]]] = []
    for _ in range(topic_count):
        name, at = plain_string(body, at)
        partition_count, at = plain_count(body, at)
        partitions = []
        for _ in range(partition_count):
            partition, at = _plain_partition(body, at, version)
            partitions.append(partition)
        topics.append((name, partitions))
    forgotten: list[tuple[Topic, list[int]]] = []
    if version >= 7:
        topic_count, at = plain_count(body, at)
        for _ in range(topic_count):
            name, at = plain_string(body, at)
            count, at = plain_count(body, at)
            forgotten.append((name, _integers(body, at, count)))
            at += 4 * count
    rack_id = ""
    if version >= 11:
        rack_id, at = plain_string(body, at)
    check_end(at, len(body))
    return FetchCall(
        replica_id, -1, wait_ms_max, bytes_min, bytes_max, isolation,
        session_id, session_epoch, topics, forgotten, rack_id,
    )  # fmt: skip


def _plain_partition(body: memoryview, at: int, version: int) -> tuple[FetchedPartition, int]:
    if version >= 9:
        index, leader_epoch, offset, log_start, bytes_max = _PARTITION_9.unpack_from(body, at)
        return FetchedPartition(index, leader_epoch, offset, -1, log_start, bytes_max), at + 28
    if version >= 5:
        index, offset, log_start, bytes_max = _PARTITION_5.unpack_from(body, at)
        return FetchedPartition(index, -1, offset, -1, log_start, bytes_max), at + 24
    index, offset, bytes_max = _PARTITION_4.unpack_from(body, at)
    return FetchedPartition(index, -1, offset, -1, -1, bytes_max), at + 16


def _decode_flexible(body: memoryview, version: int) -> FetchCall:
    replica_id, replica_epoch, at = -1, -1, 13
    if version >= 15:
        wait_ms_max, bytes_min, bytes_max, isolation = _HEAD_15.unpack_from(body, 0)
    else:
        replica_id, wait_ms_max, bytes_min, bytes_max, isolation = _HEAD_4.unpack_from(body, 0)
        at = 17
    session_id, session_epoch = _SESSION.unpack_from(body, at)
    topic_count, at = compact_count(body, at + 8)
    topics: list[tuple[Topic, list[FetchedPartition]]] = []
    for _ in range(topic_count):
        topic, at = _flexible_topic(body, at, version)
        partition_count, at = compact_count(body, at)
        partitions = []
        for _ in range(partition_count):
            partition = FetchedPartition(*_PARTITION_12.unpack_from(body, at))
            at += 32
            if body[at] == 0:
                at += 1
            else:
                partition, at = _with_tags(partition, body, at, version)
            partitions.append(partition)
        at = skip_tags(body, at)
        topics.append((topic, partitions))
    forgotten: list[tuple[Topic, list[int]]] = []
    topic_count, at = compact_count(body, at)
    for _ in range(topic_count):
        topic, at = _flexible_topic(body, at, version)
        count, at = compact_count(body, at)
        forgotten.append((topic, _integers(body, at, count)))
        at = skip_tags(body, at + 4 * count)
    rack_id, at = compact_string(body, at)
    cluster_id = None
    fields, at = tagged_fields(body, at)
    for tag, field in fields:
        if tag == 0:
            cluster_id, _ = nullable_compact_string(field, 0)
        elif tag == 1 and version >= 15:
            replica_id, replica_epoch = _REPLICA_STATE.unpack_from(field)
    check_end(at, len(body))
    return FetchCall(
        replica_id, replica_epoch, wait_ms_max, bytes_min, bytes_max, isolation,
        session_id, session_epoch, topics, forgotten, rack_id, cluster_id,
    )  # fmt: skip


def _with_tags(
    partition: FetchedPartition, body: memoryview, at: int, version: int
) -> tuple[FetchedPartition, int]:
    """What only replicas say: consumers' partitions have no tagged fields."""
    fields, at = tagged_fields(body, at)
    for tag, field in fields:
        if tag == 0 and version >= 17:
            directory_id, _ = topic_id(field, 0)
            partition = partition._replace(
                replica_directory_id=None if directory_id == ZERO_UUID else directory_id
            )
        elif tag == 1 and version >= 18:
            (known,) = LONG.unpack_from(field)
            partition = partition._replace(
                high_watermark=None if known == UNKNOWN_HIGH_WATERMARK else known
            )
    return partition, at


def encode_fetch_answer(
    topics: Sequence[tuple[Topic, Sequence[FetchPartitionAnswer]]],
    version: int,
    *,
    prefix: bytes = b"",
    error_code: int = 0,
    session_id: int = 0,
    endpoints: Sequence[Endpoint] = (),
) -> list[object]:
    """The parts of the answer; the first begins with `prefix`. Records are passed through."""
    flexible = version >= FLEXIBLE_FROM
    out = bytearray(prefix)
    out += b"\0\0\0\0"
    if version >= 7:
        out += SHORT.pack(error_code) + INT.pack(session_id)
    parts: list[object] = []
    put_count(out, len(topics), flexible=flexible)
    for topic, answers in topics:
        put_topic(out, topic, flexible=flexible)
        put_count(out, len(answers), flexible=flexible)
        for answer in answers:
            _put_partition(out, answer, version)
            if answer.records_bytes:
                parts += (out, answer.records)
                out = bytearray()
            if flexible:
                _put_partition_tags(out, answer, version)
        if flexible:
            out += b"\0"
    if version >= NEW_LEADERS_FROM and endpoints:
        put_endpoints(out, endpoints)
    elif flexible:
        out += b"\0"
    if out:
        parts.append(out)
    return parts


def _put_partition(out: bytearray, answer: FetchPartitionAnswer, version: int) -> None:
    flexible = version >= FLEXIBLE_FROM
    if version >= 5:
        out += _ANSWER.pack(*answer[:5])
    else:
        out += _ANSWER_4.pack(*answer[:4])
    aborted = answer.aborted
    if aborted is None:
        out += b"\0" if flexible else b"\xff\xff\xff\xff"
    else:
        put_count(out, len(aborted), flexible=flexible)
        for producer_id, first_offset in aborted:
            out += _ABORTED.pack(producer_id, first_offset)
            if flexible:
                out += b"\0"
    if version >= 11:
        out += INT.pack(answer.preferred_read_replica)
    if flexible:
        out += unsigned_varint(answer.records_bytes + 1)
    else:
        out += INT.pack(answer.records_bytes)


def _put_partition_tags(out: bytearray, answer: FetchPartitionAnswer, version: int) -> None:
    diverging, leader, snapshot = answer.diverging, answer.current_leader, answer.snapshot_id
    if version < NEW_LEADERS_FROM:
        leader = None
    if diverging is None and leader is None and snapshot is None:
        out += b"\0"
        return
    out.append((diverging is not None) + (leader is not None) + (snapshot is not None))
    if diverging is not None:
        out += b"\x00\x0d" + INT.pack(diverging[0]) + LONG.pack(diverging[1]) + b"\0"
    if leader is not None:
        out += b"\x01\x09" + INT.pack(leader[0]) + INT.pack(leader[1]) + b"\0"
    if snapshot is not None:
        out += b"\x02\x0d" + LONG.pack(snapshot[0]) + INT.pack(snapshot[1]) + b"\0"


def _flexible_topic(body: memoryview, at: int, version: int) -> tuple[Topic, int]:
    if version < TOPIC_IDS_FROM:
        return compact_string(body, at)
    return topic_id(body, at)


def _integers(body: memoryview, at: int, count: int) -> list[int]:
    if at + 4 * count > len(body):
        raise MalformedMessage("Fetch: more partitions announced than there are bytes")
    return [INT.unpack_from(body, at + 4 * i)[0] for i in range(count)]
