"""Mutants of reassignments: steps that are skipped, and replicas that are kept or trusted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tidelog.core.controller import partition_change, reassignment
from tidelog.core.controller.decision import Refusal
from tidelog.core.controller.partition_change import PartitionTarget
from tidelog.core.controller.reassignment_replicas import (
    CompletedReassignment,
    ReassignmentReplicas,
    reassignment_of,
)
from tidelog.core.metadata.cluster import PartitionState
from tidelog.core.metadata.records import LEADER_AS_BEFORE, PartitionChangeRecord
from tidelog.core.node.replicas.replica_manager import ReplicaManager
from tidelog.judge.anomalies import (
    CANDIDATE_COMPLETENESS,
    LEADER_COMPLETENESS,
    NOT_RECOVERED,
    REASSIGNMENT_IN_ORDER,
    AnomalyKind,
)
from tidelog.worlds.simulator.mutant import Mutant, Patch

# What is replaced, as it is.

_target = reassignment._target
_cancelled = reassignment._cancelled
_completed = ReassignmentReplicas.completed
_move = partition_change._move


def in_sync_at_once(
    image: Any, settings: Any, request: Any, state: PartitionState, may_change_factor: bool
) -> PartitionTarget | Refusal:
    """A new replica is a member of the in-sync set before it has fetched anything."""
    target = _target(image, settings, request, state, may_change_factor)
    if isinstance(target, Refusal) or target.replicas is None or request.replicas is None:
        return target
    alive = [each for each in target.replicas.adding if image.brokers[each].is_active]
    new = tuple(each for each in alive if each not in state.isr)
    return replace(target, isr=(*state.isr, *new)) if state.leader is not None else target


def end_with_the_first(
    self: ReassignmentReplicas, isr: tuple[int, ...]
) -> CompletedReassignment | None:
    """The first new replica in sync ends it; the others come when they come."""
    came = [each for each in self.adding if each in isr and each not in self.removing]
    staying = tuple(each for each in isr if each not in self.removing)
    if came and staying:
        return CompletedReassignment(self.target, staying)
    return _completed(self, isr)


def keep_what_came(state: PartitionState, *, allows_unclean: bool) -> PartitionTarget | Refusal:
    """A cancellation forgets to take the new replicas out."""
    target = _cancelled(state, allows_unclean=allows_unclean)
    if isinstance(target, Refusal):
        return target
    moving = reassignment_of(state)
    kept = (*moving.original, *moving.adding)
    return replace(target, replicas=ReassignmentReplicas(kept, (), ()), isr=state.isr)


def drop_within_the_epoch(
    record: PartitionChangeRecord, before: PartitionState, *rest: Any
) -> None:
    """Whoever is dropped is not fenced: the leader goes on in its leader epoch."""
    names_leader = record.leader != LEADER_AS_BEFORE
    _move(record, before, *rest)
    if not names_leader:
        record.leader = LEADER_AS_BEFORE


def keep_files(self: ReplicaManager, change: Any, now_ms: int) -> None:
    """A dropped replica stays where it is."""
    if self._settings.node_id in change.replicas:
        _follow(self, change, now_ms)


_follow = ReplicaManager._follow


def _mutant(name: str, about: str, *caught_by: AnomalyKind, within: int, patch: Patch) -> Mutant:
    return Mutant(
        name=name,
        about=about,
        caught_by=frozenset(caught_by),
        within_seeds=within,
        profile="replication",
        patches=(patch,),
    )


REASSIGNMENT_MUTANTS = (
    _mutant(
        "adding-replica-counts-at-once",
        "a replica that a reassignment brings is in sync from the beginning",
        REASSIGNMENT_IN_ORDER,
        CANDIDATE_COMPLETENESS,
        LEADER_COMPLETENESS,
        within=20,
        patch=Patch(reassignment, "_target", in_sync_at_once),
    ),
    _mutant(
        "reassignment-ends-early",
        "a reassignment ends when the first of its new replicas is in sync",
        REASSIGNMENT_IN_ORDER,
        within=60,
        patch=Patch(ReassignmentReplicas, "completed", end_with_the_first),
    ),
    _mutant(
        "cancel-keeps-new-replicas",
        "a cancelled reassignment leaves the new replicas in the assignment",
        REASSIGNMENT_IN_ORDER,
        within=30,
        patch=Patch(reassignment, "_cancelled", keep_what_came),
    ),
    _mutant(
        "drop-within-a-leader-epoch",
        "a replica is dropped without a new leader epoch",
        REASSIGNMENT_IN_ORDER,
        within=20,
        patch=Patch(partition_change, "_move", drop_within_the_epoch),
    ),
    _mutant(
        "dropped-replica-stays",
        "a broker keeps the log of a partition that has moved away",
        NOT_RECOVERED,
        within=20,
        patch=Patch(ReplicaManager, "_follow", keep_files),
    ),
)
