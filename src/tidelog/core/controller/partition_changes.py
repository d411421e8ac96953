"""What becomes of partitions when a broker comes or goes: many partitions, one rule each.

A `PartitionChanges` is built for one decision on one image. It collects records for partitions one
by one, and the events for the trace when they are committed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol

from tidelog.core.controller.election import Election, ElectionRules
from tidelog.core.controller.events import (
    LeaderElected,
    LeaderLost,
    ReassignmentEnded,
    ReassignmentStarted,
)
from tidelog.core.controller.partition_change import (
    PartitionDecision,
    PartitionTarget,
    decide_change,
)
from tidelog.core.controller.reassignment_replicas import reassignment_of
from tidelog.core.metadata.cluster import PartitionState, partition_after
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.metadata.partitions_by_broker import PartitionKey
from tidelog.core.metadata.records import MetadataRecord


class Settings(Protocol):
    """What elections need to know of settings; see `election_settings`."""

    @property
    def keeps_eligible(self) -> bool: ...

    def min_insync_replicas(self, topic: str) -> int: ...

    def allows_unclean(self, topic: str) -> bool: ...


class PartitionChanges:
    """Decides on an image as it is, but `arriving` counts as alive, and `leaving` as dead."""

    def __init__(
        self,
        image: ClusterImage,
        settings: Settings,
        *,
        arriving: int | None = None,
        leaving: Collection[int] = (),
    ) -> None:
        self._image = image
        self._settings = settings
        self._arriving = arriving
        self._leaving = leaving
        self.records: list[MetadataRecord] = []
        self.events: list[object] = []

    def without_leaving(self, keys: Iterable[PartitionKey]) -> None:
        """Who is leaving leaves these in-sync sets and leads nothing; it may stay eligible."""
        for key in keys:
            isr = tuple(each for each in self.state(key).isr if each not in self._leaving)
            self.add(key, PartitionTarget(isr=isr, election=self._any(key)))

    def without_trust(self, broker_id: int, keys: Iterable[PartitionKey]) -> None:
        """The broker leaves these in-sync sets, and nobody counts on what its log holds."""
        for key in keys:
            isr = tuple(each for each in self.state(key).isr if each != broker_id)
            self.add(key, PartitionTarget(isr=isr, lost=broker_id, election=self._any(key)))

    def elect(self, keys: Iterable[PartitionKey], election: Election | None = None) -> None:
        """Look for leaders; by default as each topic allows."""
        for key in keys:
            self.add(key, PartitionTarget(election=election or self._any(key)))

    def add(self, key: PartitionKey, request: PartitionTarget) -> PartitionDecision | None:
        """Decide one partition; None: nothing would be different."""
        before = self.state(key)
        decision = decide_change(key, before, request, self._rules(key, before))
        if decision is None:
            return None
        self.records.append(decision.record)
        self._tell_of_move(key, before, decision)
        if decision.elected is not None:
            self._tell(key, before, decision)
        return decision

    def state(self, key: PartitionKey) -> PartitionState:
        return self._image.topics_by_id[key.topic_id].partitions[key.partition]

    def topic(self, key: PartitionKey) -> str:
        return self._image.topics_by_id[key.topic_id].name

    def _any(self, key: PartitionKey) -> Election:
        allows_unclean = self._settings.allows_unclean(self.topic(key))
        return Election.UNCLEAN if allows_unclean else Election.ONLINE

    def _rules(self, key: PartitionKey, state: PartitionState) -> ElectionRules:
        return ElectionRules(
            is_acceptable=lambda replica: self._may_lead(replica, state),
            min_insync_replicas=self._settings.min_insync_replicas(self.topic(key)),
            keeps_eligible=self._settings.keeps_eligible,
        )

    def _may_lead(self, replica: int, state: PartitionState) -> bool:
        broker = self._image.brokers.get(replica)
        if broker is None or replica in self._leaving:
            return False
        if not broker.is_active and replica != self._arriving:
            return False
        return broker.has_working(state.directory(replica))

    def _tell_of_move(
        self, key: PartitionKey, before: PartitionState, decision: PartitionDecision
    ) -> None:
        after = partition_after(before, decision.record)
        moving = reassignment_of(after)
        if moving == reassignment_of(before):
            return
        if moving.is_in_progress:
            self.events.append(
                ReassignmentStarted(
                    topic=self.topic(key),
                    partition=key.partition,
                    replicas=moving.replicas,
                    adding=moving.adding,
                    removing=moving.removing,
                )
            )
        else:
            self.events.append(
                ReassignmentEnded(
                    topic=self.topic(key),
                    partition=key.partition,
                    replicas=moving.replicas,
                    isr=after.isr,
                )
            )

    def _tell(self, key: PartitionKey, before: PartitionState, decision: PartitionDecision) -> None:
        assert decision.elected is not None
        leader, kind = decision.elected
        topic, leader_epoch = self.topic(key), before.leader_epoch + 1
        if leader is None or kind is None:
            self.events.append(
                LeaderLost(topic=topic, partition=key.partition, leader_epoch=leader_epoch)
            )
        else:
            self.events.append(
                LeaderElected(
                    topic=topic,
                    partition=key.partition,
                    leader=leader,
                    leader_epoch=leader_epoch,
                    kind=kind,
                )
            )
