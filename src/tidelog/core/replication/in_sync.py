"""The in-sync set as its leader sees it: what the controller committed, and what was proposed.

A leader proposes, the controller decides, and everyone reads the metadata log. In between the
leader counts with the *maximal* set: a proposed member counts already, one that is to leave counts
still. So whatever the controller makes of the proposal, nothing was called committed too early
(KIP-497).
"""

from __future__ import annotations

from typing import NamedTuple


class Proposal(NamedTuple):
    """The set that a leader asks for, and the state for which it was decided."""

    isr: tuple[int, ...]
    leader_epoch: int
    partition_epoch: int


class InSync:
    """Invariants: at most one proposal is pending; committed is part of maximal."""

    __slots__ = ("committed", "leader_epoch", "maximal", "partition_epoch", "pending")

    def __init__(
        self, *, committed: tuple[int, ...], leader_epoch: int, partition_epoch: int
    ) -> None:
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.committed = committed
        self.maximal = frozenset(committed)
        self.pending: Proposal | None = None

    def propose(self, isr: tuple[int, ...]) -> Proposal:
        """Ask for another set; until that is decided nobody else may join or leave."""
        assert self.pending is None, "one proposal at a time"
        assert set(isr) != set(self.committed), "nothing new"
        self.pending = Proposal(isr, self.leader_epoch, self.partition_epoch)
        self.maximal = frozenset(self.committed) | frozenset(isr)
        return self.pending

    def commit(self, isr: tuple[int, ...], *, partition_epoch: int) -> bool:
        """The controller has this set now; whatever was pending is decided. False: old news."""
        if partition_epoch < self.partition_epoch:
            return False
        self.partition_epoch = partition_epoch
        self.committed = isr
        self.maximal = frozenset(isr)
        self.pending = None
        return True

    def withdraw(self) -> None:
        """The controller surely did not apply the proposal: back to what is committed.

        Not for every refusal. Most of them say that our state is stale; then the larger set counts
        until the metadata says what is.
        """
        assert self.pending is not None, "nothing is proposed"
        self.pending = None
        self.maximal = frozenset(self.committed)

    def check(self) -> None:
        assert self.maximal >= frozenset(self.committed), self.committed
        if self.pending is None:
            assert self.maximal == frozenset(self.committed), self.committed
        else:
            assert self.maximal == frozenset(self.committed) | frozenset(self.pending.isr)
            assert self.pending.leader_epoch == self.leader_epoch, self.pending
