"""One partition's next state: a change of its in-sync set or its leader, and all that follows.

In-sync set, eligible leader replicas, leader and leader epoch change together, in one record, so
that no reader ever sees a leader outside the in-sync set.

Whoever leaves an in-sync set that falls below the minimum stays *eligible*: nothing was committed
without it since (KIP-966). Eligibility ends when the set reaches the minimum again, or when the
replica's process ended uncleanly, because then the end of its log may be gone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tidelog.core.controller.election import Elected, Election, ElectionRules, elect
from tidelog.core.metadata.cluster import PartitionState
from tidelog.core.metadata.partitions_by_broker import PartitionKey
from tidelog.core.metadata.records import NO_LEADER, PartitionChangeRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionTarget:
    """What shall be different; by default only a leader is looked for."""

    isr: tuple[int, ...] | None = None
    election: Election = Election.ONLINE
    lost: int | None = None
    """A replica whose process ended uncleanly."""
    leader_is_recovering: bool | None = None


class PartitionDecision(NamedTuple):
    """A record, and who it makes leader; None: the leader stays as it is."""

    record: PartitionChangeRecord
    elected: Elected | None


def decide_change(
    key: PartitionKey, before: PartitionState, request: PartitionTarget, rules: ElectionRules
) -> PartitionDecision | None:
    """None: nothing would be different."""
    isr = before.isr if request.isr is None else request.isr
    eligible: tuple[int, ...] = ()
    if rules.keeps_eligible and len(isr) < rules.min_insync_replicas:
        eligible = _eligible(before, isr, request.lost)
    elected = elect(before, isr=isr, eligible=eligible, election=request.election, rules=rules)
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
        isr = before.isr if before.leader is None else (before.leader,)
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
    if record == PartitionChangeRecord(partition_id=key.partition, topic_id=key.topic_id):
        return None
    return PartitionDecision(record, elected if is_new else None)


def _eligible(before: PartitionState, isr: tuple[int, ...], lost: int | None) -> tuple[int, ...]:
    candidates = {*before.eligible_leader_replicas, *before.isr}
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
