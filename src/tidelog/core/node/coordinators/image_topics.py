"""The cluster's topics, as groups ask for them."""

from __future__ import annotations

from collections.abc import Iterable

from tidelog.core.metadata.changes import Change, PartitionCreated, TopicCreated, TopicDeleted
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.model.ids import TopicId


class ImageTopics:
    """Reads the image, and counts how often its topics changed."""

    def __init__(self, image: ClusterImage) -> None:
        self._image = image
        self.version = 0
        self.created_version = 0

    def on_change(self, change: Change) -> None:
        if isinstance(change, TopicCreated | PartitionCreated | TopicDeleted):
            self.version += 1
        if isinstance(change, TopicCreated):
            self.created_version += 1

    def names(self) -> Iterable[str]:
        return self._image.topics

    def topic_id(self, name: str) -> TopicId | None:
        topic = self._image.topics.get(name)
        return None if topic is None else topic.topic_id

    def partitions_count(self, name: str) -> int:
        return len(self._image.topics[name].partitions)

    def name(self, topic_id: TopicId) -> str | None:
        topic = self._image.topics_by_id.get(topic_id)
        return None if topic is None else topic.name
