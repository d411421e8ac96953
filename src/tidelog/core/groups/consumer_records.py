"""The records of `__consumer_offsets` that hold a KIP-848 group.

One record for the group's epoch, one for the assignment's, and three for each member: what it said
of itself, what it should have, what it has. Layouts are Kafka's, so that Kafka's tools read them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from struct import Struct as Packing
from typing import Final

from tidelog.core.coordinator.record import CoordinatorRecord
from tidelog.core.model.ids import TopicId
from tidelog.core.wire.codec import MalformedMessage, decode, encode
from tidelog.core.wire.schema import (
    Message,
    Struct,
    array,
    bytes_,
    int8,
    int32,
    int64,
    nested,
    string,
    uuid,
)

PartitionKey = tuple[TopicId, int]
"""One partition, by its topic's id."""

_VERSION = Packing(">h")
_VALUE_VERSION: Final = 0


class ConsumerRecordType(IntEnum):
    """The first two bytes of a key."""

    GROUP_METADATA = 3
    PARTITION_METADATA = 4
    MEMBER_METADATA = 5
    TARGET_ASSIGNMENT_METADATA = 6
    TARGET_ASSIGNMENT_MEMBER = 7
    CURRENT_MEMBER_ASSIGNMENT = 8
    REGULAR_EXPRESSION = 16


CONSUMER_KEY_TYPES: Final = frozenset(int(each) for each in ConsumerRecordType)


class ConsumerGroupKey(Message, api_key=3, versions="0", flexible_from=None):
    """Keys 3, 4 and 6: a group."""

    group_id: str = string()


class ConsumerGroupPartKey(Message, api_key=5, versions="0", flexible_from=None):
    """Keys 5, 7, 8 and 16: a member of a group, or a regular expression."""

    group_id: str = string()
    part: str = string()


class ConsumerGroupMetadataValue(Message, api_key=3, versions="0", flexible_from=0):
    """The group's epoch and what its topics looked like then."""

    group_epoch: int = int32()
    metadata_hash: int = int64(tag=0)


class ClassicProtocol(Struct):
    """A protocol of a member that speaks the classic protocol."""

    name: str = string()
    metadata: bytes | memoryview = bytes_()


class ClassicMemberMetadata(Struct):
    """What such a member said when it joined."""

    session_timeout_ms: int = int32()
    supported_protocols: list[ClassicProtocol] = array(ClassicProtocol)


class ConsumerGroupMemberMetadataValue(Message, api_key=5, versions="0", flexible_from=0):
    """What a member said of itself."""

    instance_id: str | None = string(nullable="0+", default=None)
    rack_id: str | None = string(nullable="0+", default=None)
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string)
    subscribed_topic_regex: str | None = string(nullable="0+", default=None)
    rebalance_timeout_ms: int = int32(default=-1)
    server_assignor: str | None = string(nullable="0+", default=None)
    classic_member_metadata: ClassicMemberMetadata | None = nested(
        ClassicMemberMetadata, nullable="0+", default=None, tag=0
    )


class ConsumerGroupTargetAssignmentMetadataValue(Message, api_key=6, versions="0", flexible_from=0):
    """The epoch of the target assignment, and when it was computed."""

    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(tag=0, ignorable=True)


class TargetTopicPartitions(Struct):
    """Partitions of one topic."""

    topic_id: bytes = uuid()
    partitions: list[int] = array(int32)


class ConsumerGroupTargetAssignmentMemberValue(Message, api_key=7, versions="0", flexible_from=0):
    """What a member should have."""

    topic_partitions: list[TargetTopicPartitions] = array(TargetTopicPartitions)


class CurrentTopicPartitions(Struct):
    """Partitions of one topic, with the epoch at which the member got each."""

    topic_id: bytes = uuid()
    partitions: list[int] = array(int32)
    assignment_epochs: list[int] | None = array(int32, nullable="0+", default=None, tag=0)


class ConsumerGroupCurrentMemberAssignmentValue(Message, api_key=8, versions="0", flexible_from=0):
    """What a member has, and what it must give back."""

    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    assigned_partitions: list[CurrentTopicPartitions] = array(CurrentTopicPartitions)
    partitions_pending_revocation: list[CurrentTopicPartitions] = array(CurrentTopicPartitions)


class ConsumerGroupRegularExpressionValue(Message, api_key=16, versions="0", flexible_from=0):
    """The topics that a regular expression matched."""

    topics: list[str] = array(string)
    version: int = int64()
    timestamp: int = int64()


