"""Invariants of logs: leaders hold what is committed, replicas agree, producers are remembered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tidelog.judge.anomalies import (
    CANDIDATE_COMPLETENESS,
    CUT_TOO_DEEP,
    LEADER_COMPLETENESS,
    LOG_MATCHING,
    NO_COMMITTED_LOST,
    PRODUCER_STATE,
    SYNCED_IS_DURABLE,
)
from tidelog.judge.cluster.cluster_model import ClusterModel, Violation, lacking, violation
from tidelog.judge.cluster.facts import ObservedBatch, ObservedProducer
from tidelog.judge.cluster.log_copies import common_end


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


def proposed_completeness(model: ClusterModel, partition: str) -> Iterator[Violation]:
    """And the log of everyone whom the leader has proposed, before the controller has decided.

    Most of them have caught up by the time that they are in sync; what a leader counted is seen
    only until then. A member that has registered anew since it fetched is refused, whatever it has.
    """
    known = model.partitions.get(partition)
    leader = None if known is None else model.replicas.get((partition, known.leader or 0))
    if leader is None or not leader.is_leader or not model.is_current(leader):
        return
    fetched_by = dict(leader.fetched_by)
    for node_id in sorted(leader.maximal_isr - leader.isr):
        is_same = model.registered.get(node_id) == fetched_by.get(node_id)
        if is_same and model.is_running(node_id) and (partition, node_id) in model.replicas:
            yield from lacking(
                model, partition, node_id, role="proposed", kind=CANDIDATE_COMPLETENESS
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


def cut_too_deep(
    model: ClusterModel, partition: str, node_id: int, *, leader_epoch: int, end_offset: int
) -> Iterator[Violation]:
    """A follower that finds out that its log is another than its leader's keeps what they share.

    What is below may be committed without its knowledge (KIP-101), and until it has fetched it
    again there is one copy less. The follower's log is still known as it was before the cut.
    """
    mine = model.log_copy(partition, node_id)
    for (name, leader), replica in model.replicas.items():
        if name != partition or not replica.is_leader or replica.leader_epoch != leader_epoch:
            continue
        theirs = model.log_copy(partition, leader)
        shared_end_offset = common_end(mine, theirs) if mine.batches and theirs.batches else 0
        if end_offset < shared_end_offset:
            yield violation(
                CUT_TOO_DEEP,
                partition,
                node=node_id,
                leader=leader,
                end_offset=end_offset,
                shared_end_offset=shared_end_offset,
            )


def synced_is_durable(
    partition: str,
    node_id: int,
    *,
    synced_end_offset: int,
    recovery_point: int,
    durable_end_offset: int,
) -> Iterator[Violation]:
    """A follower vouches for what it synced, and nothing below the recovery point is scanned."""
    if durable_end_offset < max(synced_end_offset, recovery_point):
        yield violation(
            SYNCED_IS_DURABLE,
            partition,
            node=node_id,
            synced_end_offset=synced_end_offset,
            recovery_point=recovery_point,
            durable_end_offset=durable_end_offset,
        )
