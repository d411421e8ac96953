"""The cluster as its observer has described it so far: nodes, replicas, logs and metadata.

The checker and its helpers keep it up; invariants read it, and return what in it must not be.
"""

from __future__ import annotations

from typing import NamedTuple

from tidelog.judge.anomalies import AnomalyKind
from tidelog.judge.cluster.facts import (
    METADATA,
    Incarnation,
    ObservedBatch,
    ObservedBroker,
    ObservedPartition,
    ObservedQuorumNode,
    ObservedReplica,
)
from tidelog.judge.cluster.log_copies import CommittedLog, LogCopy, agreement


class ClusterModel:
    """Facts by node and partition; a node that is down keeps the copies of its logs."""

    def __init__(self) -> None:
        self.incarnations: dict[int, Incarnation] = {}
        """The nodes that are up."""
        self.registered: dict[int, int] = {}
        """The broker epoch that each running node was given in this life."""
        self.replicas: dict[tuple[str, int], ObservedReplica] = {}
        """By partition and node; only of nodes that are up."""
        self.log_copies: dict[str, dict[int, LogCopy]] = {}
        self.floors: dict[tuple[str, int], int] = {}
        """Where a node that is down may have lost its tail, until it is up again."""
        self.lossy: dict[str, set[int]] = {}
        """Replicas that may have lost committed records and have not caught up since."""
        self.committed: dict[str, CommittedLog] = {}
        self.unproven: dict[tuple[str, int], int] = {}
        """Leaders by an election that was not clean, with the end of the log that they began with:
        they have not vouched for all of it yet."""
        self.partitions: dict[str, ObservedPartition] = {}
        self.brokers: dict[int, ObservedBroker] = {}
        self.quorum: dict[int, ObservedQuorumNode] = {}
        self.batches: dict[tuple[str, int, int], tuple[ObservedBatch, ObservedBatch | None]] = {}
        """Every batch ever seen, by partition, leader epoch and base offset, with the one before
        it."""

    def log_copy(self, partition: str, node_id: int) -> LogCopy:
        try:
            return self.log_copies[partition][node_id]
        except KeyError:
            return self.log_copies.setdefault(partition, {}).setdefault(node_id, LogCopy())

    def committed_log(self, partition: str) -> CommittedLog:
        found = self.committed.get(partition)
        if found is None:
            found = self.committed[partition] = CommittedLog()
        return found

    def agreement(self, partition: str, node_id: int) -> int:
        """Up to where this replica holds what is committed."""
        return agreement(self.log_copy(partition, node_id), self.committed_log(partition))

    def is_current(self, replica: ObservedReplica) -> bool:
        """Whether this leadership is the newest that the metadata knows."""
        known = self.partitions.get(replica.partition)
        return known is not None and known.leader_epoch <= replica.leader_epoch

    def is_running(self, node_id: int) -> bool:
        """Up, and registered in this life: until then it may come back with less than it had."""
        incarnation = self.incarnations.get(node_id)
        broker = self.brokers.get(node_id)
        return (
            incarnation is not None
            and broker is not None
            and self.registered.get(node_id) == broker.broker_epoch
        )

    def names(self) -> list[str]:
        """The partitions that exist."""
        return [*self.partitions, METADATA]


class Violation(NamedTuple):
    """An invariant that does not hold, and where."""

    kind: AnomalyKind
    partition: str
    evidence: dict[str, object]


def violation(kind: AnomalyKind, partition: str, **evidence: object) -> Violation:
    return Violation(kind, partition, evidence)


def lacking(
    model: ClusterModel, partition: str, node_id: int, *, role: str, kind: AnomalyKind
) -> list[Violation]:
    """A violation if this node lacks committed records."""
    committed = model.committed_log(partition)
    agreed_end_offset = model.agreement(partition, node_id)
    if agreed_end_offset >= committed.end_offset:
        return []
    return [
        violation(
            kind,
            partition,
            role=role,
            node=node_id,
            agreed_end_offset=agreed_end_offset,
            committed_end_offset=committed.end_offset,
            found=model.log_copy(partition, node_id).batches.get(agreed_end_offset),
            expected=committed.batches.get(agreed_end_offset),
        )
    ]
