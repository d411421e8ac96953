"""The high watermark: never ahead of what its in-sync set holds, never moved below the minimum."""

from __future__ import annotations

from collections.abc import Iterator

from tidelog.judge.cluster.facts import Complaint, ReplicaFacts
from tidelog.judge.cluster.picture import Picture

BEHIND_ISR = "the high watermark stays behind the maximal in-sync set"
MINIMUM = "the high watermark needs the minimum in-sync set"
OWN = "the high watermark of one leadership never goes back"


def behind_maximal_isr(picture: Picture, partition: str) -> Iterator[Complaint]:
    """Every running member of the maximal in-sync set vouches for all below a leader's mark.

    A member that was taken off the list in the meantime (it restarted) proves nothing: the leader
    will hear of it. Nor does one that an election put there that was not clean, for a mark
    within the log that it began to lead with and has not synced yet (see unproven.py).
    """
    known = picture.partitions.get(partition)
    if known is None:
        return
    for node_id in sorted(picture.mirrors.get(partition, ())):
        leader = picture.replicas.get((partition, node_id))
        if leader is None or not leader.is_leader or not picture.is_current(leader):
            continue
        for member in sorted(leader.maximal_isr):
            replica = picture.replicas.get((partition, member))
            if replica is None or not picture.is_running(member) or member not in known.isr:
                continue
            if leader.high_watermark <= picture.unproven.get((partition, member), -1):
                continue
            if replica.held_end_offset < leader.high_watermark:
                yield Complaint(
                    BEHIND_ISR,
                    partition,
                    f"leader {node_id} is at {leader.high_watermark}, member {member} vouches "
                    f"for {replica.held_end_offset}; maximal {sorted(leader.maximal_isr)}",
                )


def on_moved(before: ReplicaFacts | None, after: ReplicaFacts) -> Iterator[Complaint]:
    """What one step did to one leader's mark."""
    if (
        before is None
        or not after.is_leader
        or not before.is_leader
        or before.life != after.life
        or before.leader_epoch != after.leader_epoch
    ):
        return
    if after.high_watermark < before.high_watermark:
        yield Complaint(
            OWN,
            after.partition,
            f"{after.life}: from {before.high_watermark} to {after.high_watermark}",
        )
    in_sync = max(len(before.isr), len(after.isr))
    minimum = min(before.minimum, after.minimum)
    if after.high_watermark > before.high_watermark and in_sync < minimum:
        yield Complaint(
            MINIMUM,
            after.partition,
            f"{after.life} moved it to {after.high_watermark} with {sorted(after.isr)} in sync, "
            f"the minimum is {minimum}",
        )
