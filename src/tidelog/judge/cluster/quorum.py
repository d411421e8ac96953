"""The metadata quorum: Raft's promises, as they show in the facts of its nodes."""

from __future__ import annotations

from collections.abc import Iterator

from tidelog.judge.cluster.facts import METADATA, Complaint, Life, QuorumFacts
from tidelog.judge.cluster.picture import Picture, behind

SAFETY = "quorum election safety"
ONE_VOTE = "one vote per quorum epoch"
FORWARD = "the quorum epoch of a node never goes back"
COMPLETE = "quorum leader completeness"
MAJORITY = "a majority holds what the quorum commits"


class Votes:
    """Who led and who was voted for in each quorum epoch, over the whole run."""

    def __init__(self) -> None:
        self._leaders: dict[int, Life] = {}
        self._votes: dict[tuple[int, int], int | None] = {}
        self._newest: dict[int, int] = {}

    def on_quorum(self, facts: QuorumFacts) -> Iterator[Complaint]:
        """Restarts count: what was promised before a crash is promised after it.

        A leader that restarts has to give its epoch up: it may have lost what it never synced. A
        vote that is forgotten is a vote that can be cast twice.
        """
        node_id, quorum_epoch = facts.life.node_id, facts.quorum_epoch
        if facts.is_leader:
            first = self._leaders.setdefault(quorum_epoch, facts.life)
            if first != facts.life:
                yield Complaint(
                    SAFETY, METADATA, f"quorum epoch {quorum_epoch}: {first}, then {facts.life}"
                )
        vote = self._votes.setdefault((node_id, quorum_epoch), facts.voted_for)
        if vote is None:
            self._votes[(node_id, quorum_epoch)] = facts.voted_for
        elif vote != facts.voted_for:
            now = "does not know it" if facts.voted_for is None else f"voted for {facts.voted_for}"
            yield Complaint(
                ONE_VOTE, METADATA, f"{facts.life} voted for {vote} in {quorum_epoch}, now it {now}"
            )
        newest = self._newest.get(node_id, 0)
        if facts.is_voter and quorum_epoch < newest:
            yield Complaint(FORWARD, METADATA, f"{facts.life}: {quorum_epoch} after {newest}")
        self._newest[node_id] = max(newest, quorum_epoch)


def quorum_leader_completeness(picture: Picture, partition: str) -> Iterator[Complaint]:
    """The leader of the newest quorum epoch holds every committed record."""
    if partition != METADATA:
        return
    newest = max((facts.quorum_epoch for facts in picture.quorum.values()), default=0)
    for node_id, facts in sorted(picture.quorum.items()):
        is_up = picture.lives.get(node_id) == facts.life
        if facts.is_leader and is_up and facts.quorum_epoch == newest:
            yield from behind(picture, METADATA, node_id, "quorum leader", COMPLETE)


def quorum_majority(picture: Picture, partition: str) -> Iterator[Complaint]:
    """What is committed is on the disks of a majority of voters, running or not."""
    if partition != METADATA:
        return
    committed = picture.committed_log(METADATA)
    members = [facts for facts in picture.quorum.values() if facts.is_voter]
    holders = [
        facts
        for facts in members
        if min(facts.held_end_offset, picture.agreement(METADATA, facts.life.node_id))
        >= committed.end_offset
    ]
    if committed.end_offset and 2 * len(holders) <= len(members[0].voters):
        held = {facts.life.node_id: facts.held_end_offset for facts in members}
        yield Complaint(MAJORITY, METADATA, f"committed is {committed.end_offset}, held is {held}")
