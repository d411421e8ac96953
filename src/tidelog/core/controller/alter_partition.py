"""AlterPartition: a leader asks for another in-sync set, and everything is checked again here.

A leader may be stale in many ways, and each has its answer. The epochs come first: a leader that
knows *more* than we do has met a newer controller, so we say that we are none; one that knows less
is told to look again. Only then does it matter what it asks for. A replica is let in only if its
broker is registered, not fenced, not leaving, and still the process that fetched (KIP-841, 903).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tidelog.core.controller.election import Election
from tidelog.core.controller.events import IsrChangeAccepted, IsrChangeRefused
from tidelog.core.controller.partition_change import PartitionTarget
from tidelog.core.controller.partition_changes import PartitionChanges, Settings
from tidelog.core.metadata.cluster import PartitionState, partition_after
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.metadata.partitions_by_broker import PartitionKey
from tidelog.core.metadata.records import MetadataRecord
from tidelog.core.model.errors import ErrorCode


class Member(NamedTuple):
    """One of the proposed in-sync set; without a broker epoch any process of it will do."""

    broker_id: int
    broker_epoch: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrChange:
    """What a leader proposes for one partition, and what it believes."""

    key: PartitionKey
    leader_epoch: int
    partition_epoch: int
    members: tuple[Member, ...]
    leader_is_recovering: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrChanged:
    """The outcome of a proposal; without an error, the partition as it will be."""

    key: PartitionKey
    error: ErrorCode = ErrorCode.NONE
    state: PartitionState | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrDecision:
    """Records for the log, one outcome per request, and the events for when it is committed."""

    records: list[MetadataRecord]
    outcomes: list[IsrChanged]
    events: list[object]


def refuse_broker_epoch(image: ClusterImage, *, broker_id: int, broker_epoch: int) -> ErrorCode:
    """A process that was replaced by another one, or forgotten, has no say."""
    broker = image.brokers.get(broker_id)
    if broker is None or broker.broker_epoch != broker_epoch:
        return ErrorCode.STALE_BROKER_EPOCH
    return ErrorCode.NONE


def decide_isr_changes(
    image: ClusterImage, settings: Settings, *, leader: int, requests: Sequence[IsrChange]
) -> IsrDecision:
    """The broker epoch of the leader has been checked; no partition comes twice."""
    changes = PartitionChanges(image, settings)
    outcomes = [_decide_one(image, settings, changes, leader, request) for request in requests]
    events: list[object] = [*changes.events]
    for outcome in outcomes:
        topic = image.topics_by_id.get(outcome.key.topic_id)
        if outcome.state is not None and topic is not None:
            events.append(
                IsrChangeAccepted(
                    topic=topic.name,
                    partition=outcome.key.partition,
                    isr=outcome.state.isr,
                    partition_epoch=outcome.state.partition_epoch,
                )
            )
        else:
            events.append(
                IsrChangeRefused(
                    topic=None if topic is None else topic.name,
                    partition=outcome.key.partition,
                    error=outcome.error,
                )
            )
    return IsrDecision(records=changes.records, outcomes=outcomes, events=events)


def _decide_one(
    image: ClusterImage,
    settings: Settings,
    changes: PartitionChanges,
    leader: int,
    request: IsrChange,
) -> IsrChanged:
    error = _refuse(image, leader, request)
    if error != ErrorCode.NONE:
        return IsrChanged(key=request.key, error=error)
    before = changes.state(request.key)
    allows_unclean = settings.allows_unclean(changes.topic(request.key))
    decision = changes.add(
        request.key,
        PartitionTarget(
            isr=tuple(member.broker_id for member in request.members),
            election=Election.UNCLEAN if allows_unclean else Election.ONLINE,
            leader_is_recovering=request.leader_is_recovering,
        ),
    )
    if decision is None:
        return IsrChanged(key=request.key, state=before)
    if decision.elected is not None and decision.elected.leader != leader:
        return IsrChanged(key=request.key, error=ErrorCode.NEW_LEADER_ELECTED)
    return IsrChanged(key=request.key, state=partition_after(before, decision.record))


def _refuse(image: ClusterImage, leader: int, request: IsrChange) -> ErrorCode:
    topic = image.topics_by_id.get(request.key.topic_id)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if not 0 <= request.key.partition < len(topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    state = topic.partitions[request.key.partition]
    return _refuse_epochs(state, leader, request) or _refuse_members(image, state, request)


def _refuse_epochs(state: PartitionState, leader: int, request: IsrChange) -> ErrorCode:
    if request.leader_epoch > state.leader_epoch or request.partition_epoch > state.partition_epoch:
        return ErrorCode.NOT_CONTROLLER
    if request.leader_epoch < state.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if leader != state.leader:
        return ErrorCode.INVALID_REQUEST
    if request.partition_epoch < state.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    return ErrorCode.NONE


def _refuse_members(image: ClusterImage, state: PartitionState, request: IsrChange) -> ErrorCode:
    ids = [member.broker_id for member in request.members]
    is_valid = set(ids) <= set(state.replicas) and len(set(ids)) == len(ids) and state.leader in ids
    if not is_valid:
        return ErrorCode.INVALID_REQUEST
    if request.leader_is_recovering and (len(ids) > 1 or not state.leader_is_recovering):
        return ErrorCode.INVALID_REQUEST
    for broker_id, broker_epoch in request.members:
        broker = image.brokers.get(broker_id)
        if broker is None or not broker.is_active:
            return ErrorCode.INELIGIBLE_REPLICA
        if broker_epoch is not None and broker_epoch != broker.broker_epoch:
            return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE
