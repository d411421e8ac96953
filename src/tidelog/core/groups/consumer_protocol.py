"""What consumers write into a classic group's metadata and assignments, for each other to read.

The coordinator reads subscriptions to know the topics of a group. A group that speaks both
protocols needs more: it reads what a classic member owns, and writes its assignment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from struct import Struct as Packing
from typing import Final

from tidelog.core.model.exceptions import TidelogError
from tidelog.core.wire.schema import Message, array, bytes_, string

CONSUMER_PROTOCOL_TYPE: Final = "consumer"

NEWEST_VERSION: Final = 3
"""Of both formats. Whoever writes a later one writes what this one has first."""
_FIRST_VERSION_WITH_OWNED: Final = 1
_FIRST_VERSION_WITH_GENERATION: Final = 2
_FIRST_VERSION_WITH_RACK: Final = 3

_INT16, _INT32 = Packing(">h"), Packing(">i")
_NULL: Final = b"\xff\xff\xff\xff"

TopicPartitions = tuple[tuple[str, tuple[int, ...]], ...]
"""Partitions of topics by name, in the order in which they were written."""


class MalformedProtocol(TidelogError):
    """Bytes that are no subscription or assignment."""

    def __init__(self, what: str, *, ends_early: bool) -> None:
        super().__init__(what)
        self.ends_early = ends_early
        """Kafka has an answer to bytes that end early or have no version, and none to others."""


class ConsumerProtocolSubscription(Message, versions="0", flexible_from=None):
    """A subscription in its oldest version, for those who write one."""

    topics: list[str] = array(string)
    user_data: bytes | memoryview | None = bytes_(nullable="0+", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedSubscription:
    """What a member wants, and what it has."""

    topics: frozenset[str]
    owned: TopicPartitions = ()
    rack_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedAssignment:
    """What a member gets. User data is a custom assignor's own."""

    partitions: TopicPartitions
    has_user_data: bool = False


class _Reader:
    """Reads Kafka's old formats. What follows the known fields is left alone."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def number(self, packing: Packing) -> int:
        if len(self._content) - self._at < packing.size:
            raise MalformedProtocol("the bytes end early", ends_early=True)
        value: int = packing.unpack_from(self._content, self._at)[0]
        self._at += packing.size
        return value

    def version(self) -> int:
        version = self.number(_INT16)
        if version < 0:
            raise MalformedProtocol(f"version {version}", ends_early=True)
        return min(version, NEWEST_VERSION)

    def count(self) -> int:
        count = self.number(_INT32)
        if not 0 <= count <= len(self._content) - self._at:
            raise MalformedProtocol(f"an array of {count}", ends_early=False)
        return count

    def content(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._content):
            raise MalformedProtocol(f"{size} bytes are not there", ends_early=False)
        content, self._at = self._content[self._at : end], end
        return content

    def nullable_string(self) -> str | None:
        size = self.number(_INT16)
        return None if size < 0 else self.content(size).decode("utf-8", "replace")

    def string(self) -> str:
        text = self.nullable_string()
        if text is None:
            raise MalformedProtocol("null for a string", ends_early=False)
        return text

    def user_data(self) -> bytes:
        size = self.number(_INT32)
        return b"" if size < 0 else self.content(size)

    def partitions(self) -> TopicPartitions:
        return tuple(
            (self.string(), tuple(self.number(_INT32) for _ in range(self.count())))
            for _ in range(self.count())
        )


def read_subscription(metadata: bytes) -> EmbeddedSubscription:
    """What a member said when it joined; MalformedProtocol if these bytes do not say it."""
    reader = _Reader(metadata)
    version = reader.version()
    topics = frozenset([reader.string() for _ in range(reader.count())])
    reader.user_data()
    owned: TopicPartitions = ()
    rack_id = None
    if version >= _FIRST_VERSION_WITH_OWNED:
        owned = reader.partitions()
    if version >= _FIRST_VERSION_WITH_GENERATION:
        reader.number(_INT32)
    if version >= _FIRST_VERSION_WITH_RACK:
        rack_id = reader.nullable_string() or None
    return EmbeddedSubscription(topics=topics, owned=owned, rack_id=rack_id)


def read_subscribed_topics(metadata: bytes) -> frozenset[str] | None:
    """The topics of one member; None if these bytes are no subscription.

    No more than the first version of the format is read, which begins every later one.
    """
    try:
        reader = _Reader(metadata)
        reader.number(_INT16)
        topics = frozenset([reader.string() for _ in range(reader.count())])
        reader.user_data()
    except MalformedProtocol:
        return None
    return topics


def read_protocol_version(metadata: bytes) -> int:
    """In which version a member wrote; it gets its assignment in the same."""
    return _Reader(metadata).version()


def read_assignment(content: bytes) -> EmbeddedAssignment:
    """What a leader gave to a member."""
    reader = _Reader(content)
    reader.version()
    return EmbeddedAssignment(
        partitions=reader.partitions(), has_user_data=bool(reader.user_data())
    )


def write_assignment(partitions: Mapping[str, Iterable[int]], *, version: int) -> bytes:
    """An assignment without user data. All versions have the same layout."""
    parts = [_INT16.pack(version), _INT32.pack(len(partitions))]
    for topic, indexes in partitions.items():
        name, numbers = topic.encode(), list(indexes)
        parts += [_INT16.pack(len(name)), name, _INT32.pack(len(numbers))]
        parts += [_INT32.pack(index) for index in numbers]
    return b"".join([*parts, _NULL])
