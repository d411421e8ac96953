"""Brokers that are fenced, let in, on their way out or forgotten, and what their partitions do.

A fenced broker leads nothing and is in no in-sync set. The records of its partitions come with the
record about the broker in one decision: nobody ever sees a fenced broker lead.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tidelog.core.controller.events import BrokerFenced, BrokerLeaves, BrokerUnfenced
from tidelog.core.controller.partition_changes import PartitionChanges, Settings
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.metadata.partitions_by_broker import PartitionKey
from tidelog.core.metadata.records import (
    FENCED,
    UNFENCED,
    BrokerRegistrationChangeRecord,
    UnregisterBrokerRecord,
)


def decide_fencing(
    image: ClusterImage, settings: Settings, *, broker_ids: Sequence[int], reason: str
) -> PartitionChanges:
    """Nothing for a broker that is fenced already. Several of them are one decision:

    1. Broker 1 leads, 2 and 3 are in sync. All three lose their power.
    2. Their sessions end together. Fenced one by one, 2 would be elected, then 3.
    3. 3 alone would be eligible, and the last known leader of what it never led; 1 and 2, which
       have everything as well, would come back for nothing.
    """
    brokers = [image.brokers[each] for each in broker_ids if not image.brokers[each].is_fenced]
    leaving = [broker.broker_id for broker in brokers]
    changes = PartitionChanges(image, settings, leaving=leaving)
    changes.without_leaving(sorted({key for each in leaving for key in image.index.in_sync(each)}))
    changes.records += [
        BrokerRegistrationChangeRecord(
            broker_id=broker.broker_id, broker_epoch=broker.broker_epoch, fenced=FENCED
        )
        for broker in brokers
    ]
    changes.events[:0] = [
        BrokerFenced(broker_id=broker.broker_id, broker_epoch=broker.broker_epoch, reason=reason)
        for broker in brokers
    ]
    return changes


def decide_unfencing(
    image: ClusterImage, settings: Settings, *, broker_id: int
) -> PartitionChanges:
    """Let a broker in that has caught up, and see whether it can lead what nobody leads."""
    broker = image.brokers[broker_id]
    changes = PartitionChanges(image, settings, arriving=broker_id)
    changes.records.append(
        BrokerRegistrationChangeRecord(
            broker_id=broker_id, broker_epoch=broker.broker_epoch, fenced=UNFENCED
        )
    )
    changes.events.append(BrokerUnfenced(broker_id=broker_id, broker_epoch=broker.broker_epoch))
    changes.elect(image.index.leaderless())
    return changes


def decide_leaving(image: ClusterImage, settings: Settings, *, broker_id: int) -> PartitionChanges:
    """A broker wants to stop: move its leaderships while it still serves."""
    broker = image.brokers[broker_id]
    changes = PartitionChanges(image, settings, leaving=(broker_id,))
    if not broker.in_controlled_shutdown:
        changes.records.append(
            BrokerRegistrationChangeRecord(
                broker_id=broker_id, broker_epoch=broker.broker_epoch, in_controlled_shutdown=1
            )
        )
        changes.events.append(BrokerLeaves(broker_id=broker_id, broker_epoch=broker.broker_epoch))
    changes.without_leaving(image.index.in_sync(broker_id))
    return changes


def decide_forgetting(
    image: ClusterImage, settings: Settings, *, broker_id: int
) -> PartitionChanges:
    """The broker leaves the cluster and is eligible nowhere; its replicas stay assigned to it.

    Stricter than Kafka, which leaves it among the eligible replicas; but nobody can be elected
    whom nobody knows, and when it comes back it is trusted no more than any newcomer.
    """
    broker = image.brokers[broker_id]
    changes = PartitionChanges(image, settings, leaving=(broker_id,))
    changes.without_trust(broker_id, image.index.in_sync(broker_id))
    changes.without_trust(broker_id, image.index.eligible(broker_id))
    changes.records.append(
        UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=broker.broker_epoch)
    )
    return changes


def decide_directories_lost(
    image: ClusterImage, settings: Settings, *, broker_id: int, lost: Collection[bytes]
) -> PartitionChanges:
    """Log directories failed: what is in them leaves its in-sync set, the rest goes on."""
    broker = image.brokers[broker_id]
    changes = PartitionChanges(image, settings, leaving=(broker_id,))
    newly_lost = [each for each in broker.log_directories if each in lost]
    if not newly_lost:
        return changes
    changes.without_leaving(
        [
            key
            for key in image.index.in_sync(broker_id)
            if _directory(image, key, broker_id) in newly_lost
        ]
    )
    remaining = [each for each in broker.log_directories if each not in newly_lost]
    if remaining:
        # In the record an empty list means "as before"; a broker without any is about to end.
        changes.records.append(
            BrokerRegistrationChangeRecord(
                broker_id=broker_id, broker_epoch=broker.broker_epoch, log_dirs=remaining
            )
        )
    return changes


def _directory(image: ClusterImage, key: PartitionKey, broker_id: int) -> bytes:
    return image.topics_by_id[key.topic_id].partitions[key.partition].directory(broker_id)
