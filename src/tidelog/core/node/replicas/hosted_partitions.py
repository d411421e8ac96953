"""The partitions that this broker has: found by name or by id, kept as metadata says."""

from __future__ import annotations

from collections.abc import Iterator

from tidelog.core.model.ids import TopicId
from tidelog.core.replication.partition import Partition
from tidelog.core.wire.fast_fields import Topic


class HostedPartitions:
    """Two indexes over the same partitions. Topics of this broker only."""

    def __init__(self) -> None:
        self._by_topic: dict[Topic, dict[int, Partition]] = {}
        self.touched: list[Partition] = []

    def __iter__(self) -> Iterator[Partition]:
        for topic, partitions in self._by_topic.items():
            if isinstance(topic, str):
                yield from partitions.values()

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def find(self, topic: Topic, index: int) -> Partition | None:
        """By name or by id: a str is a name, bytes are an id."""
        partitions = self._by_topic.get(topic)
        return None if partitions is None else partitions.get(index)

    def knows_topic(self, topic: Topic) -> bool:
        return topic in self._by_topic

    def of_topic(self, topic: Topic) -> list[Partition]:
        return list(self._by_topic.get(topic, {}).values())

    def add(self, partition: Partition) -> None:
        name, index = partition.topic_partition.topic, partition.topic_partition.index
        by_index = self._by_topic.setdefault(name, {})
        assert index not in by_index, f"{partition.topic_partition} is there already"
        by_index[index] = partition
        self._by_topic[partition.topic_id] = by_index

    def remove_topic(self, topic: str, topic_id: TopicId) -> list[Partition]:
        """Forget a topic; its partitions are the caller's to end."""
        removed = self._by_topic.pop(topic, {})
        self._by_topic.pop(topic_id, None)
        return list(removed.values())

    def remove(self, partition: Partition) -> None:
        """Forget one partition of a topic; it is the caller's to end."""
        by_index = self._by_topic[partition.topic_partition.topic]
        del by_index[partition.topic_partition.index]
        if not by_index:
            del self._by_topic[partition.topic_partition.topic]
            del self._by_topic[partition.topic_id]

    def touch(self, partition: Partition) -> None:
        """Something about it changed: settle it at the end of the tick."""
        if not partition.is_touched:
            partition.is_touched = True
            self.touched.append(partition)

    def take_touched(self) -> list[Partition]:
        touched, self.touched = self.touched, []
        for partition in touched:
            partition.is_touched = False
        return touched
