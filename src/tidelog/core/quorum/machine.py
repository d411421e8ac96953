"""The quorum's machine: elections, epochs and the high watermark of the metadata log.

KRaft's form of Raft. Followers pull records; a fetch's offset is the follower's acknowledgement, so
a leader counts what voters have made durable. An election begins with a pre-vote (KIP-996): only
who would win begins an epoch. A leader that no majority listens to resigns (check quorum).

Inputs are the `on_*` methods, each with the time; each returns a `Ready`, to be carried out in its
order. `request_for` says what to send to another voter; it says so until the answer came, so the
shell may repeat it after a failure as it likes. Whether to fetch, and from whom, is said by
`wants_fetch` and `leader_id`. `deadline_ms` says when `on_tick` is due.
"""

from __future__ import annotations

from random import Random

from tidelog.core.model.errors import ErrorCode
from tidelog.core.quorum.ballot import Ballot, majority_of
from tidelog.core.quorum.leader_term import LeaderTerm
from tidelog.core.quorum.roles import Role, become
from tidelog.core.quorum.values import (
    BeginEpoch,
    Call,
    ElectionState,
    EndEpoch,
    LogFacts,
    Ready,
    RoleChanged,
    Timing,
    VoteAnswer,
    VoteCall,
    VoteGranted,
)

NOMINEES = (Role.PROSPECTIVE, Role.CANDIDATE)
DOUBLINGS_MAX = 8
BACKOFF_FIRST_MS = 40
"""Maximum wait of a candidate that lost; it doubles each time it loses again."""


