"""A coordinator partition of classic groups with a clock, and members that talk to it in few words.

Records are applied at once, as the runtime does, and kept, so that a successor can replay them.
"""

from __future__ import annotations

from random import Random
from typing import Any

from tidelog.core.coordinator.outcome import Outcome, ReplyTo
from tidelog.core.coordinator.record import CoordinatorRecord
from tidelog.core.groups.classic_group import ClassicGroup, ClassicState
from tidelog.core.groups.classic_groups import ClassicGroups
from tidelog.core.groups.classic_join import Joiner
from tidelog.core.groups.classic_member import GroupProtocol
from tidelog.core.groups.group_records import GroupMetadataValue, read_group_value
from tidelog.core.groups.group_settings import GroupSettings
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_11_join_group import JoinGroupResponse
from tidelog.core.wire.messages.api_12_heartbeat import HeartbeatRequest
from tidelog.core.wire.messages.api_13_leave_group import (
    LeaveGroupRequest,
    LeaveGroupRequestMember,
    LeaveGroupResponse,
)
from tidelog.core.wire.messages.api_14_sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

GROUP = "g"
WALL_START_MS = 1_700_000_000_000
SESSION_MS, REBALANCE_MS = 10_000, 60_000
RANGE = (GroupProtocol("range", b"r"),)
NEWEST_JOIN, JOIN_WITHOUT_ID_ROUND = 9, 3


def wall_ms(now_ms: int) -> int:
    return WALL_START_MS + now_ms


class Caller:
    """One parked request; the answers that it got."""

    def __init__(self) -> None:
        self.answers: list[Any] = []

    @property
    def answer(self) -> Any:
        assert len(self.answers) == 1, f"answered {len(self.answers)} times"
        return self.answers[0]

    @property
    def error(self) -> int:
        code: int = self.answer.error_code
        return code

    @property
    def waits(self) -> bool:
        return not self.answers


