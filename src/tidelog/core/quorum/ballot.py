"""The votes of one election: who said yes, who said no, and whether that decides it."""

from __future__ import annotations

from collections.abc import Iterable


def majority_of(voters_count: int) -> int:
    return voters_count // 2 + 1


class Ballot:
    """Invariant: nobody has said both."""

    def __init__(self, voters: Iterable[int], *, myself: int) -> None:
        self._voters = frozenset(voters)
        self._granted = {myself}
        self._rejected: set[int] = set()
        assert myself in self._voters, "only a voter stands for election"

    def record(self, voter: int, *, is_granted: bool) -> None:
        """A voter's word; the first one counts."""
        if voter in self.unanswered:
            (self._granted if is_granted else self._rejected).add(voter)

    @property
    def is_won(self) -> bool:
        return len(self._granted) >= majority_of(len(self._voters))

    @property
    def is_lost(self) -> bool:
        return len(self._voters) - len(self._rejected) < majority_of(len(self._voters))

    @property
    def granted(self) -> tuple[int, ...]:
        return tuple(sorted(self._granted))

    @property
    def unanswered(self) -> frozenset[int]:
        return self._voters - self._granted - self._rejected
