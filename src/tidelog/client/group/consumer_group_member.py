"""One member of a KIP-848 group: one request, the heartbeat, joins, acknowledges and leaves.

    member = ConsumerGroupMember(client, config, ["orders"], listener)
    member.commit({partition: OffsetAndMetadata(7)}, then, now_ms=now_ms)
    member.leave(now_ms)

The coordinator answers with the partitions that the member should have. What is not among them is
taken from the program, its commits are finished, and only then a heartbeat says that it is
released. What is new is owned as soon as its committed offsets are known.

Invariant: `owned` is what the member may work on. What it has been asked to give back is not in it,
but heartbeats go on to name it until it is released, so that nobody else gets it before.

Size: one state machine; split, nobody could follow an answer to the state that it leads to.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from tidelog.client.back_off import BackOff
from tidelog.client.client import Client
from tidelog.client.events import GroupAssigned, GroupRevoked
from tidelog.client.group.config import GroupConfig
from tidelog.client.group.coordinator_channel import COORDINATOR_MOVED, CoordinatorChannel
from tidelog.client.group.member import LEAVE_TIMEOUT_MS, MembershipState, RebalanceListener
from tidelog.client.group.offset_commits import (
    CommitOutcome,
    GroupIdentity,
    OffsetCommits,
    OnCommitted,
)
from tidelog.client.group.offset_requests import (
    EPOCH_FETCH_VERSIONS,
    OffsetAndMetadata,
    fetch_request,
    fetched_offsets,
)
from tidelog.core.model.errors import RETRIABLE, ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.links import NoAnswer
from tidelog.core.wire.messages.api_09_offset_fetch import OffsetFetchResponse
from tidelog.core.wire.messages.api_68_consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatTopicPartitions,
)
from tidelog.core.wire.schema import Message

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
LEAVE_STATIC_EPOCH: Final = -2
"""A static member that will come back."""
_MEMBER_ID_BYTES: Final = 16
_FIRST_VERSION_WITH_OWN_MEMBER_ID: Final = 1
_FENCED = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID})
_OVER = frozenset({MembershipState.LEFT, MembershipState.FAILED})

PartitionId = tuple[bytes, int]
"""Topic id and index: a topic of the same name that was created anew is another one."""
OnHeartbeatSent = Callable[
    [ConsumerGroupHeartbeatRequest, int], Callable[[Message | NoAnswer], None]
]
"""Gets a heartbeat and its broker, and returns what to call with the answer."""


class ConsumerGroupMember:
    """Attached to a client; `run` and `deadlines_ms` are the client's to call."""

    def __init__(
        self,
        client: Client,
        config: GroupConfig,
        topics: Iterable[str],
        listener: RebalanceListener,
    ) -> None:
        # Size: every field of the machine, with what it means.
        self._client = client
        self._config = config
        self._topics = tuple(sorted(set(topics)))
        self._listener = listener
        self._channel = CoordinatorChannel(client, config.group_id)
        self._commits = OffsetCommits(
            client,
            self._channel,
            config.group_id,
            on_error=self._on_commit_refused,
            follows_epoch=True,
        )
        self._back_off = BackOff(
            first_ms=client.config.retry_backoff_ms,
            most_ms=client.config.retry_backoff_max_ms,
            random=client.random,
        )
        self.state = MembershipState.UNJOINED
        self.member_id = ""
        self.member_epoch = JOIN_EPOCH
        self.error: ErrorCode | None = None
        """Why it has FAILED; the program must decide."""
        self.on_heartbeat_sent: OnHeartbeatSent | None = None
        self._owned: dict[PartitionId, TopicPartition] = {}
        self._releasing: dict[PartitionId, TopicPartition] = {}
        """Taken from the program; released when its commits have their outcomes."""
        self._released_after = 0
        """How many commits must have ended before."""
        self._target: frozenset[PartitionId] = frozenset()
        """What the coordinator wants the member to have."""
        self._is_announced = False
        """The program has heard of an assignment since the member joined."""
        self._life = 0
        """Answers to requests from before it was fenced are dropped."""
        self._is_heartbeat_sent = False
        self._heartbeat_at_ms = 0
        self._is_full = True
        """The next heartbeat says everything: at first, and when an answer was lost."""
        self._names_owned = False
        """The next heartbeat says what is owned, because that has changed."""
        self._failures = 0
        self._is_fetch_sent = False
        self._fetch_at_ms = 0
        self._fetch_failures = 0
        self._is_leave_sent = False
        self._leave_until_ms = 0
        for topic in self._topics:
            client.refresh.add_topic(topic)
        client.attach(self)

    # What a program asks for

    @property
    def owned(self) -> tuple[TopicPartition, ...]:
        return tuple(sorted(self._owned.values()))

    @property
    def identity(self) -> GroupIdentity | None:
        """None while it is not in the group."""
        if self.member_epoch <= JOIN_EPOCH:
            return None
        return GroupIdentity(self.member_epoch, self.member_id, self._config.group_instance_id)

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
        """`then(outcome, now_ms)`; refused at once while it is not in the group."""
        identity = self.identity
        if identity is None or self.is_over:
            then(CommitOutcome(self.error or ErrorCode.UNKNOWN_MEMBER_ID), now_ms)
            return
        deadline_ms = now_ms + self._config.consumer.api_timeout_ms
        self._commits.add(identity, offsets, then, deadline_ms=deadline_ms)

    def leave(self, now_ms: int) -> None:
        """Give everything back. Commits that are under way are finished first."""
        if self.is_over or self.state == MembershipState.LEAVING:
            return
        self._take_back(self._owned, now_ms)
        self.state = MembershipState.LEAVING
        self._leave_until_ms = now_ms + LEAVE_TIMEOUT_MS

    # What the client calls

    def run(self, now_ms: int) -> None:
        if self.is_over:
            return
        if self._channel.refusal is not None:
            self._fail(self._channel.refusal, now_ms)
            return
        self._commits.run(self.identity, now_ms)
        if self.state == MembershipState.LEAVING:
            self._run_leave(now_ms)
            return
        if self.identity is not None:
            self._reconcile(now_ms)
        if not self.is_over:
            self._run_heartbeat(now_ms)

    def deadlines_ms(self) -> Iterable[int | None]:
        if self.is_over:
            return
        yield from self._channel.deadlines_ms()
        yield from self._commits.deadlines_ms()
        if self.state == MembershipState.LEAVING:
            yield self._leave_until_ms
            return
        if not self._is_heartbeat_sent:
            yield self._heartbeat_at_ms
        if self.state == MembershipState.FETCHING_OFFSETS and not self._is_fetch_sent:
            yield self._fetch_at_ms

    # Moves between states

    def _start_over(self, now_ms: int) -> None:
        """The coordinator does not know us, or not in this epoch: somebody else may own all."""
        lost = tuple(sorted(self._owned.values()))
        error = ErrorCode.UNKNOWN_MEMBER_ID
        self._forget_life()
        self._commits.abandon(error, now_ms)
        self.state = MembershipState.UNJOINED
        self._heartbeat_at_ms = now_ms
        if self._failures:
            self._heartbeat_at_ms += self._back_off.pause_ms(self._failures - 1)
        self._failures += 1
        if lost:
            self._client.trace.emit(GroupRevoked(partitions=tuple(map(str, lost)), is_lost=True))
            self._listener.on_lost(lost, now_ms)

    def _forget_life(self) -> None:
        self._owned, self._releasing, self._target = {}, {}, frozenset()
        self.member_epoch = JOIN_EPOCH
        self._life += 1
        self._is_heartbeat_sent = self._is_fetch_sent = self._is_announced = False
        self._is_full = True

    def _fail(self, error: ErrorCode, now_ms: int) -> None:
        self.error = error
        lost = tuple(sorted(self._owned.values()))
        self._forget_life()
        self._end(MembershipState.FAILED, error, now_ms)
        if lost:
            self._client.trace.emit(GroupRevoked(partitions=tuple(map(str, lost)), is_lost=True))
            self._listener.on_lost(lost, now_ms)

    def _end(self, state: MembershipState, error: ErrorCode, now_ms: int) -> None:
        self.state = state
        self._commits.abandon(error, now_ms)
        self._client.detach(self)

    # From what it has to what it should have

    def _reconcile(self, now_ms: int) -> None:
        if not self._releasing:
            surplus = {key: name for key, name in self._owned.items() if key not in self._target}
            self._take_back(surplus, now_ms)
        if self._releasing:
            if self._commits.ended < self._released_after:
                self.state = MembershipState.REVOKING
                return
            self._releasing = {}
            self._say_owned(now_ms)
        missing = self._target - self._owned.keys()
        names = self._names(missing)
        if missing and len(names) < len(missing):
            self._client.refresh.request_update()
        if names or (missing and not self._is_announced):
            self.state = MembershipState.FETCHING_OFFSETS
            if names:
                self._run_offset_fetch(names, now_ms)
        else:
            self._settle({}, {}, now_ms)

    def _names(self, keys: Iterable[PartitionId]) -> dict[PartitionId, TopicPartition]:
        """Of those topics that the metadata has; others come with the next refresh."""
        topics = {self._client.metadata.topic_id(topic): topic for topic in self._topics}
        return {
            (topic_id, index): TopicPartition(topics[topic_id], index)
            for topic_id, index in keys
            if topic_id in topics
        }

    def _take_back(self, partitions: Mapping[PartitionId, TopicPartition], now_ms: int) -> None:
        if not partitions:
            return
        revoked = dict(partitions)
        self._owned = {key: name for key, name in self._owned.items() if key not in revoked}
        self._releasing |= revoked
        names = tuple(sorted(revoked.values()))
        self._client.trace.emit(GroupRevoked(partitions=tuple(map(str, names)), is_lost=False))
        self._listener.on_revoked(names, now_ms)
        self._released_after = self._commits.added

    def _say_owned(self, now_ms: int) -> None:
        """The coordinator waits to hear it."""
        self._names_owned = True
        self._heartbeat_at_ms = now_ms

    def _settle(
        self,
        added: Mapping[PartitionId, TopicPartition],
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        now_ms: int,
    ) -> None:
        self.state = MembershipState.STABLE
        if self._is_announced and not added:
            return
        self._is_announced = True
        self._owned |= added
        if added:
            self._say_owned(now_ms)
        names = tuple(sorted(added.values()))
        self._client.trace.emit(
            GroupAssigned(
                generation_id=self.member_epoch,
                member_id=self.member_id,
                partitions=tuple(map(str, self.owned)),
            )
        )
        self._listener.on_assigned({each: offsets.get(each) for each in names}, now_ms)

    # Committed offsets

    def _run_offset_fetch(self, wanted: Mapping[PartitionId, TopicPartition], now_ms: int) -> None:
        if self._is_fetch_sent or now_ms < self._fetch_at_ms:
            return
        if not self._channel.is_usable(now_ms):
            return
        request = fetch_request(
            {self._config.group_id: wanted.values()},
            is_stable=True,
            member_id=self.member_id,
            member_epoch=self.member_epoch,
        )
        life = self._life

        def answered(answer: Message | NoAnswer, now_ms: int) -> None:
            if life == self._life and not self.is_over:
                self._is_fetch_sent = False
                if self.state == MembershipState.FETCHING_OFFSETS:
                    self._on_offsets(answer, wanted, now_ms)

        self._is_fetch_sent = True
        if not self._channel.send(request, answered, now_ms=now_ms, versions=EPOCH_FETCH_VERSIONS):
            self._fail(ErrorCode.UNSUPPORTED_VERSION, now_ms)

    def _on_offsets(
        self,
        answer: Message | NoAnswer,
        wanted: Mapping[PartitionId, TopicPartition],
        now_ms: int,
    ) -> None:
        errors = {ErrorCode.NETWORK_EXCEPTION}
        if isinstance(answer, OffsetFetchResponse):
            found = fetched_offsets(answer)[self._config.group_id]
            errors = {found.error, *found.refused.values()} - {ErrorCode.NONE}
            if not errors:
                self._fetch_failures = 0
                added = {key: name for key, name in wanted.items() if key in self._target}
                self._settle(added, found.offsets, now_ms)
                return
        error = min(errors)
        if error in _FENCED:
            self._start_over(now_ms)
        elif error == ErrorCode.STALE_MEMBER_EPOCH:
            # A heartbeat has moved our epoch, and its answer is on the way or was lost.
            self._heartbeat_at_ms = now_ms
            self._retry_offset_fetch(now_ms)
        elif error == ErrorCode.UNSTABLE_OFFSET_COMMIT or error in RETRIABLE:
            if error in COORDINATOR_MOVED:
                self._channel.forget()
            self._retry_offset_fetch(now_ms)
        else:
            self._fail(error, now_ms)

    def _retry_offset_fetch(self, now_ms: int) -> None:
        self._fetch_at_ms = now_ms + self._back_off.pause_ms(self._fetch_failures)
        self._fetch_failures += 1

    # Heartbeats

    def _run_heartbeat(self, now_ms: int) -> None:
        if self._is_heartbeat_sent or now_ms < self._heartbeat_at_ms:
            return
        if not self._channel.is_usable(now_ms):
            return
        joins = self.member_epoch == JOIN_EPOCH
        version = self._channel.version(ConsumerGroupHeartbeatRequest)
        if not self.member_id and (version or 0) >= _FIRST_VERSION_WITH_OWN_MEMBER_ID:
            self.member_id = _new_member_id(self._client.random.randbytes(_MEMBER_ID_BYTES))
        if joins:
            self.state = MembershipState.JOINING
        request = self._heartbeat_request(is_full=self._is_full or joins)
        self._is_heartbeat_sent = True
        self._is_full = self._names_owned = False
        life = self._life

        def answered(answer: Message | NoAnswer, now_ms: int) -> None:
            is_over = self.is_over or self.state == MembershipState.LEAVING
            if life == self._life and not is_over:
                self._is_heartbeat_sent = False
                self._on_heartbeat(answer, now_ms)

        if not self._send_heartbeat(request, answered, now_ms):
            self._fail(ErrorCode.UNSUPPORTED_VERSION, now_ms)

    def _heartbeat_request(self, *, is_full: bool) -> ConsumerGroupHeartbeatRequest:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._config.group_id,
            member_id=self.member_id,
            member_epoch=self.member_epoch,
            instance_id=self._config.group_instance_id,
        )
        if is_full:
            request.rebalance_timeout_ms = self._config.rebalance_timeout_ms
            request.subscribed_topic_names = list(self._topics)
            request.rack_id = self._config.consumer.client.client_rack or None
            request.server_assignor = self._config.remote_assignor
        if is_full or self._names_owned:
            request.topic_partitions = _by_topic([*self._owned, *self._releasing])
        return request

    def _send_heartbeat(
        self,
        request: ConsumerGroupHeartbeatRequest,
        then: Callable[[Message | NoAnswer, int], None],
        now_ms: int,
    ) -> bool:
        watch = None
        if self.on_heartbeat_sent is not None and self._channel.node_id is not None:
            watch = self.on_heartbeat_sent(request, self._channel.node_id)

        def answered(answer: Message | NoAnswer, now_ms: int) -> None:
            if watch is not None:
                watch(answer)
            then(answer, now_ms)

        return self._channel.send(request, answered, now_ms=now_ms)

    def _on_heartbeat(self, answer: Message | NoAnswer, now_ms: int) -> None:
        if not isinstance(answer, ConsumerGroupHeartbeatResponse):
            self._retry_heartbeat(ErrorCode.NETWORK_EXCEPTION, now_ms)
            return
        error = ErrorCode.from_wire(answer.error_code)
        if error == ErrorCode.NONE:
            self._failures = 0
            self.member_id = answer.member_id or self.member_id
            self.member_epoch = answer.member_epoch
            if not self._names_owned:
                self._heartbeat_at_ms = now_ms + answer.heartbeat_interval_ms
            if answer.assignment is not None:
                self._target = frozenset(
                    (bytes(topic.topic_id), index)
                    for topic in answer.assignment.topic_partitions
                    for index in topic.partitions
                )
            self._reconcile(now_ms)
        elif error in _FENCED or (
            # A group that was deleted while we slept; at a join it is a classic group's name.
            error == ErrorCode.GROUP_ID_NOT_FOUND and self.member_epoch > JOIN_EPOCH
        ):
            self._start_over(now_ms)
        elif error in RETRIABLE:
            self._retry_heartbeat(error, now_ms)
        else:
            self._fail(error, now_ms)

    def _retry_heartbeat(self, error: ErrorCode, now_ms: int) -> None:
        """Whatever the lost answer said, a full heartbeat is answered with it again."""
        if error in COORDINATOR_MOVED:
            self._channel.forget()
        self._is_full = True
        self._heartbeat_at_ms = now_ms + self._back_off.pause_ms(self._failures)
        self._failures += 1

    def _on_commit_refused(self, error: ErrorCode, identity: GroupIdentity, now_ms: int) -> None:
        is_member = self.identity is not None and self.state != MembershipState.LEAVING
        if error in _FENCED and is_member:
            self._start_over(now_ms)

    # Leaving

    def _run_leave(self, now_ms: int) -> None:
        if now_ms >= self._leave_until_ms:
            self._left(now_ms)
        elif self._commits.pending or self._is_leave_sent:
            return
        elif not self.member_id:
            self._left(now_ms)
        elif self._channel.is_usable(now_ms):
            is_static = self._config.group_instance_id is not None
            request = ConsumerGroupHeartbeatRequest(
                group_id=self._config.group_id,
                member_id=self.member_id,
                member_epoch=LEAVE_STATIC_EPOCH if is_static else LEAVE_EPOCH,
                instance_id=self._config.group_instance_id,
            )
            self._is_leave_sent = True
            if not self._send_heartbeat(request, self._on_leave_answered, now_ms):
                self._left(now_ms)

    def _on_leave_answered(self, answer: Message | NoAnswer, now_ms: int) -> None:
        """Refused or not, we are gone; only a coordinator that moved must hear it again."""
        if self.is_over:
            return
        self._is_leave_sent = False
        error = ErrorCode.NETWORK_EXCEPTION
        if isinstance(answer, ConsumerGroupHeartbeatResponse):
            error = ErrorCode.from_wire(answer.error_code)
        if error in COORDINATOR_MOVED:
            self._channel.forget()
        elif error not in RETRIABLE:
            self._left(now_ms)

    def _left(self, now_ms: int) -> None:
        self._forget_life()
        self._end(MembershipState.LEFT, ErrorCode.REQUEST_TIMED_OUT, now_ms)


def _new_member_id(random_bytes: bytes) -> str:
    return urlsafe_b64encode(random_bytes).rstrip(b"=").decode("ascii")


def _by_topic(keys: Iterable[PartitionId]) -> list[ConsumerGroupHeartbeatTopicPartitions]:
    topics: dict[bytes, ConsumerGroupHeartbeatTopicPartitions] = {}
    for topic_id, index in sorted(keys):
        topic = topics.setdefault(
            topic_id, ConsumerGroupHeartbeatTopicPartitions(topic_id=topic_id)
        )
        topic.partitions.append(index)
    return list(topics.values())
