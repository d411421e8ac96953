"""Ownership: each partition has one owner at a time, and at rest it has one at all.

In a classic group a generation has its owners. In a KIP-848 group a member owns a partition until
it has released it, or is removed.
"""

from __future__ import annotations

from tidelog.judge.anomalies import OWNED_TWICE, UNOWNED, Anomaly
from tidelog.judge.groups.group_history import (
    Deletions,
    GroupAtRest,
    GroupHistory,
    GroupSynced,
    MemberHeartbeat,
)
from tidelog.judge.groups.member_partitions import FIRST_EPOCH, Hold, MemberPartitions


def owned_twice(history: GroupHistory) -> list[Anomaly]:
    """Two members were given one partition in the same generation of a classic group.

    Members of different generations may overlap: who was removed learns it at its next request. A
    new process of a static member takes over what its predecessor had, in the same generation.
    """
    deletions = Deletions(history)
    owners: dict[tuple[str, int, str], list[GroupSynced]] = {}
    found = []
    for operation in history:
        if isinstance(operation, GroupSynced):
            for partition in operation.partitions:
                before = owners.setdefault((operation.group, operation.generation, partition), [])
                other = _other_owner(operation, before, deletions)
                if other is not None:
                    found.append(
                        OWNED_TWICE.found(
                            at_us=operation.at_us,
                            partition=partition,
                            group=operation.group,
                            generation=operation.generation,
                            first=other.member,
                            second=operation.member,
                        )
                    )
                before.append(operation)
    return found


def _other_owner(
    synced: GroupSynced, before: list[GroupSynced], deletions: Deletions
) -> GroupSynced | None:
    for other in before:
        is_same_member = other.member == synced.member or (
            synced.instance is not None and synced.instance == other.instance
        )
        if not is_same_member and not deletions.between(
            synced.group, other.invoked_us, synced.at_us
        ):
            return other
    return None


def held_by_two(history: GroupHistory) -> list[Anomaly]:
    """A member of a KIP-848 group was given what another one has not released.

    The other is still a member, and not one that was removed and does not know it yet: later its
    coordinator answers a heartbeat in which it has the partition.
    """
    deletions = Deletions(history)
    partitions = MemberPartitions(history)
    found = []
    for (group, partition), holds in partitions.holds.items():
        for number, second in enumerate(holds):
            if second.grant.from_deposed:
                continue
            for first in holds[:number]:
                beat = _still_has(first, second, partitions, group)
                if beat is None or deletions.between(group, first.grant.invoked_us, beat.at_us):
                    continue
                found.append(
                    OWNED_TWICE.found(
                        at_us=beat.at_us,
                        partition=partition,
                        group=group,
                        first=first.member,
                        first_epoch=beat.member_epoch,
                        second=second.member,
                        epoch=second.grant.member_epoch,
                    )
                )
    return found


def _still_has(
    first: Hold, second: Hold, partitions: MemberPartitions, group: str
) -> MemberHeartbeat | None:
    is_before = first.grant.at_us < second.grant.invoked_us and not first.grant.from_deposed
    if first.member == second.member or not is_before:
        return None
    for beat in partitions.of(group, first.member):
        if (
            beat.invoked_us > second.grant.at_us
            and first.covers(beat.invoked_us)
            and beat.sent_epoch >= FIRST_EPOCH
            and beat.member_epoch is not None
            and not beat.from_deposed
        ):
            return beat
    return None


def unowned(history: GroupHistory) -> list[Anomaly]:
    """At rest every partition has an owner among the living, as long as anybody lives."""
    found = []
    for rest in history:
        if isinstance(rest, GroupAtRest) and rest.members:
            owned = {partition for _, partition in rest.owned}
            found += [
                UNOWNED.found(
                    at_us=rest.at_us,
                    partition=partition,
                    group=rest.group,
                    members=", ".join(rest.members),
                )
                for partition in rest.partitions
                if partition not in owned
            ]
    return found