VALUE_TYPES: Final[Mapping[ConsumerRecordType, type[Message]]] = {
    ConsumerRecordType.GROUP_METADATA: ConsumerGroupMetadataValue,
    ConsumerRecordType.MEMBER_METADATA: ConsumerGroupMemberMetadataValue,
    ConsumerRecordType.TARGET_ASSIGNMENT_METADATA: ConsumerGroupTargetAssignmentMetadataValue,
    ConsumerRecordType.TARGET_ASSIGNMENT_MEMBER: ConsumerGroupTargetAssignmentMemberValue,
    ConsumerRecordType.CURRENT_MEMBER_ASSIGNMENT: ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerRecordType.REGULAR_EXPRESSION: ConsumerGroupRegularExpressionValue,
}
"""PartitionMetadata is missing: Kafka wrote it before 4.1, and nobody reads its content now."""

_OF_A_GROUP: Final = (
    ConsumerRecordType.GROUP_METADATA,
    ConsumerRecordType.PARTITION_METADATA,
    ConsumerRecordType.TARGET_ASSIGNMENT_METADATA,
)


def consumer_record(
    type_: ConsumerRecordType, group_id: str, part: str = "", value: Message | None = None
) -> CoordinatorRecord:
    """A record, or without a value the tombstone of its key.

    `part` is the member or the regular expression, where the type has one.
    """
    key = (
        encode(ConsumerGroupKey(group_id=group_id), 0)
        if type_ in _OF_A_GROUP
        else encode(ConsumerGroupPartKey(group_id=group_id, part=part), 0)
    )
    content = None
    if value is not None:
        content = _VERSION.pack(_VALUE_VERSION) + encode(value, _VALUE_VERSION)
    return CoordinatorRecord(_VERSION.pack(type_) + key, content)


def read_consumer_key(key: bytes) -> tuple[ConsumerRecordType, str, str]:
    """Type, group, and the member or the regular expression."""
    type_ = ConsumerRecordType(_VERSION.unpack_from(key)[0])
    if type_ in _OF_A_GROUP:
        return type_, decode(ConsumerGroupKey, memoryview(key), 0, _VERSION.size).group_id, ""
    parts = decode(ConsumerGroupPartKey, memoryview(key), 0, _VERSION.size)
    return type_, parts.group_id, parts.part


def read_consumer_value(type_: ConsumerRecordType, value: bytes) -> Message:
    """The content of a record that is not a tombstone."""
    version: int = _VERSION.unpack_from(value)[0] if len(value) >= _VERSION.size else -1
    if version != _VALUE_VERSION:
        raise MalformedMessage(f"a record of type {type_} has version {version}")
    return decode(VALUE_TYPES[type_], memoryview(value), version, _VERSION.size)


def by_topic(partitions: Iterable[PartitionKey]) -> dict[TopicId, list[int]]:
    """Partitions in order, by topic in order of the ids."""
    grouped: dict[TopicId, list[int]] = {}
    for topic_id, index in sorted(partitions):
        grouped.setdefault(topic_id, []).append(index)
    return grouped


def target_value(partitions: Iterable[PartitionKey]) -> ConsumerGroupTargetAssignmentMemberValue:
    return ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[
            TargetTopicPartitions(topic_id=topic_id, partitions=indexes)
            for topic_id, indexes in by_topic(partitions).items()
        ]
    )


def current_partitions(epochs: Mapping[PartitionKey, int]) -> list[CurrentTopicPartitions]:
    return [
        CurrentTopicPartitions(
            topic_id=topic_id,
            partitions=indexes,
            assignment_epochs=[epochs[topic_id, index] for index in indexes],
        )
        for topic_id, indexes in by_topic(epochs).items()
    ]


def partition_epochs(
    topics: Iterable[CurrentTopicPartitions], *, member_epoch: int
) -> dict[PartitionKey, int]:
    """Records of brokers before 4.3 have no epochs of partitions: the member's counts."""
    epochs: dict[PartitionKey, int] = {}
    for topic in topics:
        known = topic.assignment_epochs
        if known is None or len(known) != len(topic.partitions):
            known = [member_epoch] * len(topic.partitions)
        for index, since_epoch in zip(topic.partitions, known, strict=True):
            epochs[TopicId(bytes(topic.topic_id)), index] = since_epoch
    return epochs
