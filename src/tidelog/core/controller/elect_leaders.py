"""Elections that somebody asks for, and those that the controller holds by itself now and then.

Preferred: the first replica of a partition shall lead again, if it is in sync; every few minutes
the controller gives leaderships back that moved while a broker was away. Unclean: a partition that
nobody leads shall be led by whoever is alive, at once when asked, or within minutes after the
topic was allowed to lose records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidelog.core.controller.decision import RECORDS_PER_DECISION_MAX, TOO_LARGE, Refusal
from tidelog.core.controller.election import Election
from tidelog.core.controller.partition_change import PartitionTarget
from tidelog.core.controller.partition_changes import PartitionChanges, Settings
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.metadata.partitions_by_broker import PartitionKey
from tidelog.core.model.errors import ErrorCode

ELECTIONS_PER_ROUND = 1_000
"""As in Kafka: what the controller does by itself comes in portions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionRequest:
    """A partition for which an election is requested, and its outcome."""

    topic: str
    partition: int
    refusal: Refusal | None = None


def decide_elections(
    image: ClusterImage, settings: Settings, requests: Sequence[ElectionRequest], election: Election
) -> tuple[PartitionChanges, list[ElectionRequest]]:
    """One outcome per request, in its order."""
    changes = PartitionChanges(image, settings)
    outcomes = []
    seen: set[PartitionKey] = set()
    for request in requests:
        refusal = _decide_one(image, changes, request, election, seen)
        outcomes.append(
            ElectionRequest(topic=request.topic, partition=request.partition, refusal=refusal)
        )
    return changes, outcomes


def everywhere(image: ClusterImage) -> list[ElectionRequest]:
    """Every partition that there is."""
    return [
        ElectionRequest(topic=name, partition=index)
        for name in sorted(image.topics)
        for index in range(len(image.topics[name].partitions))
    ]


def decide_balance(image: ClusterImage, settings: Settings) -> tuple[PartitionChanges, bool]:
    """Give leaderships back to preferred replicas; and whether there may be more to do."""
    changes = PartitionChanges(image, settings)
    for key in image.index.not_preferred():
        if len(changes.records) >= ELECTIONS_PER_ROUND:
            return changes, True
        changes.add(key, PartitionTarget(election=Election.PREFERRED))
    return changes, False


def decide_unclean_round(image: ClusterImage, settings: Settings) -> tuple[PartitionChanges, bool]:
    """Lead what nobody leads, where the topic allows to lose records; and whether more is left."""
    changes = PartitionChanges(image, settings)
    for key in image.index.leaderless():
        if len(changes.records) >= ELECTIONS_PER_ROUND:
            return changes, True
        if settings.allows_unclean(changes.topic(key)):
            changes.add(key, PartitionTarget(election=Election.UNCLEAN))
    return changes, False


def _decide_one(
    image: ClusterImage,
    changes: PartitionChanges,
    request: ElectionRequest,
    election: Election,
    seen: set[PartitionKey],
) -> Refusal | None:
    state = image.partition(request.topic, request.partition)
    if state is None:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no such partition")
    key = PartitionKey(image.topics[request.topic].topic_id, request.partition)
    if key in seen or not _is_needed(election, state.leader, state.replicas[0]):
        return Refusal(ErrorCode.ELECTION_NOT_NEEDED, "it has the leader that it should have")
    if len(changes.records) >= RECORDS_PER_DECISION_MAX:
        return TOO_LARGE
    if changes.add(key, PartitionTarget(election=election)) is not None:
        seen.add(key)
        return None
    if election is Election.PREFERRED:
        return Refusal(
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "its first replica is away or not in sync"
        )
    return Refusal(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "none of its replicas is alive")


def _is_needed(election: Election, leader: int | None, preferred: int) -> bool:
    return leader != preferred if election is Election.PREFERRED else leader is None
