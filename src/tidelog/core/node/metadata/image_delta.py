"""What is different between two images, as the changes that lead from one to the other.

A node that takes a snapshot did not see the records that led there. Those that must follow the
metadata hear of the outcome alone: what is gone, what is new, what is otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidelog.core.metadata.changes import (
    BrokerRegistered,
    BrokerUnregistered,
    Change,
    ConfigChanged,
    FeatureLevelChanged,
    TopicCreated,
    TopicDeleted,
)
from tidelog.core.metadata.image import ClusterImage, partition_changed


def changes_between(before: ClusterImage, after: ClusterImage) -> Iterator[Change]:
    """Deletions first: a topic's name may have passed to another topic."""
    yield from _topics_gone(before, after)
    yield from _features(before, after)
    yield from _brokers(before, after)
    yield from _configs(before, after)
    yield from _topics(before, after)


def _topics_gone(before: ClusterImage, after: ClusterImage) -> Iterator[Change]:
    for topic_id, topic in before.topics_by_id.items():
        if topic_id not in after.topics_by_id:
            yield TopicDeleted(
                topic=topic.name, topic_id=topic_id, partitions_count=len(topic.partitions)
            )


def _features(before: ClusterImage, after: ClusterImage) -> Iterator[Change]:
    for name in sorted({*before.features, *after.features}):
        level = after.features.get(name, 0)
        if level != before.features.get(name, 0):
            yield FeatureLevelChanged(name=name, level=level)


def _brokers(before: ClusterImage, after: ClusterImage) -> Iterator[Change]:
    for broker_id, broker in sorted(before.brokers.items()):
        if broker_id not in after.brokers:
            yield BrokerUnregistered(broker_id=broker_id, broker_epoch=broker.broker_epoch)
    for broker_id, broker in sorted(after.brokers.items()):
        if before.brokers.get(broker_id) != broker:
            yield BrokerRegistered(
                broker_id=broker_id,
                broker_epoch=broker.broker_epoch,
                rack=broker.rack,
                is_fenced=broker.is_fenced,
                endpoints=broker.endpoints,
            )


def _configs(before: ClusterImage, after: ClusterImage) -> Iterator[Change]:
    for resource in sorted({*before.configs, *after.configs}):
        old, new = before.configs.get(resource, {}), after.configs.get(resource, {})
        for name in sorted({*old, *new}):
            if old.get(name) != new.get(name):
                yield ConfigChanged(
                    resource_type=resource.type,
                    resource_name=resource.name,
                    name=name,
                    value=new.get(name),
                )


def _topics(before: ClusterImage, after: ClusterImage) -> Iterator[Change]:
    for name in sorted(after.topics):
        topic = after.topics[name]
        known = before.topics_by_id.get(topic.topic_id)
        if known is None:
            yield TopicCreated(topic=name, topic_id=topic.topic_id)
        for index, state in enumerate(topic.partitions):
            seen = known is not None and index < len(known.partitions)
            if known is None or not seen or known.partitions[index] != state:
                yield partition_changed(topic, index)
