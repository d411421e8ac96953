"""Reassignments: what one record may do to the replicas of a partition."""

from __future__ import annotations

from collections.abc import Iterator

from tidelog.judge.anomalies import REASSIGNMENT_IN_ORDER
from tidelog.judge.cluster.cluster_model import Violation, violation
from tidelog.judge.cluster.facts import ObservedPartition


def replicas_moved(before: ObservedPartition, after: ObservedPartition) -> Iterator[Violation]:
    """Who comes counts for nothing yet; who goes is replaced by replicas in sync, and is fenced."""
    came = frozenset(after.replicas) - frozenset(before.replicas)
    gone = frozenset(before.replicas) - frozenset(after.replicas)
    if not came <= after.adding:
        yield _broken("a replica came that is not on its way", before, after)
    if came & (after.isr | after.eligible):
        yield _broken("a replica was trusted that had nothing yet", before, after)
    if gone and after.leader_epoch <= before.leader_epoch:
        yield _broken("a replica was dropped within a leader epoch", before, after)
    if gone and after.is_moving:
        yield _broken("a replica was dropped before the end", before, after)
    kept = before.adding & frozenset(after.replicas)
    if before.is_moving and not after.is_moving and not kept <= after.isr:
        yield _broken("it ended with a new replica that is not in sync", before, after)


def _broken(what: str, before: ObservedPartition, after: ObservedPartition) -> Violation:
    return violation(
        REASSIGNMENT_IN_ORDER,
        after.partition,
        what=what,
        before=before.replicas,
        after=after.replicas,
        adding=sorted(after.adding or before.adding),
        isr=sorted(after.isr),
        leader_epoch=after.leader_epoch,
    )
