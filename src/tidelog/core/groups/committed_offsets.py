"""The committed offsets of one coordinator partition: by group, topic and partition.

Only records change them. Offsets of an open transaction wait beside the others, by producer, until
a marker in the log decides about them; who needs stable offsets is refused meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tidelog.core.coordinator.record import CoordinatorRecord
from tidelog.core.groups.offset_records import (
    CommittedOffset,
    OffsetKey,
    offset_tombstone,
    read_offset_key,
    read_offset_value,
)
from tidelog.core.model.ids import ZERO_TOPIC_ID

TopicOffsets = dict[str, dict[int, CommittedOffset]]


class CommittedOffsets:
    """State: what counts, and what counts when its transaction commits. Invariants: check."""

    def __init__(self) -> None:
        self._by_group: dict[str, TopicOffsets] = {}
        self._pending: dict[int, dict[OffsetKey, CommittedOffset]] = {}
        """By producer id."""

    # The log

    def apply(self, record: CoordinatorRecord, *, offset: int) -> OffsetKey:
        """Take a record over; a tombstone also ends what transactions hold for its key."""
        key = read_offset_key(record.key)
        if record.value is None:
            self._remove(key)
            for pending in self._pending.values():
                pending.pop(key, None)
            self._drop_empty_transactions()
        else:
            self._put(key, read_offset_value(record.value, record_offset=offset))
        return key

    def apply_transactional(
        self, record: CoordinatorRecord, *, producer_id: int, offset: int
    ) -> OffsetKey:
        """It counts when its transaction commits."""
        key = read_offset_key(record.key)
        if record.value is not None:
            committed = read_offset_value(record.value, record_offset=offset)
            self._pending.setdefault(producer_id, {})[key] = committed
        return key

    def apply_marker(self, *, producer_id: int, is_commit: bool) -> None:
        """The end of a transaction. A plain commit that came after its offsets is newer."""
        pending = self._pending.pop(producer_id, {})
        if is_commit:
            for key, committed in pending.items():
                present = self.get(key)
                if present is None or present.record_offset < committed.record_offset:
                    self._put(key, committed)

    # Reading

    def get(self, key: OffsetKey) -> CommittedOffset | None:
        return self._by_group.get(key.group_id, {}).get(key.topic, {}).get(key.partition)

    def of_group(self, group_id: str) -> TopicOffsets:
        """To read from."""
        return self._by_group.get(group_id, {})

    def is_unstable(self, key: OffsetKey) -> bool:
        """An open transaction may change it."""
        return any(key in pending for pending in self._pending.values())

    def has_unstable(self, group_id: str) -> bool:
        return any(
            key.group_id == group_id for pending in self._pending.values() for key in pending
        )

    def __contains__(self, group_id: str) -> bool:
        return group_id in self._by_group or self.has_unstable(group_id)

    # Decisions

    def delete_group(self, group_id: str) -> list[CoordinatorRecord]:
        """Tombstones for all that a group has, pending ones included."""
        keys = dict.fromkeys(self._keys_of_group(group_id))
        for pending in self._pending.values():
            keys.update(dict.fromkeys(key for key in pending if key.group_id == group_id))
        return [offset_tombstone(key) for key in keys]

    def delete_topic(self, topic: str, topic_id: bytes) -> list[CoordinatorRecord]:
        """Tombstones for every group's offsets of a deleted topic.

        An offset that was committed with another topic id belongs to a topic that got the
        name meanwhile.
        """
        found = {
            key: None
            for group_id, topics in self._by_group.items()
            for key in _topic_keys(group_id, topic, topics.get(topic, {}), topic_id)
        }
        for pending in self._pending.values():
            for key, committed in pending.items():
                if key.topic == topic and committed.topic_id in (ZERO_TOPIC_ID, topic_id):
                    found[key] = None
        return [offset_tombstone(key) for key in found]

    def expired(
        self, group_id: str, is_expired: Callable[[str, CommittedOffset], bool]
    ) -> list[CoordinatorRecord]:
        """Tombstones for what the rule calls expired; what a transaction may change stays."""
        return [
            offset_tombstone(key)
            for key, committed in self._items_of_group(group_id)
            if is_expired(key.topic, committed) and not self.is_unstable(key)
        ]

    def groups(self) -> list[str]:
        return list(self._by_group)

    def count(self, group_id: str) -> int:
        return sum(map(len, self.of_group(group_id).values()))

    def check(self) -> None:
        for topics in self._by_group.values():
            assert topics and all(topics.values()), "an empty level stays behind"
        assert all(self._pending.values()), "a transaction without offsets"

    # Inside

    def _put(self, key: OffsetKey, committed: CommittedOffset) -> None:
        topics = self._by_group.setdefault(key.group_id, {})
        topics.setdefault(key.topic, {})[key.partition] = committed

    def _remove(self, key: OffsetKey) -> None:
        topics = self._by_group.get(key.group_id)
        partitions = None if topics is None else topics.get(key.topic)
        if topics is None or partitions is None:
            return
        partitions.pop(key.partition, None)
        if not partitions:
            del topics[key.topic]
        if not topics:
            del self._by_group[key.group_id]

    def _drop_empty_transactions(self) -> None:
        self._pending = {producer: each for producer, each in self._pending.items() if each}

    def _keys_of_group(self, group_id: str) -> Iterator[OffsetKey]:
        return (key for key, _ in self._items_of_group(group_id))

    def _items_of_group(self, group_id: str) -> Iterator[tuple[OffsetKey, CommittedOffset]]:
        for topic, partitions in self.of_group(group_id).items():
            for partition, committed in partitions.items():
                yield OffsetKey(group_id, topic, partition), committed


def _topic_keys(
    group_id: str, topic: str, partitions: dict[int, CommittedOffset], topic_id: bytes
) -> Iterator[OffsetKey]:
    for partition, committed in partitions.items():
        if committed.topic_id in (ZERO_TOPIC_ID, topic_id):
            yield OffsetKey(group_id, topic, partition)
