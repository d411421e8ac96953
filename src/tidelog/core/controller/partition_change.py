"""One partition's next state: a change of its in-sync set or its leader, and all that follows.

In-sync set, eligible leader replicas, leader and leader epoch change together, in one record, so
that no reader ever sees a leader outside the in-sync set. A reassignment for which the last
replica has come ends in the record that says so.

Whoever leaves an in-sync set that falls below the minimum stays *eligible*: nothing was committed
without it since (KIP-966). Eligibility ends when the set reaches the minimum again, or when the
replica's process ended uncleanly, because then the end of its log may be gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tidelog.core.controller.election import Elected, Election, ElectionRules, elect
from tidelog.core.controller.reassignment_replicas import ReassignmentReplicas, reassignment_of
from tidelog.core.metadata.cluster import PartitionState
from tidelog.core.metadata.partitions_by_broker import PartitionKey
from tidelog.core.metadata.records import (
    LEADER_AS_BEFORE,
    NO_LEADER,
    PartitionChangeRecord,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionTarget:
    """What shall be different; by default only a leader is looked for."""

    isr: tuple[int, ...] | None = None
    election: Election = Election.ONLINE
    lost: int | None = None
    """A replica whose process ended uncleanly."""
    leader_is_recovering: bool | None = None
    replicas: ReassignmentReplicas | None = None
    """Another assignment; None: as it is."""
    new_directories: Mapping[int, bytes] = field(default_factory=dict)
    """Where the replicas lie that were not there before."""


class PartitionDecision(NamedTuple):
    """A record, and who it makes leader; None: the leader stays as it is."""

    record: PartitionChangeRecord
    elected: Elected | None


def decide_change(
    key: PartitionKey, before: PartitionState, request: PartitionTarget, rules: ElectionRules
) -> PartitionDecision | None:
    """None: nothing would be different."""
    isr = before.isr if request.isr is None else request.isr
    moving = request.replicas or reassignment_of(before)
    completed = moving.completed(isr)
    if completed is not None:
        moving, isr = ReassignmentReplicas(completed.replicas, (), ()), completed.isr
    eligible: tuple[int, ...] = ()
    if rules.keeps_eligible and len(isr) < rules.min_insync_replicas:
        eligible = _eligible(before, isr, request.lost, moving.replicas)
    elected = elect(
        before,
        replicas=moving.replicas,
        isr=isr,
        eligible=eligible,
        election=request.election,
        rules=rules,
    )
    is_new = elected.leader != before.leader
    is_recovering = request.leader_is_recovering
    if is_new and elected.leader is not None and elected.may_lose_records:
        isr, eligible, is_recovering = (elected.leader,), (), True
    elif is_new and elected.leader in eligible:
        isr = (elected.leader,)
        # With a minimum that was lowered meanwhile it is enough alone, and the others fall behind.
        is_enough = len(isr) >= rules.min_insync_replicas
        eligible = () if is_enough else tuple(each for each in eligible if each != elected.leader)
    if not isr and not rules.keeps_eligible:
        # Without eligible replicas the last leader is remembered by staying in sync.
        last = before.isr if before.leader is None else (before.leader,)
        isr = tuple(each for each in last if each in moving.replicas) or moving.replicas[:1]
    record = PartitionChangeRecord(partition_id=key.partition, topic_id=key.topic_id)
    if is_new:
        record.leader = NO_LEADER if elected.leader is None else elected.leader
        _remember_last_leader(record, before, elected, rules)
    if isr != before.isr:
        record.isr = list(isr)
    if eligible != before.eligible_leader_replicas:
        record.eligible_leader_replicas = list(eligible)
    if is_recovering is not None and is_recovering != before.leader_is_recovering:
        record.leader_recovery_state = int(is_recovering)
    _move(record, before, moving, request.new_directories)
    _replace_dropped_last_leader(record, before, moving.replicas, candidates=isr or eligible)
    if record == PartitionChangeRecord(partition_id=key.partition, topic_id=key.topic_id):
        return None
    return PartitionDecision(record, elected if is_new else None)


def _move(
    record: PartitionChangeRecord,
    before: PartitionState,
    moving: ReassignmentReplicas,
    new_directories: Mapping[int, bytes],
) -> None:
    """Note the assignment, where it is another. Whoever drops out is fenced by a leader epoch:

    1. Broker 3 is dropped and deletes its log; later it is added again, empty.
    2. In one leader epoch the leader would still count what 3 had, and call records committed.
    """
    if moving.replicas != before.replicas:
        record.replicas = list(moving.replicas)
        record.directories = [
            before.directory(each) if each in before.replicas else new_directories[each]
            for each in moving.replicas
        ]
    if moving.adding != before.adding_replicas:
        record.adding_replicas = list(moving.adding)
    if moving.removing != before.removing_replicas:
        record.removing_replicas = list(moving.removing)
    if set(before.replicas) <= set(moving.replicas):
        return
    if record.leader == LEADER_AS_BEFORE:
        record.leader = NO_LEADER if before.leader is None else before.leader


def _eligible(
    before: PartitionState, isr: tuple[int, ...], lost: int | None, replicas: tuple[int, ...]
) -> tuple[int, ...]:
    candidates = {*before.eligible_leader_replicas, *before.isr} & set(replicas)
    return tuple(sorted(each for each in candidates if each not in isr and each != lost))


def _remember_last_leader(
    record: PartitionChangeRecord, before: PartitionState, elected: Elected, rules: ElectionRules
) -> None:
    """The leader before a partition went offline is its last hope when nobody is eligible."""
    if not rules.keeps_eligible:
        return
    if elected.leader is not None:
        if before.last_known_leaders:
            record.last_known_elr = []
    elif before.leader is not None and not before.last_known_leaders:
        record.last_known_elr = [before.leader]


def _replace_dropped_last_leader(
    record: PartitionChangeRecord,
    before: PartitionState,
    replicas: tuple[int, ...],
    *,
    candidates: tuple[int, ...],
) -> None:
    """Somebody must be the last hope, and a last leader that was dropped is none any more.

    1. Broker 4 comes with a reassignment and leads alone; 1 and 2 are down.
    2. It is cancelled, which the topic allows at the cost of records. Nobody leads.
    3. Without a last hope, 1 and 2 would come back and never lead once the topic no longer allows
       unclean elections. Kafka makes the first replica that stays the in-sync set.
    """
    last_known = before.last_known_leaders
    if record.last_known_elr is not None:
        last_known = tuple(record.last_known_elr)
    if set(last_known) <= set(replicas):
        return
    staying = [each for each in last_known if each in replicas]
    ordered = [each for each in replicas if each in candidates] or replicas
    record.last_known_elr = staying or [ordered[0]]
