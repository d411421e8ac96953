"""The quorum's machine: elections, epochs and the high watermark of the metadata log.

KRaft's form of Raft. Followers pull records; a fetch's offset is the follower's acknowledgement, so
a leader counts what voters have made durable. An election begins with a pre-vote (KIP-996): only
who would win begins an epoch. A leader that no majority listens to resigns (check quorum).

Inputs are the `on_*` methods, each with the time; each returns a `Ready`, to be carried out in its
order. What to ask of other voters is a standing wish, `wish_for`: true until its answer came, so
the shell may repeat it after a failure as it likes. Whether to fetch, and from whom, is said by
`wants_fetch` and `leader_id`. `deadline_ms` says when `on_tick` is due.
"""

from __future__ import annotations

from tidelog.core.model.errors import ErrorCode
from tidelog.core.quorum.ballot import majority_of
from tidelog.core.quorum.roles import Role
from tidelog.core.quorum.state import DOUBLINGS_MAX, NOMINEES, QuorumState
from tidelog.core.quorum.values import (
    BeginEpoch,
    Call,
    EndEpoch,
    Ready,
    VoteAnswer,
    VoteCall,
    VoteGranted,
)

BACKOFF_FIRST_MS = 40
"""A candidate that lost waits up to so long, and twice as long each time it loses again."""


class Quorum(QuorumState):
    """See the module."""

    # What it wants

    def wish_for(self, voter: int, now_ms: int) -> Call | None:
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
            self.role = Role.RESIGNED
            self._unaware = set(self.others)
        elif self.leader_id is not None:
            self.role = Role.FOLLOWER
        self._restart_timer(now_ms)
        self._note("started")
        if self.voters == (self.node_id,):
            self._stand(now_ms, "only voter")
        return self._take()

    def on_reachable(self, voters_count: int, now_ms: int) -> Ready:
        """So many other voters can be reached. At the start there is no reason to wait longer."""
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
