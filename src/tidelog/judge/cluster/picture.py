"""The picture: everything that is known about a cluster right now, kept up by its observer.

Only the court changes it. Invariants read it, and say what in it must not be.
"""

from __future__ import annotations

from tidelog.judge.cluster.facts import (
    METADATA,
    Batch,
    BrokerFacts,
    Complaint,
    Life,
    PartitionFacts,
    QuorumFacts,
    ReplicaFacts,
)
from tidelog.judge.cluster.mirror import Committed, Mirror, agreement


class Picture:
    """Facts by node and partition; a node that is down keeps the mirrors of its logs."""

    def __init__(self) -> None:
        self.lives: dict[int, Life] = {}
        """The nodes that are up."""
        self.registered: dict[int, int] = {}
        """The broker epoch that each running node was given in this life."""
        self.replicas: dict[tuple[str, int], ReplicaFacts] = {}
        """By partition and node; only of nodes that are up."""
        self.mirrors: dict[str, dict[int, Mirror]] = {}
        self.floors: dict[tuple[str, int], int] = {}
        """Where a node that is down may have lost its tail, until it is up again."""
        self.lossy: dict[str, set[int]] = {}
        """Replicas that may have lost committed records and have not caught up since."""
        self.committed: dict[str, Committed] = {}
        self.unproven: dict[tuple[str, int], int] = {}
        """Leaders by an election that was not clean, with the end of the log that they began with:
        they have not vouched for all of it yet."""
        self.partitions: dict[str, PartitionFacts] = {}
        self.brokers: dict[int, BrokerFacts] = {}
        self.quorum: dict[int, QuorumFacts] = {}
        self.batches: dict[tuple[str, int, int], tuple[Batch, Batch | None]] = {}
        """Every batch ever seen, by partition, leader epoch and base offset, with the one before
        it."""

    def mirror(self, partition: str, node_id: int) -> Mirror:
        try:
            return self.mirrors[partition][node_id]
        except KeyError:
            return self.mirrors.setdefault(partition, {}).setdefault(node_id, Mirror())

    def committed_log(self, partition: str) -> Committed:
        found = self.committed.get(partition)
        if found is None:
            found = self.committed[partition] = Committed()
        return found

    def agreement(self, partition: str, node_id: int) -> int:
        """Up to where this replica holds what is committed."""
        return agreement(self.mirror(partition, node_id), self.committed_log(partition))

    def is_current(self, replica: ReplicaFacts) -> bool:
        """Whether this leadership is the newest that the metadata knows."""
        known = self.partitions.get(replica.partition)
        return known is not None and known.leader_epoch <= replica.leader_epoch

    def is_running(self, node_id: int) -> bool:
        """Up, and registered in this life: until then it may come back with less than it had."""
        life = self.lives.get(node_id)
        broker = self.brokers.get(node_id)
        return (
            life is not None
            and broker is not None
            and self.registered.get(node_id) == broker.broker_epoch
        )

    def names(self) -> list[str]:
        """The partitions that exist."""
        return [*self.partitions, METADATA]


def behind(picture: Picture, partition: str, node_id: int, what: str, name: str) -> list[Complaint]:
    """A complaint if this node lacks committed records."""
    committed = picture.committed_log(partition)
    agreed_end_offset = picture.agreement(partition, node_id)
    if agreed_end_offset >= committed.end_offset:
        return []
    mine = picture.mirror(partition, node_id).batches.get(agreed_end_offset)
    theirs = committed.batches.get(agreed_end_offset)
    return [
        Complaint(
            name,
            partition,
            f"{what} node {node_id} agrees up to {agreed_end_offset}, committed is "
            f"{committed.end_offset}; there it has {mine}, committed is {theirs}",
        )
    ]
