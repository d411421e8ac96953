"""Completeness: whoever leads, or may lead, holds everything that is committed."""

from __future__ import annotations

from collections.abc import Iterator

from tidelog.judge.cluster.facts import Complaint
from tidelog.judge.cluster.picture import Picture, behind

LEADER = "leader completeness"
CANDIDATE = "leader candidate completeness"
GLOBAL = "no committed record is lost"


def leader_completeness(picture: Picture, partition: str) -> Iterator[Complaint]:
    """The newest leader's log begins with the committed log."""
    for node_id in sorted(picture.mirrors.get(partition, ())):
        replica = picture.replicas.get((partition, node_id))
        if replica is not None and replica.is_leader and picture.is_current(replica):
            yield from behind(picture, partition, node_id, "leader", LEADER)


def candidate_completeness(picture: Picture, partition: str) -> Iterator[Complaint]:
    """So does the log of everyone who is in sync or eligible, and running.

    A broker that comes back after a loss is not running until it has registered, and a registration
    without the proof of a clean stop takes it off both lists.
    """
    known = picture.partitions.get(partition)
    if known is None:
        return
    for node_id in sorted(known.isr | known.eligible):
        if picture.is_running(node_id) and (partition, node_id) in picture.replicas:
            yield from behind(picture, partition, node_id, "candidate", CANDIDATE)


def no_committed_lost(picture: Picture, partition: str) -> Iterator[Complaint]:
    """Somebody has it all, running or not: completeness says nothing when nobody can lead.

    The stated assumption is KIP-966's: fewer replicas than the minimum have lost their tails; and
    it is the least minimum that the topic had, since that many copies were once enough.
    """
    known = picture.partitions.get(partition)
    if known is None:
        return
    committed = picture.committed_log(partition)
    lossy = picture.lossy.get(partition, set())
    best = 0
    for node_id in picture.mirrors.get(partition, ()):
        held = picture.agreement(partition, node_id)
        held = min(held, picture.floors.get((partition, node_id), held))
        best = max(best, held)
        if held >= committed.end_offset:
            lossy.discard(node_id)
    minimum = committed.least_minimum or known.minimum
    if best < committed.end_offset and len(lossy) < minimum:
        yield Complaint(
            GLOBAL,
            partition,
            f"committed is {committed.end_offset}, the best replica has {best}, "
            f"tails were lost by {sorted(lossy)}",
        )
