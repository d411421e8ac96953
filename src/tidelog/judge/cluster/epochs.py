"""Epochs grow: a partition's with every change, a leader's with every election, a broker's too."""

from __future__ import annotations

from collections.abc import Iterator

from tidelog.judge.cluster.facts import BrokerFacts, Complaint, PartitionFacts

NAME = "epochs grow"


def partition_epochs(before: PartitionFacts | None, after: PartitionFacts) -> Iterator[Complaint]:
    """One step for each change; a new leader needs a new leader epoch."""
    if before is None:
        return
    if after.partition_epoch <= before.partition_epoch:
        yield Complaint(
            NAME,
            after.partition,
            f"partition epoch {after.partition_epoch} after {before.partition_epoch}",
        )
    is_new_leader = after.leader is not None and after.leader != before.leader
    least = before.leader_epoch + 1 if is_new_leader else before.leader_epoch
    if after.leader_epoch < least:
        yield Complaint(
            NAME,
            after.partition,
            f"leader {after.leader} in leader epoch {after.leader_epoch} after {before.leader} "
            f"in {before.leader_epoch}",
        )


def broker_epochs(before: BrokerFacts | None, after: BrokerFacts) -> Iterator[Complaint]:
    if before is not None and after.broker_epoch < before.broker_epoch:
        yield Complaint(
            NAME,
            "-",
            f"broker {after.broker_id}: broker epoch {after.broker_epoch} "
            f"after {before.broker_epoch}",
        )
