"""Produce (api key 0) by hand: the one request whose decoding decides how fast a broker writes.

Versions 3 to 13. The schema table in `messages/api_00_produce.py` says the same thing readably; a
property test holds the two equal. Records stay a slice of the receive buffer: nothing is copied.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from tidelog.core.wire.fast_fields import (
    INT,
    Endpoint,
    Topic,
    check_end,
    compact_count,
    compact_string,
    nullable_compact_string,
    nullable_plain_string,
    plain_count,
    plain_string,
    put_compact_string,
    put_count,
    put_endpoints,
    put_plain_string,
    put_topic,
    read_varint,
    skip_tags,
    topic_id,
)
from tidelog.core.wire.malformed import MalformedMessage

FLEXIBLE_FROM = 9
TOPIC_IDS_FROM = 13

_ACKS_TIMEOUT = Struct(">hi")
_INDEX_LENGTH = Struct(">ii")
_PARTITION_HEAD = Struct(">ihqqq")
_PARTITION_HEAD_OLD = Struct(">ihqq")

_NOTHING_SPECIAL = (None, (), None)
"""No message, no errors of single records, no other leader: nearly every answer."""
_NOTHING_SPECIAL_BYTES = b"\x01\x00\x00"

Partitions = list[tuple[int, memoryview | None]]


class ProduceCall(NamedTuple):
    """A decoded request. Records are None or a view into the frame, valid while it is."""

    transactional_id: str | None
    acks: int
    timeout_ms: int
    topics: list[tuple[Topic, Partitions]]


class ProducePartitionAnswer(NamedTuple):
    """What one partition answers: raw wire values, -1 for unknown."""

    partition_index: int
    error_code: int
    base_offset: int
    log_append_time_ms: int
    log_start_offset: int
    error_message: str | None = None
    record_errors: Sequence[tuple[int, str | None]] = ()
    current_leader: tuple[int, int] | None = None


def decode_produce(body: memoryview, version: int) -> ProduceCall:
    """Raises MalformedMessage for anything short, over-long or negative."""
    try:
        if version >= FLEXIBLE_FROM:
            return _decode_flexible(body, version)
        return _decode_plain(body)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise MalformedMessage(f"Produce v{version}: {error}") from error


def _decode_plain(body: memoryview) -> ProduceCall:
    transactional_id, at = nullable_plain_string(body, 0)
    acks, timeout_ms = _ACKS_TIMEOUT.unpack_from(body, at)
    topic_count, at = plain_count(body, at + 6)
    topics: list[tuple[Topic, Partitions]] = []
    for _ in range(topic_count):
        name, at = plain_string(body, at)
        partition_count, at = plain_count(body, at)
        partitions: Partitions = []
        for _ in range(partition_count):
            index, length = _INDEX_LENGTH.unpack_from(body, at)
            at += 8
            if length == -1:
                partitions.append((index, None))
                continue
            partitions.append((index, body[at : at + length]))
            at += length
            if length < 0 or at > len(body):
                raise MalformedMessage(f"Produce: {length} bytes of records announced")
        topics.append((name, partitions))
    check_end(at, len(body))
    return ProduceCall(transactional_id, acks, timeout_ms, topics)


def _decode_flexible(body: memoryview, version: int) -> ProduceCall:
    transactional_id, at = nullable_compact_string(body, 0)
    acks, timeout_ms = _ACKS_TIMEOUT.unpack_from(body, at)
    topic_count, at = compact_count(body, at + 6)
    topics: list[tuple[Topic, Partitions]] = []
    topic: Topic
    for _ in range(topic_count):
        if version >= TOPIC_IDS_FROM:
            topic, at = topic_id(body, at)
        else:
            topic, at = compact_string(body, at)
        partition_count, at = compact_count(body, at)
        partitions: Partitions = []
        for _ in range(partition_count):
            (index,) = INT.unpack_from(body, at)
            length, at = read_varint(body, at + 4)
            if length == 0:
                partitions.append((index, None))
            else:
                end = at + length - 1
                partitions.append((index, body[at:end]))
                at = end
            at = at + 1 if body[at] == 0 else skip_tags(body, at)
        at = at + 1 if body[at] == 0 else skip_tags(body, at)
        topics.append((topic, partitions))
    at = at + 1 if body[at] == 0 else skip_tags(body, at)
    check_end(at, len(body))
    return ProduceCall(transactional_id, acks, timeout_ms, topics)


def encode_produce_answer(
    topics: Sequence[tuple[Topic, Sequence[ProducePartitionAnswer]]],
    version: int,
    *,
    endpoints: Sequence[Endpoint] = (),
) -> bytearray:
    """The body of the answer, without size and header."""
    flexible = version >= FLEXIBLE_FROM
    out = bytearray()
    put_count(out, len(topics), flexible=flexible)
    for topic, answers in topics:
        put_topic(out, topic, flexible=flexible)
        put_count(out, len(answers), flexible=flexible)
        for answer in answers:
            if flexible and answer[5:] == _NOTHING_SPECIAL:
                out += _PARTITION_HEAD.pack(*answer[:5]) + _NOTHING_SPECIAL_BYTES
                continue
            if version >= 5:
                out += _PARTITION_HEAD.pack(*answer[:5])
            else:
                out += _PARTITION_HEAD_OLD.pack(*answer[:4])
            if version >= 8:
                _put_errors(out, answer, flexible=flexible)
            if flexible:
                _put_leader(out, answer, version)
        if flexible:
            out += b"\0"
    out += b"\0\0\0\0"
    if endpoints and version >= 10:
        put_endpoints(out, endpoints)
    elif flexible:
        out += b"\0"
    return out


def _put_errors(out: bytearray, answer: ProducePartitionAnswer, *, flexible: bool) -> None:
    if flexible and answer.error_message is None and not answer.record_errors:
        out += b"\x01\x00"
        return
    put_string = put_compact_string if flexible else put_plain_string
    put_count(out, len(answer.record_errors), flexible=flexible)
    for index, message in answer.record_errors:
        out += INT.pack(index)
        put_string(out, message)
        if flexible:
            out += b"\0"
    put_string(out, answer.error_message)


def _put_leader(out: bytearray, answer: ProducePartitionAnswer, version: int) -> None:
    if answer.current_leader is None or version < 10:
        out += b"\0"
        return
    leader_id, leader_epoch = answer.current_leader
    out += b"\x01\x00\x09" + INT.pack(leader_id) + INT.pack(leader_epoch) + b"\0"
