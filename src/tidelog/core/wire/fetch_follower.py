"""The follower's hot side of Fetch: requests as bytes, answers into plain tuples.

Versions 13 to 18, those that name topics by id. The schema table in `messages/api_01_fetch.py` says
the same thing readably; a property test holds the two equal. Records stay slices of the answer's
buffer: nothing is copied, and they are valid only while it is.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from tidelog.core.wire.fast_fields import (
    INT,
    LONG,
    Endpoint,
    check_end,
    compact_count,
    compact_string,
    nullable_compact_string,
    put_compact_string,
    put_varint,
    read_varint,
    skip_tags,
    tagged_fields,
    topic_id,
)
from tidelog.core.wire.fetch_fast import FetchedPartition
from tidelog.core.wire.malformed import MalformedMessage

REPLICA_STATE_FROM = 15
ENDPOINTS_FROM = 16
DIRECTORY_ID_FROM = 17
HIGH_WATERMARK_FROM = 18

_HEAD = Struct(">iiibii")
_PARTITION = Struct(">iiqiqi")
_REPLICA_STATE = Struct(">iq")
_ANSWER_HEAD = Struct(">ihi")
_ANSWER = Struct(">ihqqq")
_ABORTED = Struct(">qq")
_DIVERGING = Struct(">iq")
_LEADER = Struct(">ii")
_SNAPSHOT = Struct(">qi")
_ABSENT = (-1, -1)


class AnsweredPartition(NamedTuple):
    """What the leader answers for one partition: raw wire values, -1 for unknown.

    `diverging` is (epoch, end offset), `current_leader` (id, epoch), `snapshot_id` (end offset,
    epoch).
    """

    partition_index: int
    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: list[tuple[int, int]] | None
    preferred_read_replica: int
    records: memoryview | None
    diverging: tuple[int, int] | None = None
    current_leader: tuple[int, int] | None = None
    snapshot_id: tuple[int, int] | None = None


class FetchAnswer(NamedTuple):
    """A decoded answer; topics are ids."""

    throttle_time_ms: int
    error_code: int
    session_id: int
    topics: list[tuple[bytes, list[AnsweredPartition]]]
    endpoints: list[Endpoint]


def encode_fetch_call(
    topics: Sequence[tuple[bytes, Sequence[FetchedPartition]]],
    version: int,
    *,
    replica_id: int,
    replica_epoch: int,
    wait_ms_max: int,
    bytes_min: int,
    bytes_max: int,
    session_id: int,
    session_epoch: int,
    forgotten: Sequence[tuple[bytes, Sequence[int]]] = (),
    cluster_id: str | None = None,
) -> bytearray:
    """The body of a replica's request, without size and header. Topics are ids."""
    assert version >= REPLICA_STATE_FROM, "before that, followers had no broker epoch"
    out = bytearray(_HEAD.pack(wait_ms_max, bytes_min, bytes_max, 0, session_id, session_epoch))
    put_varint(out, len(topics) + 1)
    for topic, partitions in topics:
        out += topic
        put_varint(out, len(partitions) + 1)
        for partition in partitions:
            out += _PARTITION.pack(*partition[:6])
            _put_partition_tags(out, partition, version)
        out += b"\0"
    put_varint(out, len(forgotten) + 1)
    for topic, indexes in forgotten:
        out += topic
        put_varint(out, len(indexes) + 1)
        for index in indexes:
            out += INT.pack(index)
        out += b"\0"
    out += b"\x01"  # no rack: replicas are not sent elsewhere
    _put_request_tags(out, replica_id, replica_epoch, cluster_id)
    return out


def decode_fetch_answer(body: memoryview, version: int) -> FetchAnswer:
    """Raises MalformedMessage for anything short, over-long or negative."""
    try:
        return _decode(body, version)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise MalformedMessage(f"an answer to Fetch v{version}: {error}") from error


