"""A member of a classic group over the simulated wire: it joins, syncs, beats and commits.

It is as small as the protocol allows, and a little ruder than real clients: now and then it sends a
commit of the generation that it has just left, as a process does that was paused between two
instructions. Its ownership begins with the answer to SyncGroup, and ends when it joins again or is
fenced.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from tidelog.client.group.consumer_protocol import write_subscription
from tidelog.core.groups.consumer_protocol import CONSUMER_PROTOCOL_TYPE
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_11_join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from tidelog.core.wire.messages.api_12_heartbeat import HeartbeatRequest, HeartbeatResponse
from tidelog.core.wire.messages.api_13_leave_group import (
    LeaveGroupRequest,
    LeaveGroupRequestMember,
)
from tidelog.core.wire.messages.api_14_sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from tidelog.judge.groups.group_history import GroupJoined, GroupSynced
from tidelog.worlds.simulator.profiles.groups_clients import (
    Committer,
    CoordinatorAnswer,
    CoordinatorClient,
)
from tidelog.worlds.simulator.profiles.groups_context import GroupsContext
from tidelog.worlds.simulator.profiles.groups_plan import MemberPlan

JOIN_VERSION = 9
SYNC_VERSION = 5
HEARTBEAT_VERSION = 4
LEAVE_VERSION = 5
TURN_MS = (30, 70)
HEARTBEAT_MS = 120
JOIN_TIMEOUT_MS = 6_000
LATE_COMMIT_CHANCE = 0.3
PROTOCOL = "range"
FENCED = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,
    }
)


class MemberPhase(Enum):
    """Where a member is in the protocol."""

    DOWN = "down"
    OUTSIDE = "outside"
    WAITING = "waiting"
    """For the answer to a join or a sync."""
    STABLE = "stable"


class ClassicGroupMember(CoordinatorClient):
    """One host, on which one process of the member after the other may run."""

    def __init__(self, context: GroupsContext, plan: MemberPlan) -> None:
        super().__init__(context, plan.name, plan.group)
        self.plan = plan
        self.state = MemberPhase.DOWN
        self.member_id = ""
        self.generation = -1
        self.owned: tuple[str, ...] = ()
        self._life = 0
        """Answers to earlier processes of this host are nobody's."""
        self._next_heartbeat_us = 0
        self._next_commit_us = 0
        self._is_beating = False
        self._late = CoordinatorClient(context, f"{plan.name}-late", plan.group)

    # Processes

    def start(self) -> None:
        """A new process: it knows nothing."""
        if self.state is not MemberPhase.DOWN:
            return
        self._life += 1
        self.member_id, self.generation = "", -1
        self._is_beating = False
        self.state = MemberPhase.OUTSIDE
        self._turn(self._life)

    def kill(self) -> None:
        """It says no farewell."""
        self.state = MemberPhase.DOWN
        self.owned = ()
        self._life += 1
        self.disconnect()

    def leave(self) -> None:
        """A dynamic member says farewell; a static one only goes, as clients do."""
        if self.state is MemberPhase.STABLE and self.coordinator is not None:
            leaving = LeaveGroupRequestMember(
                member_id=self.member_id, group_instance_id=self.plan.instance
            )
            request = LeaveGroupRequest(group_id=self.group, members=[leaving])
            if self.plan.instance is None:
                self.ask_coordinator(request, LEAVE_VERSION, lambda _answer: None)
        self.state = MemberPhase.DOWN
        self.owned = ()
        self._life += 1

    def reconnect(self) -> None:
        """Begin with new connections everywhere."""
        self.disconnect()
        self._late.disconnect()

    # Turns

    def _turn(self, life: int) -> None:
        if life != self._life:
            return
        if self.coordinator is None:
            self.find_coordinator()
        elif self.state is MemberPhase.OUTSIDE:
            self._join()
        elif self.state is MemberPhase.STABLE:
            self._beat_and_commit()
        self.groups.later(self.random, *TURN_MS, lambda: self._turn(life))

    def _beat_and_commit(self) -> None:
        now_us = self.groups.world.now_us
        if now_us >= self._next_heartbeat_us and not self._is_beating:
            self._next_heartbeat_us = now_us + HEARTBEAT_MS * 1_000
            self._beat()
        if now_us >= self._next_commit_us and self.owned and not self.groups.is_over:
            self._next_commit_us = now_us + self.plan.commit_interval_ms * 1_000
            for partition in self.owned:
                if self.coordinator is not None:
                    self.commit(partition, self._committer(), self._in_this_life(self._on_error))

    def _committer(self) -> Committer:
        return Committer(self.member_id, self.plan.instance, self.generation)

    def _in_this_life(
        self, act: Callable[[ErrorCode | None], None]
    ) -> Callable[[ErrorCode | None], None]:
        life, generation = self._life, self.generation

        def only_then(error: ErrorCode | None) -> None:
            if life == self._life and generation == self.generation:
                act(error)

        return only_then

    def _on_error(self, error: ErrorCode | None) -> None:
        """What a heartbeat or a commit was answered with."""
        if self.state is not MemberPhase.STABLE or error is None:
            return
        if error is ErrorCode.REBALANCE_IN_PROGRESS:
            self._revoke()
        elif error in FENCED:
            self._revoke()
            if error is not ErrorCode.ILLEGAL_GENERATION:
                self.member_id = ""

    def _revoke(self) -> None:
        self.owned = ()
        self.state = MemberPhase.OUTSIDE

    # Requests

    def _join(self) -> None:
        """Whatever was owned is given up before."""
        self.owned = ()
        if self.coordinator is None:
            self.state = MemberPhase.OUTSIDE
            return
        self.state = MemberPhase.WAITING
        life, before = self._life, self._committer()
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=self.plan.session_timeout_ms,
            rebalance_timeout_ms=self.plan.rebalance_timeout_ms,
            member_id=self.member_id,
            group_instance_id=self.plan.instance,
            protocol_type=CONSUMER_PROTOCOL_TYPE,
            protocols=[
                JoinGroupRequestProtocol(
                    name=PROTOCOL,
                    metadata=write_subscription([self.groups.groups.topic.name]),
                )
            ],
        )

        def on_answer(answer: CoordinatorAnswer) -> None:
            if life != self._life:
                return
            if not isinstance(answer.reply, JoinGroupResponse):
                self.state = MemberPhase.OUTSIDE
                return
            self._on_joined(answer, answer.reply, before)

        self.ask_coordinator(request, JOIN_VERSION, on_answer, timeout_ms=JOIN_TIMEOUT_MS)

    def _on_joined(
        self, answer: CoordinatorAnswer, reply: JoinGroupResponse, before: Committer
    ) -> None:
        error = ErrorCode(reply.error_code)
        self.look_again(error)
        if error is not ErrorCode.NONE:
            self.state = MemberPhase.OUTSIDE
            if error is ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = reply.member_id
                self._join()
            elif error in FENCED:
                self.member_id = ""
            return
        self.member_id, self.generation = reply.member_id, reply.generation_id
        self.groups.record_group(
            GroupJoined(
                at_us=self.groups.world.now_us,
                invoked_us=answer.invoked_us,
                group=self.group,
                member=self.member_id,
                instance=self.plan.instance,
                generation=self.generation,
                from_deposed=answer.from_deposed,
            )
        )
        self._sync(reply, before)

    def _sync(self, joined: JoinGroupResponse, before: Committer) -> None:
        if self.coordinator is None:
            self.state = MemberPhase.OUTSIDE
            return
        life = self._life
        assignments = []
        if joined.leader == self.member_id and not joined.skip_assignment:
            members = sorted(member.member_id for member in joined.members)
            assignments = self._assign(members)
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.plan.instance,
            protocol_type=CONSUMER_PROTOCOL_TYPE,
            protocol_name=PROTOCOL,
            assignments=assignments,
        )

        def on_answer(answer: CoordinatorAnswer) -> None:
            if life != self._life:
                return
            self.state = MemberPhase.OUTSIDE
            if isinstance(answer.reply, SyncGroupResponse):
                self._on_synced(answer, answer.reply, before)

        self.ask_coordinator(request, SYNC_VERSION, on_answer, timeout_ms=JOIN_TIMEOUT_MS)

    def _assign(self, members: list[str]) -> list[SyncGroupRequestAssignment]:
        """In turn, beginning with another member in each generation: partitions move."""
        shares: dict[str, list[str]] = {member: [] for member in members}
        for number, partition in enumerate(self.groups.subscribed):
            shares[members[(number + self.generation) % len(members)]].append(partition)
        return [
            SyncGroupRequestAssignment(member_id=member, assignment=",".join(share).encode())
            for member, share in shares.items()
        ]

    def _on_synced(
        self, answer: CoordinatorAnswer, reply: SyncGroupResponse, before: Committer
    ) -> None:
        error = ErrorCode(reply.error_code)
        self.look_again(error)
        if error is not ErrorCode.NONE:
            if error in FENCED and error is not ErrorCode.ILLEGAL_GENERATION:
                self.member_id = ""
            return
        assignment = bytes(reply.assignment).decode()
        self.owned = tuple(assignment.split(",")) if assignment else ()
        self.state = MemberPhase.STABLE
        self.groups.record_group(
            GroupSynced(
                at_us=self.groups.world.now_us,
                invoked_us=answer.invoked_us,
                group=self.group,
                member=self.member_id,
                instance=self.plan.instance,
                generation=self.generation,
                partitions=self.owned,
                from_deposed=answer.from_deposed,
            )
        )
        self._next_heartbeat_us = self.groups.world.now_us + HEARTBEAT_MS * 1_000
        if before.generation >= 0 and self.random.random() < LATE_COMMIT_CHANCE:
            self._commit_late(before)

    def _commit_late(self, before: Committer) -> None:
        """As who it was in the generation before."""
        if not self.groups.is_over:
            self._late.coordinator = self.coordinator
            if self.coordinator is not None:
                partition = self.random.choice(self.groups.subscribed)
                self._late.commit(partition, before, lambda _error: None)

    def _beat(self) -> None:
        self._is_beating = True
        then = self._in_this_life(self._on_error)
        request = HeartbeatRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.plan.instance,
        )

        def on_answer(answer: CoordinatorAnswer) -> None:
            self._is_beating = False
            if isinstance(answer.reply, HeartbeatResponse):
                self.look_again(answer.reply.error_code)
                then(ErrorCode(answer.reply.error_code))

        self.ask_coordinator(request, HEARTBEAT_VERSION, on_answer)
