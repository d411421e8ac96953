"""Invariants of logs: leaders hold what is committed, replicas agree, producers are remembered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tidelog.judge.anomalies import (
    CANDIDATE_COMPLETENESS,
    LEADER_COMPLETENESS,
    LOG_MATCHING,
    NO_COMMITTED_LOST,
    PRODUCER_STATE,
)
from tidelog.judge.cluster.cluster_model import ClusterModel, Violation, lacking, violation
from tidelog.judge.cluster.facts import ObservedBatch, ObservedProducer


def leader_completeness(model: ClusterModel, partition: str) -> Iterator[Violation]:
    """The newest leader's log begins with the committed log."""
    for node_id in sorted(model.log_copies.get(partition, ())):
        replica = model.replicas.get((partition, node_id))
        if replica is not None and replica.is_leader and model.is_current(replica):
            yield from lacking(model, partition, node_id, role="leader", kind=LEADER_COMPLETENESS)


def candidate_completeness(model: ClusterModel, partition: str) -> Iterator[Violation]:
    """So does the log of everyone who is in sync or eligible, and running.

    A broker that comes back after a loss is not running until it has registered, and a registration
    without the proof of a clean stop takes it off both lists.
    """
    known = model.partitions.get(partition)
    if known is None:
        return
    for node_id in sorted(known.isr | known.eligible):
        if model.is_running(node_id) and (partition, node_id) in model.replicas:
            yield from lacking(
                model, partition, node_id, role="candidate", kind=CANDIDATE_COMPLETENESS
            )


def no_committed_lost(model: ClusterModel, partition: str) -> Iterator[Violation]:
    """Somebody has it all, running or not: completeness says nothing when nobody can lead.

    The stated assumption is KIP-966's: fewer replicas than the minimum have lost their tails; and
    it is the least minimum that the topic had, since that many copies were once enough.
    """
    known = model.partitions.get(partition)
    if known is None:
        return
    committed = model.committed_log(partition)
    lossy = model.lossy.get(partition, set())
    best = 0
    for node_id in model.log_copies.get(partition, ()):
        held = model.agreement(partition, node_id)
        held = min(held, model.floors.get((partition, node_id), held))
        best = max(best, held)
        if held >= committed.end_offset:
            lossy.discard(node_id)
    minimum = committed.least_minimum or known.minimum
    if best < committed.end_offset and len(lossy) < minimum:
        yield violation(
            NO_COMMITTED_LOST,
            partition,
            committed_end_offset=committed.end_offset,
            best_end_offset=best,
            lossy=sorted(lossy),
        )


def batches_match(
    model: ClusterModel,
    partition: str,
    node_id: int,
    batches: Iterable[ObservedBatch],
    before: ObservedBatch | None,
) -> Iterator[Violation]:
    """The same offset in the same leader epoch is the same batch, on every replica.

    And so is everything before it: each batch is held against the one that preceded it where it was
    first seen, which by induction compares whole prefixes. Nothing excuses a breach, not even an
    unclean election: that writes in a leader epoch of its own. `batches` came to the end of a
    replica's log, behind `before`.
    """
    for batch in batches:
        key = (partition, batch.leader_epoch, batch.base_offset)
        first, predecessor = model.batches.setdefault(key, (batch, before))
        if first != batch:
            yield violation(LOG_MATCHING, partition, node=node_id, found=batch, expected=first)
        elif before is not None and predecessor is not None and before != predecessor:
            yield violation(
                LOG_MATCHING,
                partition,
                node=node_id,
                batch=batch,
                found=before,
                expected=predecessor,
            )
        elif predecessor is None and before is not None:
            model.batches[key] = (first, before)
        before = batch


def log_matching(model: ClusterModel, partition: str) -> Iterator[Violation]:
    """All batches of all replicas once more."""
    for node_id, log_copy in sorted(model.log_copies.get(partition, {}).items()):
        yield from batches_match(model, partition, node_id, log_copy.batches.values(), None)


def producer_state(
    model: ClusterModel, partition: str, node_id: int, remembered: Sequence[ObservedProducer]
) -> Iterator[Violation]:
    """The newest batch of each remembered producer stands in the log, and no newer one does.

    A producer may be forgotten, and its batches may be deleted; a batch that was cut off may not be
    remembered: a retry would be taken for a duplicate.
    """
    log_copy = model.log_copy(partition, node_id)
    newest = {
        batch.producer_id: batch
        for batch in log_copy.batches.values()
        if batch.producer_id is not None
    }
    for state in remembered:
        batch = newest.get(state.producer_id)
        if batch is None:
            if state.end_offset > log_copy.end_offset:
                yield violation(PRODUCER_STATE, partition, node=node_id, found=state)
        elif (
            batch.producer_epoch != state.producer_epoch
            or batch.end_sequence != state.end_sequence
            or batch.end_offset != state.end_offset
        ):
            yield violation(PRODUCER_STATE, partition, node=node_id, found=state, expected=batch)
