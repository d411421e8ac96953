"""Reassignments: partitions that shall have other replicas, and those that shall not after all.

The stages of one, each a record of its partition:

  1. It begins: the new replicas join the assignment as *adding*, those to go become *removing*.
  2. Its leader lets the adding ones into the in-sync set, one by one (alter_partition.py).
  3. With the last of them it ends, in the same record (partition_change.py): the removing ones are
     dropped, and a leader epoch begins, led by another broker if the leader was among them.

What needs nobody new ends where it begins. Cancelled, it goes back to the replicas that it had.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tidelog.core.controller.decision import RECORDS_PER_DECISION_MAX, TOO_LARGE, Refusal
from tidelog.core.controller.election import Election
from tidelog.core.controller.partition_change import PartitionTarget
from tidelog.core.controller.partition_changes import PartitionChanges, Settings
from tidelog.core.controller.partitions import default_directory, refuse_assignment
from tidelog.core.controller.reassignment_replicas import ReassignmentReplicas, reassignment_of
from tidelog.core.metadata.cluster import PartitionState
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.metadata.partitions_by_broker import PartitionKey
from tidelog.core.model.errors import ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignmentRequest:
    """The replicas that a partition shall have, or None to cancel; and the outcome."""

    topic: str
    partition: int
    replicas: tuple[int, ...] | None
    refusal: Refusal | None = None


def decide_reassignments(
    image: ClusterImage,
    settings: Settings,
    requests: Sequence[ReassignmentRequest],
    *,
    may_change_factor: bool,
) -> tuple[PartitionChanges, list[ReassignmentRequest]]:
    """One outcome per request, in its order."""
    changes = PartitionChanges(image, settings)
    outcomes = []
    seen: set[PartitionKey] = set()
    for request in requests:
        refusal = _refuse(image, request, seen) or _room(changes)
        if refusal is None:
            key = PartitionKey(image.topics[request.topic].topic_id, request.partition)
            seen.add(key)
            target = _target(image, settings, request, changes.state(key), may_change_factor)
            if isinstance(target, Refusal):
                refusal = target
            else:
                changes.add(key, target)
        outcomes.append(replace(request, refusal=refusal))
    return changes, outcomes


def _refuse(
    image: ClusterImage, request: ReassignmentRequest, seen: set[PartitionKey]
) -> Refusal | None:
    if image.partition(request.topic, request.partition) is None:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no such partition")
    if PartitionKey(image.topics[request.topic].topic_id, request.partition) in seen:
        return Refusal(ErrorCode.INVALID_REQUEST, "the partition is named twice")
    return None


def _room(changes: PartitionChanges) -> Refusal | None:
    return TOO_LARGE if len(changes.records) >= RECORDS_PER_DECISION_MAX else None


def _target(
    image: ClusterImage,
    settings: Settings,
    request: ReassignmentRequest,
    state: PartitionState,
    may_change_factor: bool,
) -> PartitionTarget | Refusal:
    if request.replicas is None:
        return _cancelled(state, allows_unclean=settings.allows_unclean(request.topic))
    refusal = refuse_assignment(image, request.replicas)
    if refusal is not None:
        return refusal
    moving = reassignment_of(state)
    if not may_change_factor and len(request.replicas) != len(moving.target):
        return Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"the replication factor would change from {len(moving.target)} "
            f"to {len(request.replicas)}",
        )
    return PartitionTarget(
        replicas=moving.toward(request.replicas),
        new_directories={each: default_directory(image, each) for each in request.replicas},
    )


def _cancelled(state: PartitionState, *, allows_unclean: bool) -> PartitionTarget | Refusal:
    """Back to the original replicas, with those of them in the in-sync set that are in it now.

    If only new ones are, going back may lose records, and the topic must allow that.
    """
    moving = reassignment_of(state)
    if not moving.is_in_progress:
        return Refusal(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    isr = tuple(each for each in state.isr if each not in moving.adding)
    if not isr and not allows_unclean:
        return Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "none of the original replicas is in sync: going back would lose records",
        )
    return PartitionTarget(
        isr=isr,
        replicas=ReassignmentReplicas(moving.original, (), ()),
        election=Election.UNCLEAN if allows_unclean else Election.ONLINE,
    )
