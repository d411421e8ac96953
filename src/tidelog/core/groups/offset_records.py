"""OffsetCommit: the record of `__consumer_offsets` that holds one committed offset of a group.

Layouts and versions are Kafka's, so that Kafka's tools read them. A tombstone deletes the offset.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct as Packing
from typing import Final, NamedTuple

from tidelog.core.coordinator.record import CoordinatorRecord
from tidelog.core.model.ids import ZERO_TOPIC_ID
from tidelog.core.wire.codec import MalformedMessage, decode, encode
from tidelog.core.wire.schema import Message, int32, int64, string, uuid

OFFSET_KEY_TYPES: Final = (0, 1)
"""The first number of a key says what kind of record it is; Kafka wrote 0 long ago."""
_KEY_TYPE: Final = 1
_VALUE_VERSION: Final = 4
_VALUE_VERSION_WITH_EXPIRY: Final = 1
"""The only one that can hold a time of expiry of its own."""
_ABSENT: Final = -1
_PREFIX = Packing(">h")


class OffsetCommitKey(Message, api_key=1, versions="0-1", flexible_from=None):
    """Whose offset."""

    group: str = string()
    topic: str = string()
    partition: int = int32()


class OffsetCommitValue(Message, api_key=1, versions="0-4", flexible_from=4):
    """The offset and what was committed with it."""

    offset: int = int64()
    leader_epoch: int = int32("3+", default=_ABSENT, ignorable=True)
    metadata: str = string()
    commit_timestamp: int = int64()
    expire_timestamp: int = int64("1", default=_ABSENT, ignorable=True)
    topic_id: bytes = uuid("4+", tag=0, ignorable=True)


class OffsetKey(NamedTuple):
    """One partition as one group sees it."""

    group_id: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedOffset:
    """What a group committed for a partition; times are of the wall clock."""

    offset: int
    leader_epoch: int | None = None
    metadata: str = ""
    commit_wall_ms: int
    expire_wall_ms: int | None = None
    """Only with the retention that clients of long ago may ask for."""
    topic_id: bytes = ZERO_TOPIC_ID
    """Zero: the client did not know it."""
    record_offset: int = _ABSENT
    """Where its record is in the log; not part of the record."""


def offset_record(key: OffsetKey, committed: CommittedOffset) -> CoordinatorRecord:
    expires = committed.expire_wall_ms is not None
    version = _VALUE_VERSION_WITH_EXPIRY if expires else _VALUE_VERSION
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=_ABSENT if committed.leader_epoch is None else committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_wall_ms,
        expire_timestamp=_ABSENT if committed.expire_wall_ms is None else committed.expire_wall_ms,
        topic_id=committed.topic_id,
    )
    return CoordinatorRecord(_key(key), _PREFIX.pack(version) + encode(value, version))


def offset_tombstone(key: OffsetKey) -> CoordinatorRecord:
    return CoordinatorRecord(_key(key), None)


def read_offset_key(key: bytes) -> OffsetKey:
    """Raises MalformedMessage if it is no key of an offset."""
    key_type = key_type_of(key)
    if key_type not in OFFSET_KEY_TYPES:
        raise MalformedMessage(f"a key of type {key_type} is not that of an offset")
    found = decode(OffsetCommitKey, memoryview(key), _KEY_TYPE, _PREFIX.size)
    return OffsetKey(found.group, found.topic, found.partition)


def read_offset_value(value: bytes, *, record_offset: int) -> CommittedOffset:
    version = key_type_of(value)
    if version not in OffsetCommitValue.versions:
        raise MalformedMessage(f"a committed offset has version {version}")
    found = decode(OffsetCommitValue, memoryview(value), version, _PREFIX.size)
    return CommittedOffset(
        offset=found.offset,
        leader_epoch=None if found.leader_epoch == _ABSENT else found.leader_epoch,
        metadata=found.metadata,
        commit_wall_ms=found.commit_timestamp,
        expire_wall_ms=None if found.expire_timestamp == _ABSENT else found.expire_timestamp,
        topic_id=bytes(found.topic_id),
        record_offset=record_offset,
    )


def key_type_of(content: bytes) -> int:
    """The number that a key or a value begins with."""
    if len(content) < _PREFIX.size:
        raise MalformedMessage("a record without a version")
    number: int = _PREFIX.unpack_from(content)[0]
    return number


def _key(key: OffsetKey) -> bytes:
    group_id, topic, partition = key
    message = OffsetCommitKey(group=group_id, topic=topic, partition=partition)
    return _PREFIX.pack(_KEY_TYPE) + encode(message, _KEY_TYPE)
