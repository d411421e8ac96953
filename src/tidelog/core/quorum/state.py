"""What a node knows of the quorum, and the steps from one role to the next.

Each step leaves behind what it asks of the shell in a `Ready`; the machine's inputs hand it out.
"""

from __future__ import annotations

from random import Random

from tidelog.core.quorum.ballot import Ballot
from tidelog.core.quorum.leadership import Leadership
from tidelog.core.quorum.roles import Role, become
from tidelog.core.quorum.values import ElectionState, LogFacts, Ready, RoleChanged, Timing

NOMINEES = (Role.PROSPECTIVE, Role.CANDIDATE)
DOUBLINGS_MAX = 8


class QuorumState:
    """Invariants: `check`."""

    def __init__(
        self,
        *,
        node_id: int,
        voters: tuple[int, ...],
        log: LogFacts,
        timing: Timing,
        random: Random,
        stored: ElectionState | None = None,
    ) -> None:
        self.node_id = node_id
        self.voters = tuple(sorted(voters))
        self.role = Role.UNATTACHED
        self.quorum_epoch, self.leader_id, self.voted_for = stored or ElectionState()
        self.high_watermark: int | None = None
        """Everything before it is committed, as far as this node knows."""
        self.deadline_ms: int | None = None
        self.leadership: Leadership | None = None
        self._log = log
        self._timing = timing
        self._random = random
        self._stored = stored
        self._ballot: Ballot | None = None
        self._lost_elections = 0
        self._is_leader_trusted = False
        """The leader has answered a fetch, and nothing since then says that it is gone."""
        self._is_leader_gone = False
        self._may_hurry = True
        """No election has been tried since the start: the first one need not wait."""
        self._resigned_for: tuple[int, ...] = ()
        self._unaware: set[int] = set()
        """Voters that have not heard yet that this node resigned."""
        self._ready = Ready()

    # What it is

    @property
    def is_voter(self) -> bool:
        return self.node_id in self.voters

    @property
    def is_leader(self) -> bool:
        return self.role is Role.LEADER

    @property
    def others(self) -> tuple[int, ...]:
        return tuple(voter for voter in self.voters if voter != self.node_id)

    @property
    def wants_fetch(self) -> bool:
        """From the leader; while there is none known, from any voter, to hear of one."""
        return self.role in (Role.FOLLOWER, Role.UNATTACHED)

    @property
    def told_high_watermark(self) -> int | None:
        """For others. A new leader says nothing until it is sure to know the greatest one."""
        leadership = self.leadership
        return self.high_watermark if leadership is None else leadership.high_watermark

    @property
    def election(self) -> ElectionState:
        return ElectionState(self.quorum_epoch, self.leader_id, self.voted_for)

    def check(self) -> None:
        assert (self.role is Role.LEADER) == (self.leadership is not None)
        assert (self.role in NOMINEES) == (self._ballot is not None)
        assert self.quorum_epoch >= self._log.position.quorum_epoch, "records of a later epoch"
        if self.role in (Role.LEADER, Role.RESIGNED):
            assert self.leader_id == self.node_id
        else:
            assert self.leader_id != self.node_id
        if self.role is Role.CANDIDATE:
            assert self.voted_for == self.node_id and self.leader_id is None
        if self.role is Role.FOLLOWER:
            assert self.leader_id is not None
        if not self.is_voter:
            assert self.role in (Role.UNATTACHED, Role.FOLLOWER), self.role

    # Steps

    def _learn(self, leader_id: int | None, quorum_epoch: int, now_ms: int) -> None:
        """What every message tells besides its own business: an epoch, and who leads it.

        A message that names another leader of our epoch is of nobody we could follow; and one
        that names this node as the leader it no longer is says nothing new.
        """
        if quorum_epoch < self.quorum_epoch:
            return
        is_news = quorum_epoch > self.quorum_epoch
        if leader_id is None or leader_id == self.node_id or leader_id not in self.voters:
            if is_news:
                self._unattach(quorum_epoch, now_ms, "a later epoch")
        elif is_news or self.leader_id is None:
            self._follow(leader_id, quorum_epoch, now_ms, "found the leader")

    def _become(self, role: Role, because: str) -> None:
        self.role = become(self.role, role)
        if role is not Role.LEADER:
            self.leadership = None
        if role not in NOMINEES:
            self._ballot = None
        self._note(because)

    def _note(self, because: str) -> None:
        self._ready.changes.append(
            RoleChanged(
                node_id=self.node_id,
                role=self.role,
                quorum_epoch=self.quorum_epoch,
                leader_id=self.leader_id,
                because=because,
            )
        )

    def _unattach(self, quorum_epoch: int, now_ms: int, because: str) -> None:
        """A vote of the same epoch is kept: it was given."""
        keeps_timer = self.role not in (Role.LEADER, Role.FOLLOWER) and now_ms < (
            self.deadline_ms or 0
        )
        if quorum_epoch > self.quorum_epoch:
            self.leader_id = self.voted_for = None
        self.quorum_epoch = quorum_epoch
        self._become(Role.UNATTACHED, because)
        if not keeps_timer:
            self._restart_timer(now_ms)

    def _follow(self, leader_id: int, quorum_epoch: int, now_ms: int, because: str) -> None:
        if quorum_epoch > self.quorum_epoch:
            self.voted_for = None
        self.quorum_epoch, self.leader_id = quorum_epoch, leader_id
        self._is_leader_trusted = self._is_leader_gone = False
        self._become(Role.FOLLOWER, because)
        self._restart_timer(now_ms)

    def _stand(self, now_ms: int, because: str) -> None:
        """Ask for pre-votes; alone, go straight through to the leadership."""
        self._may_hurry = False
        self._become(Role.PROSPECTIVE, because)
        if self.leader_id == self.node_id:
            self.leader_id = None
        self._ballot = Ballot(self.voters, myself=self.node_id)
        self._restart_timer(now_ms)
        if self._ballot.is_won:
            self._step_forward(self._ballot, now_ms)

    def _stand_down(self, now_ms: int, because: str) -> None:
        """The pre-vote is lost. If there is a leader it is followed again."""
        if self.leader_id is None:
            self.deadline_ms = None
            self._unattach(self.quorum_epoch, now_ms, because)
            return
        was_gone = self._is_leader_gone
        self._follow(self.leader_id, self.quorum_epoch, now_ms, because)
        if was_gone:
            self._distrust_leader()
            voters = len(self.voters)
            wait_ms = self._timing.stagger_ms * (voters + self._random.randrange(2 * voters))
            longest_ms = max(wait_ms, self._timing.election_timeout_ms)
            self.deadline_ms = now_ms + min(wait_ms << self._lost_elections, longest_ms)
            self._lost_elections = min(self._lost_elections + 1, DOUBLINGS_MAX)

    def _step_forward(self, ballot: Ballot, now_ms: int) -> None:
        if self.role is Role.PROSPECTIVE:
            self.quorum_epoch += 1
            self.leader_id, self.voted_for = None, self.node_id
            self._become(Role.CANDIDATE, "pre-vote won")
            self._ballot = Ballot(self.voters, myself=self.node_id)
            self._restart_timer(now_ms)
            if self._ballot.is_won:
                self._step_forward(self._ballot, now_ms)
            return
        self.leader_id = self.node_id
        self._lost_elections = 0
        self._become(Role.LEADER, "elected")
        self.leadership = Leadership(
            node_id=self.node_id,
            voters=self.voters,
            epoch_start_offset=self._log.position.end_offset,
            granted_by=ballot.granted,
            timing=self._timing,
            now_ms=now_ms,
        )
        self._set_leader_deadline(now_ms)

    def _resign(self, now_ms: int, because: str) -> None:
        assert self.leadership is not None
        self._resigned_for = self.leadership.successors()
        self._unaware = set(self.others)
        self._become(Role.RESIGNED, because)
        self._restart_timer(now_ms)

    def _distrust_leader(self) -> None:
        self._is_leader_trusted, self._is_leader_gone = False, True

    # Timers

    def _restart_timer(self, now_ms: int) -> None:
        if not self.is_voter:
            self.deadline_ms = None
        elif self.role is Role.FOLLOWER:
            self.deadline_ms = now_ms + self._timing.fetch_timeout_ms
        else:
            timeout_ms = self._timing.election_timeout_ms
            self.deadline_ms = now_ms + timeout_ms + self._random.randrange(max(1, timeout_ms))

    def _begin_by_rank(self, now_ms: int, *, without: int | None) -> None:
        """Several voters see the same at the same time: the first of them begins."""
        ranked = [voter for voter in self.voters if voter != without]
        if self.node_id in ranked:
            self._begin_after(ranked.index(self.node_id), now_ms)

    def _begin_after(self, rank: int, now_ms: int) -> None:
        wait_ms = min(rank * self._timing.stagger_ms, self._timing.election_backoff_max_ms)
        self.deadline_ms = now_ms + wait_ms

    def _set_leader_deadline(self, now_ms: int) -> None:
        """The next thing that time alone brings; a wish that is due already is the shell's."""
        leadership = self.leadership
        assert leadership is not None
        self.deadline_ms = leadership.check_quorum_deadline_ms
        begin_ms = leadership.next_begin_ms(after_ms=now_ms)
        if self.deadline_ms is None or (begin_ms is not None and begin_ms < self.deadline_ms):
            self.deadline_ms = begin_ms

    def _take(self) -> Ready:
        ready, self._ready = self._ready, Ready()
        if self.election != self._stored:
            ready.store = self._stored = self.election
        return ready
