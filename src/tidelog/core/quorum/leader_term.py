"""One leader's term: how far each voter is, what a majority holds, whether one still listens."""

from __future__ import annotations

from collections.abc import Iterable

from tidelog.core.quorum.ballot import majority_of
from tidelog.core.quorum.values import Timing

OBSERVER_IDLE_MS_MAX = 300_000
"""How long an observer may be silent before it is forgotten."""


class FetchProgress:
    """What a leader knows of one replica of the log."""

    __slots__ = ("_leader_end_offset", "begin_due_ms", "caught_up_ms", "end_offset", "fetched_ms")

    def __init__(self, now_ms: int) -> None:
        self.end_offset: int | None = None
        """Where its log ends, durably if it is a voter; None until it has asked."""
        self.fetched_ms: int | None = None
        self.caught_up_ms: int | None = None
        self.begin_due_ms = now_ms
        """When this voter gets BeginQuorumEpoch, unless it fetches before."""
        self._leader_end_offset: int | None = None

    def on_fetch(self, end_offset: int, *, leader_end_offset: int, now_ms: int) -> None:
        if end_offset >= leader_end_offset:
            self.caught_up_ms = now_ms
        elif self._leader_end_offset is not None and end_offset >= self._leader_end_offset:
            self.caught_up_ms = self.fetched_ms
        self._leader_end_offset = leader_end_offset
        self.fetched_ms = now_ms
        self.end_offset = end_offset


class LeaderTerm:
    """Invariant: the high watermark only grows, and lies beyond the start of this epoch."""

    def __init__(
        self,
        *,
        node_id: int,
        voters: Iterable[int],
        epoch_start_offset: int,
        granted_by: tuple[int, ...],
        timing: Timing,
        now_ms: int,
    ) -> None:
        self._node_id = node_id
        self._timing = timing
        self.epoch_start_offset = epoch_start_offset
        self.granted_by = granted_by
        self.voters = {voter: FetchProgress(now_ms) for voter in sorted(voters)}
        self.observers: dict[int, FetchProgress] = {}
        self.high_watermark: int | None = None
        self._heard: set[int] = set()
        self._check_ms = now_ms + timing.check_quorum_ms

    @property
    def check_quorum_deadline_ms(self) -> int | None:
        """By then a majority must have fetched; a voter alone has nobody to hear from."""
        return None if len(self.voters) == 1 else self._check_ms

    def next_begin_ms(self, *, after_ms: int) -> int | None:
        """When the next voter has been silent for too long."""
        others = (p.begin_due_ms for voter, p in self.voters.items() if voter != self._node_id)
        return min((due_ms for due_ms in others if due_ms > after_ms), default=None)

    def on_own_end(self, synced_end_offset: int) -> bool:
        """True if the high watermark moved. Only what is durable here counts for the majority."""
        self.voters[self._node_id].end_offset = synced_end_offset
        return self._advance()

    def on_fetch(
        self, replica_id: int, end_offset: int, *, leader_end_offset: int, now_ms: int
    ) -> bool:
        """A replica asks for records from the end of its log on: its acknowledgement."""
        assert replica_id != self._node_id, "a leader does not fetch"
        progress = self.voters.get(replica_id)
        if progress is None:
            progress = self.observers.setdefault(replica_id, FetchProgress(now_ms))
            progress.on_fetch(end_offset, leader_end_offset=leader_end_offset, now_ms=now_ms)
            return False
        progress.on_fetch(end_offset, leader_end_offset=leader_end_offset, now_ms=now_ms)
        self.on_heard(replica_id, now_ms)
        return self._advance()

    def on_heard(self, replica_id: int, now_ms: int) -> None:
        """A sign of a follower that takes us for its leader."""
        progress = self.voters.get(replica_id)
        if progress is None:
            return
        progress.begin_due_ms = now_ms + self._timing.begin_again_ms
        self._heard.add(replica_id)
        if len(self._heard) + 1 >= majority_of(len(self.voters)):
            self._heard.clear()
            self._check_ms = now_ms + self._timing.check_quorum_ms

    def on_begin_answered(self, voter: int, now_ms: int) -> None:
        self.voters[voter].begin_due_ms = now_ms + self._timing.begin_again_ms

    def forget_idle_observers(self, now_ms: int) -> None:
        for observer, progress in list(self.observers.items()):
            fetched_ms = progress.fetched_ms
            if fetched_ms is None or now_ms - fetched_ms >= OBSERVER_IDLE_MS_MAX:
                del self.observers[observer]

    def successors(self) -> tuple[int, ...]:
        """The other voters, those with the longest logs first."""
        others = [voter for voter in self.voters if voter != self._node_id]
        return tuple(sorted(others, key=lambda voter: (-(self._end_of(voter)), voter)))

    def _end_of(self, voter: int) -> int:
        end_offset = self.voters[voter].end_offset
        return 0 if end_offset is None else end_offset

    def _advance(self) -> bool:
        """What a majority holds, once that includes a record of this epoch.

        1. Leader 1 of epoch 2 writes record 5 and dies; only node 2 has it.
        2. Node 3 leads epoch 3 without it, and writes another record 5; nobody else gets it.
        3. Node 1 leads epoch 4. It copies its old record 5 to node 2: a majority has it now.
        4. Were it committed by that, node 3 could still win epoch 5, since its record 5 is of a
           later epoch, and replace what was committed. A majority that has a record of epoch 4
           does not elect node 3.
        """
        ends = sorted((self._end_of(voter) for voter in self.voters), reverse=True)
        agreed = ends[len(ends) // 2]
        if agreed <= self.epoch_start_offset:
            return False
        if self.high_watermark is not None and agreed <= self.high_watermark:
            return False
        self.high_watermark = agreed
        return True