class GroupsUnderTest:
    """Every event ends with `check`; every record is applied and kept."""

    def __init__(
        self, log: list[CoordinatorRecord] | None = None, *, now_ms: int = 0, **settings: int
    ) -> None:
        self.settings = GroupSettings(**{"initial_rebalance_delay_ms": 0, **settings})
        self.groups = ClassicGroups(self.settings, random=Random(7), wall_ms=wall_ms)
        self.now_ms = now_ms
        self.log = list(log or [])
        self.callers: list[Caller] = []
        for record in self.log:
            self.groups.apply(record)
        self.take(self.groups.on_loaded(now_ms))

    @property
    def group(self) -> ClassicGroup:
        group = self.groups.get(GROUP)
        assert group is not None
        return group

    def take(self, outcome: Outcome) -> Outcome:
        for record in outcome.records:
            self.groups.apply(record)
            self.log.append(record)
        for reply_to, answer in outcome.replies:
            caller = reply_to
            assert isinstance(caller, Caller)
            caller.answers.append(answer)
        self.groups.check()
        return outcome

    def wait(self, duration_ms: int) -> None:
        """Let time pass, with every deadline on the way at its moment."""
        end_ms = self.now_ms + duration_ms
        while (due_ms := self.groups.next_deadline_ms()) is not None and due_ms <= end_ms:
            self.now_ms = max(due_ms, self.now_ms)
            self.take(self.groups.on_timer(self.now_ms))
        self.now_ms = end_ms

    def caller(self) -> Caller:
        self.callers.append(Caller())
        return self.callers[-1]

    def join(
        self,
        member_id: str = "",
        *,
        instance: str | None = None,
        protocols: tuple[GroupProtocol, ...] = RANGE,
        protocol_type: str = "consumer",
        version: int = NEWEST_JOIN,
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
    ) -> Caller:
        caller = self.caller()
        joiner = Joiner(
            group_id=GROUP,
            member_id=member_id,
            group_instance_id=instance,
            client_id="client",
            client_host="/127.0.0.1",
            version=version,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            protocol_type=protocol_type,
            protocols=protocols,
        )
        self.take(self.groups.join(joiner, ReplyTo(caller), self.now_ms))
        return caller

    def sync(
        self,
        member_id: str,
        assignments: dict[str, bytes] | None = None,
        *,
        generation: int | None = None,
        instance: str | None = None,
        protocol_type: str | None = None,
        protocol: str | None = None,
    ) -> Caller:
        caller = self.caller()
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=self.group.generation if generation is None else generation,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocol_name=protocol,
            assignments=[
                SyncGroupRequestAssignment(member_id=to, assignment=content)
                for to, content in (assignments or {}).items()
            ],
        )
        self.take(self.groups.sync(request, ReplyTo(caller), self.now_ms))
        return caller

    def heartbeat(
        self, member_id: str, *, generation: int | None = None, instance: str | None = None
    ) -> int:
        caller = self.caller()
        group = self.groups.get(GROUP)
        request = HeartbeatRequest(
            group_id=GROUP,
            generation_id=(group.generation if group else 0) if generation is None else generation,
            member_id=member_id,
            group_instance_id=instance,
        )
        self.take(self.groups.heartbeat(request, ReplyTo(caller), self.now_ms))
        return caller.error

    def leave(self, *members: tuple[str, str | None]) -> LeaveGroupResponse:
        caller = self.caller()
        request = LeaveGroupRequest(
            group_id=GROUP,
            members=[
                LeaveGroupRequestMember(member_id=member_id, group_instance_id=instance)
                for member_id, instance in members
            ],
        )
        self.take(self.groups.leave(request, ReplyTo(caller), self.now_ms))
        answer = caller.answer
        assert isinstance(answer, LeaveGroupResponse)
        return answer

    # Longer ways

    def new_member(self, **join: Any) -> tuple[str, Caller]:
        """A member that joins without asking for an id first, and the join, which may wait."""
        before = set(self.group.members) if GROUP in self.groups else set()
        caller = self.join(version=JOIN_WITHOUT_ID_ROUND, **join)
        (member_id,) = set(self.group.members) - before
        return member_id, caller

    def stable(self, count: int = 1, **join: Any) -> list[str]:
        """A stable group of so many members, in the order in which they came."""
        ids: list[str] = []
        for _ in range(count):
            new_id, _ = self.new_member(**join)
            for member_id in ids:
                self.join(member_id, **join)
            ids.append(new_id)
        self.sync(self.leader, {member_id: member_id.encode() for member_id in ids})
        for member_id in ids:
            self.sync(member_id)
        return ids

    @property
    def leader(self) -> str:
        assert self.group.leader is not None
        return self.group.leader


def joined(caller: Caller) -> JoinGroupResponse:
    answer = caller.answer
    assert isinstance(answer, JoinGroupResponse)
    return answer


def synced(caller: Caller) -> SyncGroupResponse:
    answer = caller.answer
    assert isinstance(answer, SyncGroupResponse)
    return answer


def commit(
    here: GroupsUnderTest,
    member_id: str,
    *,
    generation: int,
    version: int = 9,
    transactional: bool = False,
) -> ErrorCode:
    return here.groups.validate_offset_commit(
        GROUP,
        member_id,
        None,
        generation,
        here.now_ms,
        version=version,
        is_transactional=transactional,
    )


def last_value(here: GroupsUnderTest) -> GroupMetadataValue:
    value = here.log[-1].value
    assert value is not None
    return read_group_value(value)


def completing(here: GroupsUnderTest, count: int = 2) -> list[str]:
    """A group whose generation is known and whose leader has not assigned yet."""
    ids = here.stable(count)
    leader = here.leader
    here.join(leader)
    for member_id in ids:
        if member_id != leader:
            here.join(member_id)
    assert here.group.state is ClassicState.COMPLETING_REBALANCE
    return [leader, *(member_id for member_id in ids if member_id != leader)]