def _put_partition_tags(out: bytearray, partition: FetchedPartition, version: int) -> None:
    directory_id, high_watermark = partition[6:]
    if version < HIGH_WATERMARK_FROM:
        high_watermark = None
    if version < DIRECTORY_ID_FROM:
        directory_id = None
    out.append((directory_id is not None) + (high_watermark is not None))
    if directory_id is not None:
        out += b"\x00\x10" + directory_id
    if high_watermark is not None:
        out += b"\x01\x08" + LONG.pack(high_watermark)


def _put_request_tags(
    out: bytearray, replica_id: int, replica_epoch: int, cluster_id: str | None
) -> None:
    is_replica = (replica_id, replica_epoch) != _ABSENT
    out.append((cluster_id is not None) + is_replica)
    if cluster_id is not None:
        field = bytearray()
        put_compact_string(field, cluster_id)
        out += b"\0"
        put_varint(out, len(field))
        out += field
    if is_replica:
        out += b"\x01\x0d" + _REPLICA_STATE.pack(replica_id, replica_epoch) + b"\0"


def _decode(body: memoryview, version: int) -> FetchAnswer:
    throttle_time_ms, error_code, session_id = _ANSWER_HEAD.unpack_from(body)
    topic_count, at = compact_count(body, _ANSWER_HEAD.size)
    topics = []
    for _ in range(topic_count):
        topic, at = topic_id(body, at)
        partition_count, at = compact_count(body, at)
        partitions = []
        for _ in range(partition_count):
            partition, at = _partition(body, at)
            partitions.append(partition)
        topics.append((topic, partitions))
        at = at + 1 if body[at] == 0 else skip_tags(body, at)
    endpoints: list[Endpoint] = []
    if body[at] == 0:
        at += 1
    else:
        fields, at = tagged_fields(body, at)
        for tag, field in fields:
            if tag == 0 and version >= ENDPOINTS_FROM:
                endpoints = _endpoints(field)
    check_end(at, len(body))
    return FetchAnswer(throttle_time_ms, error_code, session_id, topics, endpoints)


def _partition(body: memoryview, at: int) -> tuple[AnsweredPartition, int]:
    head: tuple[int, int, int, int, int] = _ANSWER.unpack_from(body, at)
    at += _ANSWER.size
    aborted: list[tuple[int, int]] | None = None
    if body[at] == 0:
        at += 1
    else:
        aborted, at = _aborted(body, at)
    (preferred_read_replica,) = INT.unpack_from(body, at)
    length, at = read_varint(body, at + 4)
    records: memoryview | None = None
    if length:
        end = at + length - 1
        if end > len(body):
            raise MalformedMessage(f"{length - 1} bytes of records announced")
        records = body[at:end]
        at = end
    if body[at] == 0:
        return AnsweredPartition(*head, aborted, preferred_read_replica, records), at + 1
    fields, at = tagged_fields(body, at)
    by_tag = dict(fields)
    return AnsweredPartition(
        *head, aborted, preferred_read_replica, records,
        _pair(by_tag, 0, _DIVERGING), _pair(by_tag, 1, _LEADER), _pair(by_tag, 2, _SNAPSHOT),
    ), at  # fmt: skip


def _aborted(body: memoryview, at: int) -> tuple[list[tuple[int, int]], int]:
    count, at = compact_count(body, at)
    aborted = []
    for _ in range(count):
        aborted.append(_ABORTED.unpack_from(body, at))
        at = skip_tags(body, at + _ABORTED.size)
    return aborted, at


def _pair(by_tag: dict[int, memoryview], tag: int, layout: Struct) -> tuple[int, int] | None:
    """The two numbers of a tagged field; None for defaults."""
    field = by_tag.get(tag)
    if field is None:
        return None
    first, second = layout.unpack_from(field)
    return None if (first, second) == _ABSENT else (first, second)


def _endpoints(field: memoryview) -> list[Endpoint]:
    count, at = compact_count(field, 0)
    endpoints = []
    for _ in range(count):
        (node_id,) = INT.unpack_from(field, at)
        host, at = compact_string(field, at + 4)
        (port,) = INT.unpack_from(field, at)
        rack, at = nullable_compact_string(field, at + 4)
        at = skip_tags(field, at)
        endpoints.append(Endpoint(node_id, host, port, rack))
    return endpoints
