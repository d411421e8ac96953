"""New partitions: their first state by placement or by an explicit assignment, and growing topics.

A new partition is led by the first of its replicas that may be in sync, in leader epoch 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from tidelog.core.controller.decision import (
    RECORDS_PER_DECISION_MAX,
    TOO_LARGE,
    Decision,
    Refusal,
)
from tidelog.core.controller.placement import Candidate, PlacementRefused, assign_replicas
from tidelog.core.metadata.cluster import (
    UNASSIGNED_DIRECTORY,
    PartitionState,
    TopicState,
    partition_record,
)
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.metadata.records import MetadataRecord
from tidelog.core.model.errors import ErrorCode


class ReplicaAssignment(NamedTuple):
    """The brokers that somebody chose for a partition, preferred leader first."""

    partition: int
    broker_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """A request: how many partitions the topic shall have in all, and where the new ones go."""

    topic: str
    partitions_count: int
    assignments: tuple[tuple[int, ...], ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grown:
    """The outcome of a request."""

    topic: str
    refusal: Refusal | None = None


def decide_growth(
    image: ClusterImage, requests: Sequence[Growth], *, random: Random
) -> Decision[Grown]:
    """One outcome per topic; a topic that was named twice is not touched."""
    counts = Counter(request.topic for request in requests)
    outcomes = [
        Grown(
            topic=name,
            refusal=Refusal(ErrorCode.INVALID_REQUEST, "the topic is named twice"),
        )
        for name in counts
        if counts[name] > 1
    ]
    records: list[MetadataRecord] = []
    for request in requests:
        if counts[request.topic] > 1:
            continue
        room = RECORDS_PER_DECISION_MAX - len(records)
        added = _decide_one(image, request, random, room)
        if isinstance(added, Refusal):
            outcomes.append(Grown(topic=request.topic, refusal=added))
        else:
            records += added
            outcomes.append(Grown(topic=request.topic))
    return Decision(records=records, outcomes=outcomes)


def _decide_one(
    image: ClusterImage, request: Growth, random: Random, room: int
) -> list[MetadataRecord] | Refusal:
    topic = image.topics.get(request.topic)
    if topic is None:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    before = len(topic.partitions)
    if request.partitions_count <= before:
        return Refusal(
            ErrorCode.INVALID_PARTITIONS,
            f"the topic has {before} partition(s): {request.partitions_count} is no increase",
        )
    added_count = request.partitions_count - before
    if request.assignments is not None and len(request.assignments) != added_count:
        return Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{added_count} new partition(s), but {len(request.assignments)} assignment(s)",
        )
    if added_count > room:
        return TOO_LARGE
    states = _added_states(image, topic, request, random)
    if isinstance(states, Refusal):
        return states
    return [
        partition_record(topic.topic_id, before + index, state)
        for index, state in enumerate(states)
    ]


def _added_states(
    image: ClusterImage, topic: TopicState, request: Growth, random: Random
) -> list[PartitionState] | Refusal:
    before = len(topic.partitions)
    replication_factor = len(topic.partitions[0].replicas)
    if request.assignments is None:
        return placed_states(
            image,
            partitions_count=request.partitions_count - before,
            replication_factor=replication_factor,
            random=random,
            existing=[state.replicas for state in topic.partitions],
        )
    assignments = [
        ReplicaAssignment(before + index, broker_ids)
        for index, broker_ids in enumerate(request.assignments)
    ]
    return _checked_states(image, assignments, replication_factor)


def placed_states(
    image: ClusterImage,
    *,
    partitions_count: int,
    replication_factor: int,
    random: Random,
    existing: Sequence[Sequence[int]] = (),
) -> list[PartitionState] | Refusal:
    """The states of partitions that the controller places itself."""
    candidates = [
        Candidate(broker.broker_id, broker.rack, broker.is_fenced)
        for broker in image.brokers.values()
        if broker.is_fenced or not broker.in_controlled_shutdown
    ]
    placed = assign_replicas(
        candidates,
        partitions_count=partitions_count,
        replication_factor=replication_factor,
        random=random,
        existing=existing,
    )
    if isinstance(placed, PlacementRefused):
        return Refusal(ErrorCode.INVALID_REPLICATION_FACTOR, placed.reason)
    states = []
    for replicas in placed:
        state = _first_state(image, replicas)
        if state is None:
            return Refusal(
                ErrorCode.INVALID_REPLICATION_FACTOR, "all brokers are fenced or shutting down"
            )
        states.append(state)
    return states


def assigned_states(
    image: ClusterImage, assignments: Sequence[ReplicaAssignment]
) -> list[PartitionState] | Refusal:
    """The states of a new topic's partitions that somebody placed by hand, by index."""
    counts = Counter(assignment.partition for assignment in assignments)
    for assignment in assignments:
        if counts[assignment.partition] > 1:
            return _bad_assignment(f"partition {assignment.partition} is assigned twice")
    states = _checked_states(image, assignments, None)
    if isinstance(states, Refusal):
        return states
    if set(counts) != set(range(len(assignments))):
        return _bad_assignment("partitions are numbered from 0, without gaps")
    by_index = {a.partition: state for a, state in zip(assignments, states, strict=True)}
    return [by_index[index] for index in range(len(assignments))]


def _checked_states(
    image: ClusterImage, assignments: Sequence[ReplicaAssignment], replication_factor: int | None
) -> list[PartitionState] | Refusal:
    states = []
    for index, broker_ids in assignments:
        refusal = refuse_assignment(image, broker_ids)
        if refusal is not None:
            return refusal
        if replication_factor is not None and len(broker_ids) != replication_factor:
            return _bad_assignment(
                f"{len(broker_ids)} replica(s) here, {replication_factor} elsewhere"
            )
        replication_factor = len(broker_ids)
        state = _first_state(image, broker_ids)
        if state is None:
            return _bad_assignment(f"all brokers of partition {index} are fenced or shutting down")
        states.append(state)
    return states


def refuse_assignment(image: ClusterImage, broker_ids: tuple[int, ...]) -> Refusal | None:
    """Of one partition: registered brokers, each once, and at least one."""
    if not broker_ids:
        return _bad_assignment("a partition needs at least one replica")
    for broker_id in sorted(broker_ids):
        if broker_id not in image.brokers:
            return _bad_assignment(f"broker {broker_id} is not registered")
        if broker_ids.count(broker_id) > 1:
            return _bad_assignment(f"broker {broker_id} is given twice")
    return None


def _first_state(image: ClusterImage, replicas: tuple[int, ...]) -> PartitionState | None:
    """None when not one of the replicas may be in sync."""
    isr = tuple(broker_id for broker_id in replicas if image.brokers[broker_id].is_active)
    if not isr:
        return None
    return PartitionState(
        replicas=replicas,
        isr=isr,
        leader=isr[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=tuple(default_directory(image, broker_id) for broker_id in replicas),
    )


def default_directory(image: ClusterImage, broker_id: int) -> bytes:
    """A broker with one log directory has no choice; otherwise it may choose."""
    directories = image.brokers[broker_id].log_directories
    return directories[0] if len(directories) == 1 else UNASSIGNED_DIRECTORY


def _bad_assignment(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
