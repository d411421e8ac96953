"""Directories: which log directory of a broker holds a replica (KIP-858).

A broker with one directory need not say; with several it tells where it has put each replica, so
that the controller knows whose leaderships end with a directory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tidelog.core.controller.partition_changes import PartitionChanges, Settings
from tidelog.core.metadata.cluster import PartitionState
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.metadata.partitions_by_broker import PartitionKey
from tidelog.core.metadata.records import PartitionChangeRecord
from tidelog.core.model.errors import ErrorCode


class Placed(NamedTuple):
    """A replica of the broker that reports it, and the directory in which it lies."""

    key: PartitionKey
    directory: bytes


def decide_directories(
    image: ClusterImage, settings: Settings, *, broker_id: int, reported: Sequence[Placed]
) -> tuple[PartitionChanges, list[ErrorCode]]:
    """Record what was reported; a replica in a directory that is lost leaves its in-sync set."""
    broker = image.brokers[broker_id]
    changes = PartitionChanges(image, settings, leaving=(broker_id,))
    errors = []
    for placed in reported:
        error = _refuse(image, placed.key, broker_id)
        errors.append(error)
        if error is not ErrorCode.NONE:
            continue
        state = changes.state(placed.key)
        if state.directory(broker_id) != placed.directory:
            changes.records.append(
                PartitionChangeRecord(
                    partition_id=placed.key.partition,
                    topic_id=placed.key.topic_id,
                    directories=with_directory(state, broker_id, placed.directory),
                )
            )
        if not broker.has_working(placed.directory) and broker_id in state.isr:
            changes.without_leaving([placed.key])
    return changes, errors


def with_directory(state: PartitionState, broker_id: int, directory: bytes) -> list[bytes]:
    """The directories of all replicas, with another one for this broker's."""
    return [
        directory if replica == broker_id else old
        for replica, old in zip(state.replicas, state.directories, strict=True)
    ]


def _refuse(image: ClusterImage, key: PartitionKey, broker_id: int) -> ErrorCode:
    topic = image.topics_by_id.get(key.topic_id)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if not 0 <= key.partition < len(topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if broker_id not in topic.partitions[key.partition].replicas:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.NONE
