"""What a node is to the quorum at a time, and what it may become next: a table with one door."""

from __future__ import annotations

from enum import Enum


class Role(Enum):
    """An observer (a node without a vote) is only ever unattached or a follower."""

    UNATTACHED = "unattached"
    """Knows the epoch, but no leader in it; it may have voted."""
    PROSPECTIVE = "prospective"
    """Asks whether it would be elected, before it disturbs anybody with a new epoch (KIP-996)."""
    CANDIDATE = "candidate"
    """Has begun an epoch, voted for itself, and asks the others."""
    LEADER = "leader"
    FOLLOWER = "follower"
    RESIGNED = "resigned"
    """Led this epoch, and will neither lead nor vote in it again."""


R = Role
NEXT: dict[Role, frozenset[Role]] = {
    # Resigned only at the start, by a node that stored itself as the leader.
    R.UNATTACHED: frozenset({R.UNATTACHED, R.PROSPECTIVE, R.FOLLOWER, R.RESIGNED}),
    R.PROSPECTIVE: frozenset({R.CANDIDATE, R.UNATTACHED, R.FOLLOWER}),
    R.CANDIDATE: frozenset({R.LEADER, R.PROSPECTIVE, R.UNATTACHED, R.FOLLOWER}),
    R.LEADER: frozenset({R.RESIGNED, R.UNATTACHED, R.FOLLOWER}),
    R.FOLLOWER: frozenset({R.FOLLOWER, R.UNATTACHED, R.PROSPECTIVE}),
    # Prospective only for the one voter of a quorum, which has nobody to wait for.
    R.RESIGNED: frozenset({R.UNATTACHED, R.FOLLOWER, R.PROSPECTIVE}),
}
assert set(NEXT) == set(Role)


def become(old: Role, new: Role) -> Role:
    """The role that a node changes to; no other code assigns one."""
    assert new in NEXT[old], f"{old.name} may not become {new.name}"
    return new
