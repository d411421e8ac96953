"""Subscriptions and assignments as consumers write them into a classic group.

The first version of both formats, which begins every later one, so that any Kafka consumer reads
what we write and we read what it writes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final, TypeVar

from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.codec import MalformedMessage, decode, encode
from tidelog.core.wire.schema import Message, Struct, array, bytes_, int32, string

CONSUMER_PROTOCOL_TYPE: Final = "consumer"
_VERSION: Final = struct.Struct(">h")
M = TypeVar("M", bound=Message)


class SubscriptionMetadata(Message, versions="0", flexible_from=None):
    """ConsumerProtocolSubscription, version 0."""

    topics: list[str] = array(string)
    user_data: bytes | memoryview | None = bytes_(nullable="0+", default=None)


class AssignedTopic(Struct):
    """The partitions of one topic."""

    topic: str = string()
    partitions: list[int] = array(int32)


class AssignmentMetadata(Message, versions="0", flexible_from=None):
    """ConsumerProtocolAssignment, version 0."""

    assigned_partitions: list[AssignedTopic] = array(AssignedTopic)
    user_data: bytes | memoryview | None = bytes_(nullable="0+", default=None)


def write_subscription(topics: Iterable[str]) -> bytes:
    return _VERSION.pack(0) + encode(SubscriptionMetadata(topics=sorted(topics)), 0)


def read_subscription(data: bytes | memoryview) -> tuple[str, ...]:
    """The topics; MalformedMessage if these bytes are no subscription."""
    return tuple(_decode(SubscriptionMetadata, data).topics)


def write_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    topics: dict[str, AssignedTopic] = {}
    for each in sorted(partitions):
        topic = topics.setdefault(each.topic, AssignedTopic(topic=each.topic))
        topic.partitions.append(each.index)
    return _VERSION.pack(0) + encode(
        AssignmentMetadata(assigned_partitions=list(topics.values())), 0
    )


def read_assignment(data: bytes | memoryview) -> list[TopicPartition]:
    """No bytes: no partitions. MalformedMessage if they are no assignment."""
    if not data:
        return []
    return [
        TopicPartition(topic.topic, index)
        for topic in _decode(AssignmentMetadata, data).assigned_partitions
        for index in topic.partitions
    ]


def _decode(kind: type[M], data: bytes | memoryview) -> M:
    if len(data) < _VERSION.size:
        raise MalformedMessage(f"{kind.__name__} without a version")
    return decode(kind, memoryview(data), 0, _VERSION.size, rest_allowed=True)
