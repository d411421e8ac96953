"""A cluster of three made of facts alone: healthy until a test plants a violation."""

from __future__ import annotations

from dataclasses import replace

from tidelog.judge.cluster.checker import ClusterChecker
from tidelog.judge.cluster.facts import (
    METADATA,
    Incarnation,
    ObservedBatch,
    ObservedBroker,
    ObservedPartition,
    ObservedQuorumNode,
    ObservedReplica,
)

P = "orders-0"
NODES = (1, 2, 3)


def batch(
    base_offset: int, leader_epoch: int = 0, *, by: str = "a", count: int = 1
) -> ObservedBatch:
    return ObservedBatch(base_offset, base_offset + count, leader_epoch, ord(by))


class Facts:
    """Three running brokers, one partition led by 1 in leader epoch 0, the quorum led by 1."""

    def __init__(self) -> None:
        self.now_us = 0
        self.checker = ClusterChecker(now_us=lambda: self.now_us)
        self.incarnations = {node: Incarnation(node, 1) for node in NODES}
        self.partition = ObservedPartition(
            partition=P,
            replicas=NODES,
            isr=frozenset(NODES),
            eligible=frozenset(),
            last_known_leaders=(),
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
            minimum=2,
            allows_unclean=False,
        )
        self.replicas = {node: self._replica(node) for node in NODES}
        self.quorum = {node: self._quorum(node) for node in NODES}
        for node in NODES:
            self.checker.on_up(self.incarnations[node])
            self.checker.on_registered(node, 10 + node)
            self.checker.on_broker(
                ObservedBroker(broker_id=node, broker_epoch=10 + node, is_fenced=False)
            )
        self.checker.on_partition(self.partition)
        for node in NODES:
            self.checker.on_log(P, node, start_offset=0)
            self.checker.on_replica(self.replicas[node])
            self.checker.on_log(METADATA, node, start_offset=0)
            self.checker.on_quorum(self.quorum[node])

    def _replica(self, node: int) -> ObservedReplica:
        return ObservedReplica(
            incarnation=self.incarnations[node],
            partition=P,
            is_leader=node == 1,
            leader_epoch=0,
            isr=frozenset(NODES) if node == 1 else frozenset(),
            maximal_isr=frozenset(NODES) if node == 1 else frozenset(),
            minimum=2,
            high_watermark=0,
            held_end_offset=0,
        )

    def _quorum(self, node: int) -> ObservedQuorumNode:
        return ObservedQuorumNode(
            incarnation=self.incarnations[node],
            voters=NODES,
            quorum_epoch=1,
            is_leader=node == 1,
            voted_for=1,
            high_watermark=0,
            held_end_offset=0,
            applied_end_offset=0,
        )

    # Words for what happens.

    def append(self, node: int, *batches: ObservedBatch, cut_to: int | None = None) -> None:
        """A replica's log grows, and it vouches for all of it."""
        self.checker.on_log(P, node, start_offset=0, cut_to=cut_to, appended=batches)
        self.replica(node, held_end_offset=self.checker.model.log_copy(P, node).end_offset)

    def replica(self, node: int, **changed: object) -> None:
        self.replicas[node] = replace(self.replicas[node], **changed)  # type: ignore[arg-type]
        self.checker.on_replica(self.replicas[node])

    def commit(self, node: int, high_watermark: int) -> None:
        self.replica(node, high_watermark=high_watermark)

    def metadata(self, **changed: object) -> None:
        """A committed change of the partition."""
        partition_epoch = self.partition.partition_epoch + 1
        facts = {"partition_epoch": partition_epoch, **changed}
        self.partition = replace(self.partition, **facts)  # type: ignore[arg-type]
        self.checker.on_partition(self.partition)

    def elect(self, node: int, leader_epoch: int, **changed: object) -> None:
        """Metadata names a leader, and it leads with the in-sync set that it was given."""
        self.metadata(leader=node, leader_epoch=leader_epoch, **changed)
        isr = self.partition.isr
        self.replica(node, is_leader=True, leader_epoch=leader_epoch, isr=isr, maximal_isr=isr)

    def member(self, node: int, **changed: object) -> None:
        """A node's part in the quorum changes."""
        self.quorum[node] = replace(self.quorum[node], **changed)  # type: ignore[arg-type]
        self.checker.on_quorum(self.quorum[node])

    def write_metadata(self, node: int, *batches: ObservedBatch) -> None:
        self.checker.on_log(METADATA, node, start_offset=0, appended=batches)
        end_offset = self.checker.model.log_copy(METADATA, node).end_offset
        self.member(node, held_end_offset=end_offset)

    def restart(self, node: int) -> Incarnation:
        self.checker.on_down(node, floors=None)
        self.incarnations[node] = incarnation = Incarnation(
            node, self.incarnations[node].number + 1
        )
        self.replicas[node] = replace(self.replicas[node], incarnation=incarnation, is_leader=False)
        self.quorum[node] = replace(self.quorum[node], incarnation=incarnation, is_leader=False)
        self.checker.on_up(incarnation)
        return incarnation

    def found(self) -> set[str]:
        """The invariants that the checker has seen broken, looking at what was touched."""
        self.checker.check_step()
        return {anomaly.name for anomaly in self.checker.anomalies}

    def replicated(self, count: int = 1) -> None:
        """Records that everybody holds and the leader committed."""
        batches = [batch(offset) for offset in range(count)]
        for node in NODES:
            self.append(node, *batches)
        self.commit(1, count)
