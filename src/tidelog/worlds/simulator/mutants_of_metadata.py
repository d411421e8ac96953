"""Mutants of the controller, the metadata and its quorum: who may decide, and what follows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from tidelog.core.controller import partition_change
from tidelog.core.controller.election import Elected, Election, elect
from tidelog.core.controller.partition_changes import PartitionChanges
from tidelog.core.metadata import image
from tidelog.core.metadata.cluster import PartitionState, partition_after
from tidelog.core.quorum.leader_term import LeaderTerm
from tidelog.judge.anomalies import (
    ELECTION_ALLOWED,
    EPOCHS_GROW,
    NO_FENCED_IN_SYNC,
    QUORUM_LEADER_COMPLETENESS,
    QUORUM_MAJORITY,
)
from tidelog.worlds.simulator.mutant import Mutant, Patch, replication_mutant


def commit_alone(self: LeaderTerm) -> bool:
    """What the quorum's leader has counts as held by a majority."""
    agreed = max(self._end_of(voter) for voter in self.voters)
    if agreed <= self.epoch_start_offset:
        return False
    if self.high_watermark is not None and agreed <= self.high_watermark:
        return False
    self.high_watermark = agreed
    return True


def elect_anybody(before: PartitionState, *, election: Election, **rest: Any) -> Elected:
    """Any replica that lives may lead, whatever the topic's setting says."""
    return elect(before, election=Election.UNCLEAN, **rest)


def keep_the_leader_epoch(state: PartitionState, record: Any) -> PartitionState:
    """A new leader goes on in its predecessor's leader epoch."""
    return replace(partition_after(state, record), leader_epoch=state.leader_epoch)


def stay_in_sync(self: PartitionChanges, keys: Iterable[object]) -> None:
    """A broker that is fenced stays in the in-sync sets."""


METADATA_MUTANTS: tuple[Mutant, ...] = (
    replication_mutant(
        "quorum-leader-commits-alone",
        "the quorum's leader commits what no other voter has",
        caught_by=[QUORUM_MAJORITY, QUORUM_LEADER_COMPLETENESS],
        within=10,
        patches=[Patch(LeaderTerm, "_advance", commit_alone)],
    ),
    replication_mutant(
        "elect-anybody",
        "any replica that lives may lead, whatever the topic's setting says",
        caught_by=[ELECTION_ALLOWED],
        within=10,
        patches=[Patch(partition_change, "elect", elect_anybody)],
    ),
    replication_mutant(
        "keep-the-leader-epoch",
        "a new leader goes on in its predecessor's leader epoch",
        caught_by=[EPOCHS_GROW],
        within=10,
        patches=[Patch(image, "partition_after", keep_the_leader_epoch)],
    ),
    replication_mutant(
        "fenced-stay-in-sync",
        "a broker that is fenced stays in the in-sync sets",
        caught_by=[NO_FENCED_IN_SYNC],
        within=10,
        patches=[Patch(PartitionChanges, "without_leaving", stay_in_sync)],
    ),
)