# Size: one machine; its inputs and its steps from role to role share all of its state.
class Quorum:
    """See the module. Invariants: `check`."""

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
        self.leadership: LeaderTerm | None = None
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
    def published_high_watermark(self) -> int | None:
        """For others. A new leader publishes none until it is sure to know the greatest one."""
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

    # What it wants

    def request_for(self, voter: int, now_ms: int) -> Call | None:
        """What to ask this voter, if anything."""
        if self.role in NOMINEES:
            ballot = self._ballot
            assert ballot is not None
            return self._vote_call() if voter in ballot.unanswered and not ballot.is_lost else None
        if self.leadership is not None:
            if now_ms >= self.leadership.voters[voter].begin_due_ms:
                return BeginEpoch(leader_id=self.node_id, quorum_epoch=self.quorum_epoch)
        elif self.role is Role.RESIGNED and voter in self._unaware:
            return EndEpoch(
                leader_id=self.node_id,
                quorum_epoch=self.quorum_epoch,
                preferred=self._resigned_for,
            )
        return None

    def _vote_call(self) -> VoteCall:
        return VoteCall(
            candidate_id=self.node_id,
            quorum_epoch=self.quorum_epoch,
            position=self._log.position,
            is_pre_vote=self.role is Role.PROSPECTIVE,
        )

    # Beginning

    def on_start(self, now_ms: int) -> Ready:
        """Take up what was stored: never as the leader, and never as the same candidate.

        A leader starts resigned: it could have lost records that it wrote, and another record of
        the same epoch at the same offset could be told from them by nobody. A candidate does not
        ask again in its epoch:

          1. Node 1 has records 8 and 9, not synced, asks for votes with them, and gets node 2's.
          2. It loses power, and records 8 and 9. Nodes 2 and 3 have them durably: committed.
          3. Were it to ask again in that epoch, node 2 would have promised its vote already.
        """
        newest = self._log.position.quorum_epoch
        if self.quorum_epoch < newest:
            self.quorum_epoch, self.leader_id, self.voted_for = newest, None, None
        if not self.is_voter and self.leader_id == self.node_id:
            self.leader_id = None
        if self.leader_id == self.node_id:
            self.role = become(self.role, Role.RESIGNED)
            self._unaware = set(self.others)
        elif self.leader_id is not None:
            self.role = become(self.role, Role.FOLLOWER)
        self._restart_timer(now_ms)
        self._note("started")
        if self.voters == (self.node_id,):
            self._stand(now_ms, "only voter")
        return self._take()

    def on_reachable(self, voters_count: int, now_ms: int) -> Ready:
        """This many other voters can be reached. A majority at the start need not wait longer."""
        may_begin = (
            self._may_hurry
            and self.is_voter
            and self.role is Role.UNATTACHED
            and self.leader_id is None
            and self.voted_for is None
            and voters_count + 1 >= majority_of(len(self.voters))
        )
        if may_begin:
            self._may_hurry = False
            self._begin_by_rank(now_ms, without=None)
        return self._take()

    # Time

    def on_tick(self, now_ms: int) -> Ready:
        if self.deadline_ms is not None and now_ms >= self.deadline_ms:
            self._on_deadline(now_ms)
        return self._take()

    def _on_deadline(self, now_ms: int) -> None:
        if not self.is_voter:
            self.deadline_ms = None
        elif self.role in (Role.UNATTACHED, Role.FOLLOWER):
            gone = self._is_leader_gone or self.role is Role.UNATTACHED
            self._stand(now_ms, "no leader" if gone else "fetch timeout")
        elif self.role is Role.PROSPECTIVE:
            self._stand_down(now_ms, "no answers to the pre-vote")
        elif self.role is Role.CANDIDATE:
            self._stand(now_ms, "not elected")
        elif self.role is Role.RESIGNED:
            self._unattach(self.quorum_epoch + 1, now_ms, "resigned long enough")
            self._begin_by_rank(now_ms, without=None)
        else:
            self._on_leader_deadline(now_ms)

    def _on_leader_deadline(self, now_ms: int) -> None:
        leadership = self.leadership
        assert leadership is not None
        check_ms = leadership.check_quorum_deadline_ms
        if check_ms is not None and now_ms >= check_ms:
            self._resign(now_ms, "no majority fetches")
        else:
            self._set_leader_deadline(now_ms)

    # Votes

    def on_vote_call(self, call: VoteCall, now_ms: int) -> Ready:
        """Somebody wants to be elected. The answer is in `reply`, behind `store`."""
        pre = call.is_pre_vote
        newest = call.position.quorum_epoch
        if newest > call.quorum_epoch or (newest == call.quorum_epoch and not pre):
            return self._reply(ErrorCode.INVALID_REQUEST)
        if call.quorum_epoch < self.quorum_epoch:
            return self._reply(ErrorCode.FENCED_LEADER_EPOCH)
        if call.quorum_epoch > self.quorum_epoch:
            self._unattach(call.quorum_epoch, now_ms, "a later epoch")
        granted = (
            self.is_voter
            and call.candidate_id in self.others
            and call.position >= self._log.position
            and (self._may_pre_vote() if pre else self._may_vote_for(call.candidate_id))
        )
        if granted and not pre and self.voted_for is None:
            self.voted_for = call.candidate_id
            self._ready.granted = VoteGranted(
                node_id=self.node_id,
                quorum_epoch=self.quorum_epoch,
                candidate_id=call.candidate_id,
            )
            self._restart_timer(now_ms)
        return self._reply(ErrorCode.NONE, is_granted=granted)

    def _may_pre_vote(self) -> bool:
        """Not while we hear a leader: whoever asks has merely lost its own way to it."""
        if self.role is Role.FOLLOWER:
            return not self._is_leader_trusted
        return self.role is not Role.LEADER

    def _may_vote_for(self, candidate_id: int) -> bool:
        if self.role not in (Role.UNATTACHED, Role.PROSPECTIVE):
            return False
        if self.voted_for is not None:
            return self.voted_for == candidate_id
        return self.leader_id is None

    def on_vote_answer(self, voter: int, call: VoteCall, answer: VoteAnswer, now_ms: int) -> Ready:
        self._learn(answer.leader_id, answer.quorum_epoch, now_ms)
        ballot = self._ballot
        is_current = (
            answer.error == ErrorCode.NONE
            and answer.quorum_epoch == call.quorum_epoch == self.quorum_epoch
            and call.is_pre_vote == (self.role is Role.PROSPECTIVE)
        )
        if ballot is None or not is_current:
            return self._take()
        ballot.record(voter, is_granted=answer.is_granted)
        if ballot.is_won:
            self._step_forward(ballot, now_ms)
        elif ballot.is_lost:
            self._on_lost(now_ms)
        return self._take()

    def _on_lost(self, now_ms: int) -> None:
        if self.role is Role.PROSPECTIVE:
            self._stand_down(now_ms, "pre-vote refused")
            return
        self._lost_elections = min(self._lost_elections + 1, DOUBLINGS_MAX)
        backoff_ms = min(
            self._timing.election_backoff_max_ms, BACKOFF_FIRST_MS << self._lost_elections
        )
        self.deadline_ms = now_ms + 1 + self._random.randrange(max(1, backoff_ms))

    # Who leads

    def on_begin_epoch(self, leader_id: int, quorum_epoch: int, now_ms: int) -> Ready:
        """A leader says so itself. An epoch before ours is the shell's to refuse."""
        self._learn(leader_id, quorum_epoch, now_ms)
        if self.role is Role.PROSPECTIVE and (leader_id, quorum_epoch) == (
            self.leader_id,
            self.quorum_epoch,
        ):
            self._follow(leader_id, quorum_epoch, now_ms, "the leader is there")
        return self._take()

    def on_begin_answer(
        self, voter: int, leader_id: int | None, quorum_epoch: int, now_ms: int
    ) -> Ready:
        self._learn(leader_id, quorum_epoch, now_ms)
        if self.leadership is not None and quorum_epoch == self.quorum_epoch:
            self.leadership.on_begin_answered(voter, now_ms)
            self._set_leader_deadline(now_ms)
        return self._take()

    def on_end_epoch(
        self, leader_id: int, quorum_epoch: int, preferred: tuple[int, ...], now_ms: int
    ) -> Ready:
        """The leader leaves: the best successor begins at once, the others a little later."""
        self._learn(leader_id, quorum_epoch, now_ms)
        if self.role is Role.FOLLOWER and (leader_id, quorum_epoch) == (
            self.leader_id,
            self.quorum_epoch,
        ):
            self._distrust_leader()
            if self.node_id in preferred:
                self._begin_after(preferred.index(self.node_id), now_ms)
            else:
                self._begin_by_rank(now_ms, without=leader_id)
        return self._take()

    def on_end_answer(
        self, voter: int, leader_id: int | None, quorum_epoch: int, now_ms: int
    ) -> Ready:
        self._unaware.discard(voter)
        self._learn(leader_id, quorum_epoch, now_ms)
        return self._take()

    def on_leader_dead(self, leader_id: int, now_ms: int) -> Ready:
        """The leader's process is known to be gone: no reason to wait for the fetch timeout."""
        if self.role is Role.FOLLOWER and self.leader_id == leader_id and not self._is_leader_gone:
            self._distrust_leader()
            self._begin_by_rank(now_ms, without=leader_id)
        return self._take()

    def resign(self, now_ms: int) -> Ready:
        """A clean stop: the others need not find out by themselves."""
        if self.role is Role.LEADER:
            self._resign(now_ms, "asked to")
        return self._take()

    # Fetching

    def on_fetch(self, replica_id: int, end_offset: int, now_ms: int) -> Ready:
        """As the leader: a replica whose log is a prefix of ours asks for what follows."""
        assert self.leadership is not None, "only a leader is fetched from"
        moved = self.leadership.on_fetch(
            replica_id,
            end_offset,
            leader_end_offset=self._log.position.end_offset,
            now_ms=now_ms,
        )
        self._on_leader_progress(moved, now_ms)
        return self._take()

    def on_heard(self, replica_id: int, now_ms: int) -> Ready:
        """As the leader: a follower takes something else from us, such as a snapshot."""
        assert self.leadership is not None, "only a leader is fetched from"
        self.leadership.on_heard(replica_id, now_ms)
        self._on_leader_progress(False, now_ms)
        return self._take()

    def on_synced(self, now_ms: int) -> Ready:
        """More of this node's own log is durable."""
        if self.leadership is not None:
            moved = self.leadership.on_own_end(self._log.synced_end_offset)
            self._on_leader_progress(moved, now_ms)
        return self._take()

    def _on_leader_progress(self, moved: bool, now_ms: int) -> None:
        assert self.leadership is not None
        if moved:
            self.high_watermark = self._ready.high_watermark = self.leadership.high_watermark
        self._set_leader_deadline(now_ms)

    def on_fetch_answer(
        self,
        source: int,
        error: ErrorCode,
        *,
        leader_id: int | None,
        quorum_epoch: int,
        now_ms: int,
    ) -> Ready:
        """Whatever a fetch was answered: it may tell of another leader or epoch.

        If `is_from_leader` says so afterwards, the answer's records may be taken.
        """
        self._learn(leader_id, quorum_epoch, now_ms)
        if error == ErrorCode.NONE and self.is_from_leader(source, quorum_epoch):
            self._is_leader_trusted, self._is_leader_gone = True, False
            self._lost_elections = 0
            if self.is_voter:
                self.deadline_ms = now_ms + self._timing.fetch_timeout_ms
        return self._take()

    def is_from_leader(self, source: int, quorum_epoch: int) -> bool:
        return (
            self.role is Role.FOLLOWER
            and source == self.leader_id
            and quorum_epoch == self.quorum_epoch
        )

    def on_leader_high_watermark(self, high_watermark: int) -> Ready:
        """As a follower, after the records were appended: what the leader says is committed."""
        known = self.high_watermark
        reached = min(high_watermark, self._log.position.end_offset)
        if known is None or reached > known:
            self.high_watermark = self._ready.high_watermark = reached
        return self._take()

    def _reply(self, error: ErrorCode, *, is_granted: bool = False) -> Ready:
        self._ready.reply = VoteAnswer(
            error=error,
            quorum_epoch=self.quorum_epoch,
            leader_id=self.leader_id,
            is_granted=is_granted,
        )
        return self._take()

    # Steps

    def _learn(self, leader_id: int | None, quorum_epoch: int, now_ms: int) -> None:
        """What every message says besides its own business: an epoch, and who leads it.

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
        self.leadership = LeaderTerm(
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
        """The next thing that time alone brings; a request that is due already is the shell's."""
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
