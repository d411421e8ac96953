"""The in-sync set and the eligible replicas: what metadata may say about them at any time."""

from __future__ import annotations

from collections.abc import Iterator

from tidelog.judge.anomalies import (
    ELIGIBLE_ARE_SOUND,
    ISR_ARE_REPLICAS,
    JOINED_AS_ITSELF,
    LAST_KNOWN_LEADER,
    LEADER_IN_SYNC,
    NO_FENCED_IN_SYNC,
    QUORUM_SUPERSET,
)
from tidelog.judge.cluster.cluster_model import ClusterModel, Violation, violation
from tidelog.judge.cluster.facts import METADATA, ObservedPartition


def sound_sets(model: ClusterModel, partition: str) -> Iterator[Violation]:
    """In-sync and eligible replicas fit each other, the replicas and the leader."""
    known = model.partitions.get(partition)
    if known is None:
        return
    replicas = frozenset(known.replicas)
    if not known.isr <= replicas:
        yield violation(ISR_ARE_REPLICAS, partition, isr=sorted(known.isr), replicas=known.replicas)
    if known.leader is not None and known.leader not in known.isr:
        yield violation(LEADER_IN_SYNC, partition, leader=known.leader, isr=sorted(known.isr))
    fenced = [
        node_id
        for node_id in sorted(known.isr)
        if node_id in model.brokers and model.brokers[node_id].is_fenced
    ]
    if fenced:
        yield violation(NO_FENCED_IN_SYNC, partition, fenced=fenced, isr=sorted(known.isr))
    yield from _eligible(known, replicas)


def _eligible(known: ObservedPartition, replicas: frozenset[int]) -> Iterator[Violation]:
    eligible = known.eligible
    is_full = len(known.isr) >= known.minimum
    if not eligible <= replicas or eligible & known.isr or (eligible and is_full):
        yield violation(
            ELIGIBLE_ARE_SOUND,
            known.partition,
            eligible=sorted(eligible),
            isr=sorted(known.isr),
            replicas=known.replicas,
            minimum=known.minimum,
        )


def recovery_quorum(model: ClusterModel, partition: str) -> Iterator[Violation]:
    """When nobody is in sync or eligible, one of the replicas is still the last known leader."""
    known = model.partitions.get(partition)
    if known is None or not known.has_eligible or known.isr or known.eligible:
        return
    if len(known.last_known_leaders) != 1 or known.last_known_leaders[0] not in known.replicas:
        yield violation(LAST_KNOWN_LEADER, partition, last_known=known.last_known_leaders)


def quorum_superset(model: ClusterModel, partition: str) -> Iterator[Violation]:
    """Whoever can be elected is among those for whom the leader waits.

    Only from the minimum on: below it nothing is committed, and a leader knows nothing of eligible
    replicas.
    """
    known = model.partitions.get(partition)
    if known is None or partition == METADATA or known.leader is None:
        return
    leader = model.replicas.get((partition, known.leader))
    if leader is None or not leader.is_leader or leader.leader_epoch != known.leader_epoch:
        return
    electable = known.isr | known.eligible
    if len(leader.isr) >= leader.minimum and not electable <= leader.maximal_isr:
        yield violation(
            QUORUM_SUPERSET,
            partition,
            leader=known.leader,
            maximal_isr=sorted(leader.maximal_isr),
            electable=sorted(electable),
        )


def joined_as_itself(
    model: ClusterModel, before: ObservedPartition, after: ObservedPartition
) -> Iterator[Violation]:
    """A leader lets a follower in for what it fetched; if that was another process of the same
    broker, the one that is there now may have lost it (KIP-903)."""
    leader = model.replicas.get((after.partition, before.leader or 0))
    if leader is None or not leader.is_leader or leader.leader_epoch != before.leader_epoch:
        return
    ended = before.is_moving and not after.is_moving
    if before.leader_epoch != after.leader_epoch and not ended:
        return
    fetched_by = dict(leader.fetched_by)
    for node_id in sorted(after.isr - before.isr):
        broker, fetched = model.brokers.get(node_id), fetched_by.get(node_id)
        if broker is not None and fetched is not None and fetched != broker.broker_epoch:
            yield violation(
                JOINED_AS_ITSELF,
                after.partition,
                node=node_id,
                broker_epoch=broker.broker_epoch,
                leader=before.leader,
                fetched_broker_epoch=fetched,
            )
