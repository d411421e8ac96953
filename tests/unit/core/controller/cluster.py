"""Clusters to decide about: brokers with directories of their own, and one topic "t"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.unit.core.metadata import given
from tidelog.core.controller.partition_changes import PartitionChanges
from tidelog.core.metadata.cluster import PartitionState, partition_record
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.metadata.partitions_by_broker import PartitionKey
from tidelog.core.metadata.records import MetadataRecord, RegisterBrokerRecord, TopicRecord

ID = given.topic_id(1)
KEY = PartitionKey(ID, 0)


@dataclass(slots=True, kw_only=True)
class Choices:
    """Settings for elections, the same for every topic."""

    min_insync_replicas_count: int = 2
    unclean: bool = False
    keeps_eligible: bool = True

    def min_insync_replicas(self, topic: str) -> int:
        return self.min_insync_replicas_count

    def allows_unclean(self, topic: str) -> bool:
        return self.unclean


CAREFUL = Choices()


def directory(broker_id: int) -> bytes:
    return (1_000 + broker_id).to_bytes(16, "big")


def broker(broker_id: int, *, fenced: bool = False, leaving: bool = False) -> RegisterBrokerRecord:
    record = given.broker(broker_id, fenced=fenced, leaving=leaving)
    record.log_dirs = [directory(broker_id)]
    return record


def state(
    *replicas: int,
    isr: Sequence[int] | None = None,
    leader: int | None = 0,
    eligible: Sequence[int] = (),
    last_known: Sequence[int] = (),
    recovering: bool = False,
) -> PartitionState:
    """Led by the first in sync unless somebody is named."""
    made = given.state(*replicas, isr=isr)
    return replace(
        made,
        leader=made.leader if leader == 0 else leader,
        directories=tuple(map(directory, replicas)),
        eligible_leader_replicas=tuple(eligible),
        last_known_leaders=tuple(last_known),
        leader_is_recovering=recovering,
    )


def cluster(
    *states: PartitionState, fenced: Sequence[int] = (), leaving: Sequence[int] = ()
) -> ClusterImage:
    """Three brokers and topic "t" with these partitions."""
    records: list[MetadataRecord] = [
        broker(each, fenced=each in fenced, leaving=each in leaving) for each in (1, 2, 3)
    ]
    records.append(TopicRecord(name="t", topic_id=ID))
    records += [partition_record(ID, index, each) for index, each in enumerate(states)]
    return given.image(*records)


def applied(image: ClusterImage, changes: PartitionChanges) -> PartitionState:
    """What becomes of partition 0."""
    given.apply(image, changes.records)
    return image.topics["t"].partitions[0]


def roles(
    after: PartitionState,
) -> tuple[int | None, tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Leader, in sync, eligible, last known leader."""
    return after.leader, after.isr, after.eligible_leader_replicas, after.last_known_leaders
