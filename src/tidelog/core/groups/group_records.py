"""GroupMetadata: the record of `__consumer_offsets` that holds a classic group.

It is written when a generation has its assignment, when a group becomes empty, when a static
member comes back under a new id, and when a group begins. A tombstone ends it. Layouts and versions
are Kafka's, so that Kafka's tools read them.
"""

from __future__ import annotations

from struct import Struct as Packing
from typing import Final

from tidelog.core.coordinator.record import CoordinatorRecord
from tidelog.core.wire.codec import MalformedMessage, decode, encode
from tidelog.core.wire.schema import Message, Struct, array, bytes_, int32, int64, string

GROUP_METADATA_KEY_VERSION: Final = 2
"""Key versions say what kind of record it is: 0 and 1 are offsets."""
NO_STATE_TIMESTAMP: Final = -1
NO_REBALANCE_TIMEOUT: Final = -1

_VALUE_VERSION: Final = 3
"""Kafka writes 3 although it reads 4, so that a release before it can read the log."""
_VERSION = Packing(">h")


class GroupMetadataKey(Message, api_key=2, versions="2", flexible_from=None):
    """Which group."""

    group: str = string()


class GroupMetadataMember(Struct):
    """One member with its subscription under the chosen protocol and its assignment."""

    member_id: str = string()
    group_instance_id: str | None = string("3+", nullable="3+", default=None, ignorable=True)
    client_id: str = string()
    client_host: str = string()
    rebalance_timeout: int = int32("1+", default=NO_REBALANCE_TIMEOUT, ignorable=True)
    session_timeout: int = int32()
    subscription: bytes | memoryview = bytes_()
    assignment: bytes | memoryview = bytes_()


class GroupMetadataValue(Message, api_key=2, versions="0-4", flexible_from=4):
    """One generation of a group."""

    protocol_type: str = string()
    generation: int = int32()
    protocol: str | None = string(nullable="0+", default=None)
    leader: str | None = string(nullable="0+", default=None)
    current_state_timestamp: int = int64("2+", default=NO_STATE_TIMESTAMP, ignorable=True)
    members: list[GroupMetadataMember] = array(GroupMetadataMember)


def group_record(group_id: str, value: GroupMetadataValue) -> CoordinatorRecord:
    return CoordinatorRecord(
        _group_key(group_id), _VERSION.pack(_VALUE_VERSION) + encode(value, _VALUE_VERSION)
    )


def group_tombstone(group_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(_group_key(group_id), None)


def read_group_key(key: bytes) -> str:
    """The group of a key of version 2."""
    version = _version(key)
    if version != GROUP_METADATA_KEY_VERSION:
        raise MalformedMessage(f"key version {version} is not that of a group")
    return decode(GroupMetadataKey, memoryview(key), version, _VERSION.size).group


def read_group_value(value: bytes) -> GroupMetadataValue:
    version = _version(value)
    if version not in GroupMetadataValue.versions:
        raise MalformedMessage(f"a group's record has version {version}")
    return decode(GroupMetadataValue, memoryview(value), version, _VERSION.size)


def _group_key(group_id: str) -> bytes:
    version = GROUP_METADATA_KEY_VERSION
    return _VERSION.pack(version) + encode(GroupMetadataKey(group=group_id), version)


def _version(content: bytes) -> int:
    if len(content) < _VERSION.size:
        raise MalformedMessage("a record of a group has no version")
    version: int = _VERSION.unpack_from(content)[0]
    return version
