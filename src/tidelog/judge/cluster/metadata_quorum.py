"""The metadata quorum: Raft's promises, and metadata that is applied only when committed."""

from __future__ import annotations

from collections.abc import Iterator

from tidelog.judge.anomalies import (
    METADATA_AGREES,
    METADATA_COMMITTED,
    ONE_VOTE,
    QUORUM_ELECTION_SAFETY,
    QUORUM_EPOCH_FORWARD,
    QUORUM_LEADER_COMPLETENESS,
    QUORUM_MAJORITY,
)
from tidelog.judge.cluster.cluster_model import ClusterModel, Violation, lacking, violation
from tidelog.judge.cluster.facts import METADATA, Incarnation, ObservedQuorumNode


class Votes:
    """Who led and who was voted for in each quorum epoch, over the whole run."""

    def __init__(self) -> None:
        self._leaders: dict[int, Incarnation] = {}
        self._votes: dict[tuple[int, int], int | None] = {}
        self._newest: dict[int, int] = {}

    def on_quorum(self, facts: ObservedQuorumNode) -> Iterator[Violation]:
        """Restarts count: what was promised before a crash is promised after it.

        A leader that restarts has to give its epoch up: it may have lost what it never synced. A
        vote that is forgotten is a vote that can be cast twice.
        """
        node_id, quorum_epoch = facts.incarnation.node_id, facts.quorum_epoch
        if facts.is_leader:
            first = self._leaders.setdefault(quorum_epoch, facts.incarnation)
            if first != facts.incarnation:
                yield violation(
                    QUORUM_ELECTION_SAFETY,
                    METADATA,
                    quorum_epoch=quorum_epoch,
                    first=first,
                    second=facts.incarnation,
                )
        vote = self._votes.setdefault((node_id, quorum_epoch), facts.voted_for)
        if vote is None:
            self._votes[(node_id, quorum_epoch)] = facts.voted_for
        elif vote != facts.voted_for:
            second = {} if facts.voted_for is None else {"second_vote": facts.voted_for}
            yield violation(
                ONE_VOTE,
                METADATA,
                node=facts.incarnation,
                vote=vote,
                quorum_epoch=quorum_epoch,
                **second,
            )
        newest = self._newest.get(node_id, 0)
        if facts.is_voter and quorum_epoch < newest:
            yield violation(
                QUORUM_EPOCH_FORWARD,
                METADATA,
                node=facts.incarnation,
                quorum_epoch=quorum_epoch,
                quorum_epoch_before=newest,
            )
        self._newest[node_id] = max(newest, quorum_epoch)


def quorum_leader_completeness(model: ClusterModel, partition: str) -> Iterator[Violation]:
    """The leader of the newest quorum epoch holds every committed record."""
    if partition != METADATA:
        return
    newest = max((facts.quorum_epoch for facts in model.quorum.values()), default=0)
    for node_id, facts in sorted(model.quorum.items()):
        is_up = model.incarnations.get(node_id) == facts.incarnation
        if facts.is_leader and is_up and facts.quorum_epoch == newest:
            yield from lacking(
                model, METADATA, node_id, role="quorum leader", kind=QUORUM_LEADER_COMPLETENESS
            )


def quorum_majority(model: ClusterModel, partition: str) -> Iterator[Violation]:
    """What is committed is on the disks of a majority of voters, running or not."""
    if partition != METADATA:
        return
    committed = model.committed_log(METADATA)
    members = [facts for facts in model.quorum.values() if facts.is_voter]
    holders = [
        facts
        for facts in members
        if min(facts.held_end_offset, model.agreement(METADATA, facts.incarnation.node_id))
        >= committed.end_offset
    ]
    if committed.end_offset and 2 * len(holders) <= len(members[0].voters):
        held = {facts.incarnation.node_id: facts.held_end_offset for facts in members}
        yield violation(
            QUORUM_MAJORITY, METADATA, committed_end_offset=committed.end_offset, held=held
        )


def applied_is_committed(model: ClusterModel, facts: ObservedQuorumNode) -> Iterator[Violation]:
    """A node's image holds nothing beyond what the quorum has committed."""
    committed_end_offset = model.committed_log(METADATA).end_offset
    if facts.applied_end_offset > committed_end_offset:
        yield violation(
            METADATA_COMMITTED,
            METADATA,
            node=facts.incarnation,
            applied_end_offset=facts.applied_end_offset,
            committed_end_offset=committed_end_offset,
        )


def image_differs(incarnation: Incarnation, difference: str) -> Iterator[Violation]:
    """A node that has applied as much as is committed believes something else."""
    yield violation(METADATA_AGREES, METADATA, node=incarnation, difference=difference)
