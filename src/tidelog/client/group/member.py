"""One member of a classic group: joins, syncs, sends heartbeats, commits, leaves.

    member = GroupMember(client, config, ["orders"], listener)
    member.commit({partition: OffsetAndMetadata(7)}, then, now_ms=now_ms)
    member.leave(now_ms)

Invariant: `owned` is what the member may work on. It is empty before a JoinGroup leaves, so that
nobody reads a partition that the next generation gives to somebody else. A commit counts for the
generation in which it was asked for, or not at all.

Size: one state machine; split, nobody could follow an answer to the state that it leads to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Protocol

from tidelog.client.back_off import BackOff
from tidelog.client.client import Client
from tidelog.client.events import GroupAssigned, GroupRevoked
from tidelog.client.group.assignors import ASSIGNORS, SubscribedMember
from tidelog.client.group.config import GroupConfig
from tidelog.client.group.consumer_protocol import read_assignment
from tidelog.client.group.coordinator_channel import COORDINATOR_MOVED, CoordinatorChannel
from tidelog.client.group.membership_requests import (
    join_request,
    leave_request,
    subscribed_members,
    sync_request,
)
from tidelog.client.group.offset_commits import (
    CommitOutcome,
    GroupIdentity,
    OffsetCommits,
    OnCommitted,
)
from tidelog.client.group.offset_requests import (
    NO_GENERATION,
    OFFSET_FETCH_VERSIONS,
    OffsetAndMetadata,
    fetch_request,
    fetched_offsets,
)
from tidelog.core.model.errors import RETRIABLE, ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.codec import MalformedMessage
from tidelog.core.wire.links import NoAnswer
from tidelog.core.wire.messages.api_09_offset_fetch import OffsetFetchResponse
from tidelog.core.wire.messages.api_11_join_group import JoinGroupResponse
from tidelog.core.wire.messages.api_12_heartbeat import HeartbeatRequest, HeartbeatResponse
from tidelog.core.wire.messages.api_14_sync_group import SyncGroupResponse
from tidelog.core.wire.schema import Message

JOIN_GRACE_MS = 5_000
"""How much longer than the rebalance timeout the answer to a JoinGroup is waited for."""
LEAVE_TIMEOUT_MS = 5_000
_LEAVE_VERSIONS = range(3, 6)


class MembershipState(Enum):
    """What a member does next, or waits for."""

    UNJOINED = "unjoined"
    JOINING = "joining"
    ASSIGNING = "assigning"
    SYNCING = "syncing"
    REVOKING = "revoking"
    FETCHING_OFFSETS = "fetching offsets"
    STABLE = "stable"
    LEAVING = "leaving"
    LEFT = "left"
    FAILED = "failed"


_OVER = frozenset({MembershipState.LEFT, MembershipState.FAILED})
_ABOUT_MEMBERSHIP = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.FENCED_INSTANCE_ID,
    }
)
"""Of the errors of a commit: the others are about its offsets."""
_OnAnswer = Callable[[Message, int], None]
_IN_GENERATION = frozenset({MembershipState.FETCHING_OFFSETS, MembershipState.STABLE})


class RebalanceListener(Protocol):
    """What a member tells its program. A commit in `on_revoked` is finished before others own."""

    def on_assigned(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | None], now_ms: int
    ) -> None:
        """These partitions, in a KIP-848 group beside others; and what is committed in each."""

    def on_revoked(self, partitions: Sequence[TopicPartition], now_ms: int) -> None:
        """They will be given out again; nobody else has them yet. Others may stay."""

    def on_lost(self, partitions: Sequence[TopicPartition], now_ms: int) -> None:
        """Somebody else may have them already."""


class GroupMember:
    """Attached to a client; `run` and `deadlines_ms` are the client's to call."""

    def __init__(
        self,
        client: Client,
        config: GroupConfig,
        topics: Iterable[str],
        listener: RebalanceListener,
    ) -> None:
        self._client = client
        self._config = config
        self._topics = tuple(sorted(set(topics)))
        self._listener = listener
        self._channel = CoordinatorChannel(client, config.group_id)
        self._commits = OffsetCommits(
            client, self._channel, config.group_id, on_error=self._on_commit_refused
        )
        self._back_off = BackOff(
            first_ms=client.config.retry_backoff_ms,
            most_ms=client.config.retry_backoff_max_ms,
            random=client.random,
        )
        self.state = MembershipState.UNJOINED
        self.member_id = ""
        self.generation_id = NO_GENERATION
        self.is_leader = False
        self.assignor: str | None = None
        self.owned: tuple[TopicPartition, ...] = ()
        self.error: ErrorCode | None = None
        """Why it has FAILED; the program must decide."""
        self._assigned: tuple[TopicPartition, ...] = ()
        """What the leader gave us; owned once its offsets are known."""
        self._group: tuple[SubscribedMember, ...] = ()
        """Of a leader: everybody's subscription."""
        self._group_counts: dict[str, int] = {}
        """Of a leader: the partition counts that it assigned by."""
        self._attempt = 0
        """Answers to requests of an earlier attempt are dropped."""
        self._is_sent = False
        self._failures = 0
        self._retry_at_ms = 0
        self._leave_until_ms = 0
        self._is_heartbeat_sent = False
        self._heartbeat_at_ms = 0
        self._heartbeat_failures = 0
        for topic in self._topics:
            client.refresh.add_topic(topic)
        client.attach(self)

    # What a program asks for

    @property
    def identity(self) -> GroupIdentity | None:
        """None while it is in no generation."""
        if self.generation_id == NO_GENERATION:
            return None
        instance_id = self._config.group_instance_id
        return GroupIdentity(self.generation_id, self.member_id, instance_id)

    @property
    def coordinator_id(self) -> int | None:
        return self._channel.node_id

    @property
    def pending_commits(self) -> int:
        return self._commits.pending

    @property
    def is_over(self) -> bool:
        return self.state in _OVER

    def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        then: OnCommitted,
        *,
        now_ms: int,
    ) -> None:
        """`then(outcome, now_ms)`; refused at once while the group has not settled."""
        identity = self.identity
        if identity is None or self.state not in _IN_GENERATION:
            then(CommitOutcome(self.error or ErrorCode.REBALANCE_IN_PROGRESS), now_ms)
            return
        deadline_ms = now_ms + self._config.consumer.api_timeout_ms
        self._commits.add(identity, offsets, then, deadline_ms=deadline_ms)

    def leave(self, now_ms: int) -> None:
        """Give everything back. Commits that are under way are finished first."""
        if self.is_over or self.state == MembershipState.LEAVING:
            return
        was_joining = self.state in (MembershipState.JOINING, MembershipState.SYNCING)
        if self.identity is not None:
            self._revoke(now_ms)
        if was_joining and self._is_sent:
            # A broker works on one request of a connection at a time, and this one may wait.
            self._channel.disconnect(now_ms)
        self._next(MembershipState.LEAVING)
        self._leave_until_ms = now_ms + LEAVE_TIMEOUT_MS

    # What the client calls

    def run(self, now_ms: int) -> None:
        if self.is_over:
            return
        if self._channel.refusal is not None:
            self._fail(self._channel.refusal, now_ms)
            return
        self._commits.run(self.identity, now_ms)
        if self.state in _IN_GENERATION:
            self._run_heartbeat(now_ms)
        if self.state == MembershipState.STABLE:
            self._check_partition_counts(now_ms)
        is_due = not self._is_sent and now_ms >= self._retry_at_ms
        if self.state != MembershipState.STABLE and is_due:
            self._run_step(now_ms)

    def deadlines_ms(self) -> Iterable[int | None]:
        if self.is_over:
            return
        yield from self._channel.deadlines_ms()
        yield from self._commits.deadlines_ms()
        if self.state in _IN_GENERATION and not self._is_heartbeat_sent:
            yield self._heartbeat_at_ms
        if not self._is_sent:
            yield self._retry_at_ms
        if self.state == MembershipState.LEAVING:
            yield self._leave_until_ms

    def _run_step(self, now_ms: int) -> None:
        if self.state == MembershipState.LEAVING:
            self._run_leave(now_ms)
        elif self.state == MembershipState.ASSIGNING:
            self._run_assign(now_ms)
        elif self._commits.pending and self.state == MembershipState.UNJOINED:
            return  # what was revoked may still be committed in the old generation
        elif self._channel.is_usable(now_ms):
            if self.state == MembershipState.UNJOINED:
                self._send_join(now_ms)
            elif self.state == MembershipState.SYNCING:
                self._send_sync({}, now_ms)
            elif self.state == MembershipState.FETCHING_OFFSETS:
                self._send_offset_fetch(now_ms)

    # Moves between states

    def _next(self, state: MembershipState) -> None:
        self.state = state
        self._attempt += 1
        self._is_sent = False
        self._retry_at_ms = 0
        self._failures = 0

    def _rejoin(self, now_ms: int, *, pause: bool = False) -> None:
        """The group rebalances, and we are still one of it."""
        failures = self._failures
        self._revoke(now_ms)
        self._next(MembershipState.UNJOINED)
        if pause:
            self._retry_at_ms = now_ms + self._back_off.pause_ms(failures)
            self._failures = failures + 1

    def _start_over(self, error: ErrorCode, now_ms: int) -> None:
        """The coordinator does not know our generation, or not even us."""
        self._lose(now_ms)
        self.generation_id = NO_GENERATION
        if error == ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        self._rejoin(now_ms, pause=True)

    def _fail(self, error: ErrorCode, now_ms: int) -> None:
        self.error = error
        self._lose(now_ms)
        self.generation_id = NO_GENERATION
        self._commits.abandon(error, now_ms)
        self._end(MembershipState.FAILED)

    def _end(self, state: MembershipState) -> None:
        self._next(state)
        self._client.detach(self)

    def _revoke(self, now_ms: int) -> None:
        owned, self.owned = self.owned, ()
        self._assigned = ()
        if owned:
            self._client.trace.emit(GroupRevoked(partitions=tuple(map(str, owned)), is_lost=False))
            self._listener.on_revoked(owned, now_ms)

    def _lose(self, now_ms: int) -> None:
        owned, self.owned = self.owned, ()
        self._assigned = ()
        if owned:
            self._client.trace.emit(GroupRevoked(partitions=tuple(map(str, owned)), is_lost=True))
            self._listener.on_lost(owned, now_ms)

    def _retry(self, now_ms: int) -> None:
        self._is_sent = False
        self._retry_at_ms = now_ms + self._back_off.pause_ms(self._failures)
        self._failures += 1

    # JoinGroup

    def _send_join(self, now_ms: int) -> None:
        request = join_request(self._config, self._topics, member_id=self.member_id)
        failures = self._failures
        self._next(MembershipState.JOINING)
        self._failures = failures
        self._send(
            request,
            self._on_joined,
            now_ms,
            timeout_ms=self._rebalance_wait_ms(),
        )

    def _rebalance_wait_ms(self) -> int:
        """How long an answer may take that waits for the other members."""
        longest_ms = self._config.rebalance_timeout_ms + JOIN_GRACE_MS
        return max(longest_ms, self._client.config.request_timeout_ms)

    def _on_joined(self, answer: Message, now_ms: int) -> None:
        assert isinstance(answer, JoinGroupResponse)
        error = ErrorCode.from_wire(answer.error_code)
        if error == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            self._next(MembershipState.UNJOINED)
        elif error != ErrorCode.NONE:
            self._on_membership_error(error, now_ms)
        elif answer.protocol_name not in self._config.assignors:
            self._fail(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, now_ms)
        else:
            self.member_id = answer.member_id
            self.generation_id = answer.generation_id
            self.assignor = answer.protocol_name
            self.is_leader = answer.leader == answer.member_id
            self._group = ()
            self._group_counts = {}
            if self.is_leader:
                self._group = subscribed_members(answer)
            assigns = self.is_leader and not answer.skip_assignment
            self._next(MembershipState.ASSIGNING if assigns else MembershipState.SYNCING)

    # SyncGroup

    def _run_assign(self, now_ms: int) -> None:
        """Of a leader: once it knows how many partitions each topic has."""
        counts = self._partition_counts()
        if counts is None or not self._channel.is_usable(now_ms):
            return
        assert self.assignor is not None
        self._group_counts = counts
        self._send_sync(ASSIGNORS[self.assignor](self._group, counts), now_ms)

    def _partition_counts(self) -> dict[str, int] | None:
        """None while a topic has not been asked about; one that does not exist has no partition."""
        counts: dict[str, int] = {}
        for topic in sorted({topic for each in self._group for topic in each.topics}):
            self._client.refresh.add_topic(topic)
            if topic not in self._client.metadata.topics:
                return None
            counts[topic] = self._client.metadata.partition_count(topic) or 0
        return counts

    def _check_partition_counts(self, now_ms: int) -> None:
        """A leader whose topics have grown wants everything to be assigned again."""
        if self._group_counts:
            counts = self._partition_counts()
            if counts is not None and counts != self._group_counts:
                self._rejoin(now_ms)

    def _send_sync(self, assignments: Mapping[str, Iterable[TopicPartition]], now_ms: int) -> None:
        identity = self.identity
        assert identity is not None and self.assignor is not None
        request = sync_request(self._config.group_id, identity, self.assignor, assignments)
        self._next(MembershipState.SYNCING)
        self._send(
            request,
            self._on_synced,
            now_ms,
            timeout_ms=self._rebalance_wait_ms(),
        )

    def _on_synced(self, answer: Message, now_ms: int) -> None:
        assert isinstance(answer, SyncGroupResponse)
        error = ErrorCode.from_wire(answer.error_code)
        if error != ErrorCode.NONE:
            self._on_membership_error(error, now_ms)
            return
        try:
            self._assigned = tuple(sorted(read_assignment(answer.assignment)))
        except MalformedMessage:
            self._fail(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, now_ms)
            return
        self._heartbeat_at_ms = now_ms + self._config.heartbeat_interval_ms
        self._is_heartbeat_sent = False
        if self._assigned:
            self._next(MembershipState.FETCHING_OFFSETS)
        else:
            self._settle({}, now_ms)

    # Committed offsets

    def _send_offset_fetch(self, now_ms: int) -> None:
        request = fetch_request({self._config.group_id: self._assigned}, is_stable=True)
        self._send(request, self._on_offsets, now_ms, versions=OFFSET_FETCH_VERSIONS)

    def _on_offsets(self, answer: Message, now_ms: int) -> None:
        assert isinstance(answer, OffsetFetchResponse)
        found = fetched_offsets(answer)[self._config.group_id]
        errors = {found.error, *found.refused.values()} - {ErrorCode.NONE}
        if errors:
            error = min(errors)
            if error == ErrorCode.UNSTABLE_OFFSET_COMMIT or error in RETRIABLE:
                if error in COORDINATOR_MOVED:
                    self._channel.forget()
                self._retry(now_ms)
            else:
                self._on_membership_error(error, now_ms)
            return
        self._settle(found.offsets, now_ms)

    def _settle(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], now_ms: int) -> None:
        self._next(MembershipState.STABLE)
        self.owned = self._assigned
        self._client.trace.emit(
            GroupAssigned(
                generation_id=self.generation_id,
                member_id=self.member_id,
                partitions=tuple(map(str, self.owned)),
            )
        )
        self._listener.on_assigned({each: offsets.get(each) for each in self.owned}, now_ms)

    # Heartbeats

    def _run_heartbeat(self, now_ms: int) -> None:
        if self._is_heartbeat_sent or now_ms < self._heartbeat_at_ms:
            return
        if not self._channel.is_usable(now_ms):
            return
        identity = self.identity
        assert identity is not None
        request = HeartbeatRequest(group_id=self._config.group_id, **identity._asdict())

        def answered(answer: Message | NoAnswer, now_ms: int) -> None:
            if identity == self.identity and self.state in _IN_GENERATION:
                self._is_heartbeat_sent = False
                self._on_heartbeat(answer, now_ms)

        timeout_ms = min(self._client.config.request_timeout_ms, self._config.session_timeout_ms)
        self._is_heartbeat_sent = True
        if not self._channel.send(request, answered, now_ms=now_ms, timeout_ms=timeout_ms):
            self._fail(ErrorCode.UNSUPPORTED_VERSION, now_ms)

    def _on_heartbeat(self, answer: Message | NoAnswer, now_ms: int) -> None:
        error = ErrorCode.NETWORK_EXCEPTION
        if isinstance(answer, HeartbeatResponse):
            error = ErrorCode.from_wire(answer.error_code)
        if error == ErrorCode.NONE:
            self._heartbeat_failures = 0
            self._heartbeat_at_ms = now_ms + self._config.heartbeat_interval_ms
        elif error == ErrorCode.REBALANCE_IN_PROGRESS:
            self._rejoin(now_ms)
        elif error in RETRIABLE:
            if error in COORDINATOR_MOVED:
                self._channel.forget()
            pause_ms = self._back_off.pause_ms(self._heartbeat_failures)
            self._heartbeat_at_ms = now_ms + pause_ms
            self._heartbeat_failures += 1
        else:
            self._on_membership_error(error, now_ms)

    # Leaving

    def _run_leave(self, now_ms: int) -> None:
        is_static = self._config.group_instance_id is not None
        if now_ms >= self._leave_until_ms or not self.member_id or is_static:
            if not self._commits.pending or now_ms >= self._leave_until_ms:
                self._left(now_ms)
            return
        if self._commits.pending or not self._channel.is_usable(now_ms):
            return
        request = leave_request(self._config.group_id, self.member_id)
        self._send(request, lambda _, now_ms: self._left(now_ms), now_ms, versions=_LEAVE_VERSIONS)

    def _left(self, now_ms: int) -> None:
        self.generation_id = NO_GENERATION
        self._commits.abandon(ErrorCode.REQUEST_TIMED_OUT, now_ms)
        self._end(MembershipState.LEFT)

    # Sending, and what is the same for all answers

    def _send(
        self,
        request: Message,
        then: _OnAnswer,
        now_ms: int,
        *,
        timeout_ms: int | None = None,
        versions: range | None = None,
    ) -> None:
        """`then` gets an answer to this very attempt; without one it is made again."""
        attempt = self._attempt

        def answered(answer: Message | NoAnswer, now_ms: int) -> None:
            if attempt != self._attempt:
                return
            if isinstance(answer, NoAnswer):
                self._on_no_answer(now_ms)
            else:
                self._is_sent = False
                then(answer, now_ms)

        self._is_sent = True
        if not self._channel.send(
            request, answered, now_ms=now_ms, timeout_ms=timeout_ms, versions=versions
        ):
            self._fail(ErrorCode.UNSUPPORTED_VERSION, now_ms)

    def _on_no_answer(self, now_ms: int) -> None:
        if self.state in (MembershipState.JOINING, MembershipState.SYNCING):
            self._rejoin(now_ms, pause=True)
        else:
            self._retry(now_ms)

    def _on_commit_refused(self, error: ErrorCode, identity: GroupIdentity, now_ms: int) -> None:
        is_current = identity == self.identity and self.state in _IN_GENERATION
        if is_current and error in _ABOUT_MEMBERSHIP:
            self._on_membership_error(error, now_ms)

    def _on_membership_error(self, error: ErrorCode, now_ms: int) -> None:
        """JoinGroup, SyncGroup, Heartbeat and OffsetCommit say the same about a membership."""
        if error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            self._start_over(error, now_ms)
        elif error == ErrorCode.REBALANCE_IN_PROGRESS:
            self._rejoin(now_ms, pause=self.state == MembershipState.JOINING)
        elif error in RETRIABLE:
            if error in COORDINATOR_MOVED:
                self._channel.forget()
            self._rejoin(now_ms, pause=True)
        else:
            self._fail(error, now_ms)
