"""The in-sync set and the eligible replicas: what metadata may say about them at any time."""

from __future__ import annotations

from collections.abc import Iterator

from tidelog.judge.cluster.facts import METADATA, Complaint, PartitionFacts
from tidelog.judge.cluster.picture import Picture

SUBSET = "in-sync replicas are replicas"
LEADER_IN_SYNC = "the leader is in sync"
NOT_FENCED = "no fenced broker is in sync"
ELIGIBLE = "eligible replicas are replicas, not in sync, and only below the minimum"
LAST_KNOWN = "recovery has its last known leader"
SUPERSET = "replication quorum superset"
JOINED = "who joins the in-sync set is the process that fetched"


def sound_sets(picture: Picture, partition: str) -> Iterator[Complaint]:
    """In-sync and eligible replicas fit each other, the replicas and the leader."""
    known = picture.partitions.get(partition)
    if known is None:
        return
    replicas = frozenset(known.replicas)
    if not known.isr <= replicas:
        yield Complaint(SUBSET, partition, f"{sorted(known.isr)} of {known.replicas}")
    if known.leader is not None and known.leader not in known.isr:
        yield Complaint(LEADER_IN_SYNC, partition, f"{known.leader} not in {sorted(known.isr)}")
    fenced = [
        node_id
        for node_id in sorted(known.isr)
        if node_id in picture.brokers and picture.brokers[node_id].is_fenced
    ]
    if fenced:
        yield Complaint(NOT_FENCED, partition, f"{fenced} of {sorted(known.isr)}")
    yield from _eligible(known, replicas)


def _eligible(known: PartitionFacts, replicas: frozenset[int]) -> Iterator[Complaint]:
    eligible = known.eligible
    is_full = len(known.isr) >= known.minimum
    if not eligible <= replicas or eligible & known.isr or (eligible and is_full):
        yield Complaint(
            ELIGIBLE,
            known.partition,
            f"eligible {sorted(eligible)}, in sync {sorted(known.isr)}, replicas {known.replicas}, "
            f"minimum {known.minimum}",
        )


def recovery_quorum(picture: Picture, partition: str) -> Iterator[Complaint]:
    """When nobody is in sync or eligible, somebody is still known to have led last."""
    known = picture.partitions.get(partition)
    if known is None or not known.has_eligible or known.isr or known.eligible:
        return
    if len(known.last_known_leaders) != 1:
        yield Complaint(LAST_KNOWN, partition, f"it is {known.last_known_leaders}")


def quorum_superset(picture: Picture, partition: str) -> Iterator[Complaint]:
    """Whoever can be elected is among those for whom the leader waits.

    Only from the minimum on: below it nothing is committed, and a leader knows nothing of eligible
    replicas.
    """
    known = picture.partitions.get(partition)
    if known is None or partition == METADATA or known.leader is None:
        return
    leader = picture.replicas.get((partition, known.leader))
    if leader is None or not leader.is_leader or leader.leader_epoch != known.leader_epoch:
        return
    electable = known.isr | known.eligible
    if len(leader.isr) >= leader.minimum and not electable <= leader.maximal_isr:
        yield Complaint(
            SUPERSET,
            partition,
            f"leader {known.leader} waits for {sorted(leader.maximal_isr)}, "
            f"electable are {sorted(electable)}",
        )


def joined_as_itself(
    picture: Picture, before: PartitionFacts, after: PartitionFacts
) -> Iterator[Complaint]:
    """A leader lets a follower in for what it fetched; if that was another process of the same
    broker, the one that is there now may have lost it (KIP-903)."""
    leader = picture.replicas.get((after.partition, after.leader or 0))
    if leader is None or not leader.is_leader or leader.leader_epoch != after.leader_epoch:
        return
    if before.leader_epoch != after.leader_epoch:
        return
    fetched_by = dict(leader.fetched_by)
    for node_id in sorted(after.isr - before.isr):
        broker, fetched = picture.brokers.get(node_id), fetched_by.get(node_id)
        if broker is not None and fetched is not None and fetched != broker.broker_epoch:
            yield Complaint(
                JOINED,
                after.partition,
                f"{node_id} joined in broker epoch {broker.broker_epoch}, "
                f"but fetched from {after.leader} in {fetched}",
            )
