"""How a classic group gets from one generation to the next.

    EMPTY, STABLE, COMPLETING -> `prepare` -> all joined, or time is up -> `complete_join`
    -> the leader's assignment -> `complete_sync` -> STABLE

Every step adds to the outcome of the event it belongs to: what is written and who is answered. A
join or a sync that waits is answered once, whatever happens to its member.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tidelog.core.coordinator.outcome import Outcome, ReplyTo
from tidelog.core.groups.classic_group import ClassicGroup, ClassicState
from tidelog.core.groups.classic_member import NO_ASSIGNMENT, ClassicMember, ParkedJoin
from tidelog.core.groups.group_deadlines import DeadlineKey, DeadlineKind, GroupDeadlines
from tidelog.core.groups.group_limits import PENDING_PER_PARTITION_MAX
from tidelog.core.groups.group_records import group_record
from tidelog.core.groups.group_settings import GroupSettings
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_11_join_group import (
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from tidelog.core.wire.messages.api_14_sync_group import SyncGroupResponse

_FIRST_JOIN_VERSION_WITH_NULL_PROTOCOL = 7


@dataclass(slots=True)
class GroupEvent:
    """One event under way: when it is, and what it has decided so far."""

    now_ms: int
    outcome: Outcome = field(default_factory=Outcome)

    def reply(self, reply_to: ReplyTo, answer: object) -> None:
        self.outcome.replies.append((reply_to, answer))

    def answer_join(self, join: ParkedJoin, answer: JoinGroupResponse) -> None:
        if answer.protocol_name is None and join.version < _FIRST_JOIN_VERSION_WITH_NULL_PROTOCOL:
            answer.protocol_name = ""
        self.reply(join.reply_to, answer)

    def refuse_join(self, join: ParkedJoin, error: ErrorCode, *, member_id: str) -> None:
        refusal = JoinGroupResponse(error_code=error, member_id=member_id, protocol_name=None)
        self.answer_join(join, refusal)


class ClassicRebalance:
    """The steps of a rebalance. It keeps nothing but deadlines; the groups are its callers'."""

    def __init__(
        self,
        settings: GroupSettings,
        deadlines: GroupDeadlines,
        wall_ms: Callable[[int], int],
    ) -> None:
        self._settings = settings
        self._deadlines = deadlines
        self._wall_ms = wall_ms
        self._pending: OrderedDict[tuple[str, str], ClassicGroup] = OrderedDict()
        """All ids that were given out, the oldest first. A dict would search for its first key."""

    def note_pending(self, group: ClassicGroup, member_id: str) -> None:
        """An id is given out. If too many were, the oldest is not known any more."""
        group.pending.add(member_id)
        self._pending[group.group_id, member_id] = group
        if len(self._pending) > PENDING_PER_PARTITION_MAX:
            (_, oldest_id), oldest_group = self._pending.popitem(last=False)
            oldest_group.pending.discard(oldest_id)
            self.cancel_session(oldest_group, oldest_id)

    def prepare_or_complete(self, group: ClassicGroup, event: GroupEvent) -> None:
        """Something changed: begin a rebalance, or see whether the present one waits no more."""
        if group.can_rebalance:
            self.prepare(group, event)
        else:
            self.complete_join_if_all_joined(group, event)

    def prepare(self, group: ClassicGroup, event: GroupEvent) -> None:
        """Ask all members to join again. A group that was empty first waits for more members."""
        if group.state is ClassicState.COMPLETING_REBALANCE:
            for member in group.members.values():
                member.assignment = NO_ASSIGNMENT
            for member_id in list(group.syncs):
                self._answer_sync(group, member_id, ErrorCode.REBALANCE_IN_PROGRESS, event)
        group.not_synced.clear()
        self._deadlines.cancel(DeadlineKey(DeadlineKind.SYNC, group.group_id))
        was_empty = group.state is ClassicState.EMPTY
        group.become(ClassicState.PREPARING_REBALANCE, wall_ms=self._wall_ms(event.now_ms))
        delay_ms = self._settings.initial_rebalance_delay_ms
        if was_empty and delay_ms:
            group.has_new_member = False
            group.initial_delay_left_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
            self._await_joins(group, delay_ms, event)
        elif was_empty or group.all_joined:
            self.complete_join(group, event)
        else:
            self._await_joins(group, group.rebalance_timeout_ms, event)

    def complete_join_if_all_joined(self, group: ClassicGroup, event: GroupEvent) -> None:
        """Not in the initial rebalance: its delay is there to let others come."""
        if (
            group.state is ClassicState.PREPARING_REBALANCE
            and not group.is_initial_rebalance
            and group.all_joined
        ):
            self.complete_join(group, event)

    def on_join_deadline(self, group: ClassicGroup, event: GroupEvent) -> None:
        """Time is up. The initial delay starts again as long as members keep coming."""
        assert group.state is ClassicState.PREPARING_REBALANCE, group.state
        left_ms = group.initial_delay_left_ms
        if not left_ms or not group.has_new_member:
            self.complete_join(group, event)
            return
        delay_ms = min(self._settings.initial_rebalance_delay_ms, left_ms)
        group.has_new_member = False
        group.initial_delay_left_ms = max(left_ms - delay_ms, 0)
        self._await_joins(group, delay_ms, event)

    def complete_join(self, group: ClassicGroup, event: GroupEvent) -> None:
        """Begin the next generation with whoever has joined, and with the static members.

        A dynamic member that has not joined is out. A static one stays until its session ends: it
        may be restarting. If none of them has joined there is nobody to lead, and the wait begins
        again.
        """
        self._deadlines.cancel(DeadlineKey(DeadlineKind.JOIN, group.group_id))
        for member in list(group.members.values()):
            if member.member_id not in group.joins and not member.is_static:
                self.forget(group, member.member_id, event)
        if not group.elect_joined_leader() and group.members:
            self._await_joins(group, group.rebalance_timeout_ms, event)
            return
        group.initial_delay_left_ms = None
        group.begin_generation(wall_ms=self._wall_ms(event.now_ms))
        if not group.members:
            self.write(group, event)
            return
        for member in group.members.values():
            join = group.joins.pop(member.member_id, None)
            if join is not None:
                event.answer_join(join, generation_answer(group, member.member_id))
            member.is_new = False
            group.not_synced.add(member.member_id)
            self.renew_session(group, member, event)
        self._deadlines.schedule(
            DeadlineKey(DeadlineKind.SYNC, group.group_id),
            event.now_ms + group.rebalance_timeout_ms,
        )

    def complete_sync(
        self, group: ClassicGroup, assignments: Mapping[str, bytes], event: GroupEvent
    ) -> None:
        """The leader has assigned: write the generation down, and answer all who wait for it."""
        for member in group.members.values():
            member.assignment = assignments.get(member.member_id, NO_ASSIGNMENT)
        # The record has the time of the state before this one, as in Kafka.
        self.write(group, event)
        group.become(ClassicState.STABLE, wall_ms=self._wall_ms(event.now_ms))
        callers = list(group.syncs.values())
        event.outcome.if_too_large = lambda: self._refuse_too_large(group, callers, event.now_ms)
        for member_id in list(group.syncs):
            self._answer_sync(group, member_id, ErrorCode.NONE, event)

    def _refuse_too_large(
        self, group: ClassicGroup, callers: list[ReplyTo], now_ms: int
    ) -> Outcome:
        """The generation does not fit into a batch: its members learn so, and join again."""
        event = GroupEvent(now_ms)
        for reply_to in callers:
            event.reply(reply_to, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))
        for member in group.members.values():
            member.assignment = NO_ASSIGNMENT
        self.prepare(group, event)
        return event.outcome

    def on_sync_deadline(self, group: ClassicGroup, event: GroupEvent) -> None:
        """Whoever did not sync is out, and the others rebalance."""
        if not group.not_synced:
            return
        for member_id in sorted(group.not_synced):
            self.forget(group, member_id, event)
        self.prepare(group, event)

    def note_synced(self, group: ClassicGroup, member_id: str) -> None:
        group.not_synced.discard(member_id)
        if not group.not_synced:
            self._deadlines.cancel(DeadlineKey(DeadlineKind.SYNC, group.group_id))

    def park_sync(
        self, group: ClassicGroup, member_id: str, reply_to: ReplyTo, event: GroupEvent
    ) -> None:
        if member_id in group.syncs:  # the client gave up waiting, and asks again
            self._answer_sync(group, member_id, ErrorCode.REBALANCE_IN_PROGRESS, event)
        group.syncs[member_id] = reply_to

    def park_join(
        self, group: ClassicGroup, member_id: str, join: ParkedJoin, event: GroupEvent
    ) -> None:
        given_up = group.joins.pop(member_id, None)
        if given_up is not None:
            event.refuse_join(given_up, ErrorCode.REBALANCE_IN_PROGRESS, member_id=member_id)
        group.joins[member_id] = join

    def forget(self, group: ClassicGroup, member_id: str, event: GroupEvent) -> None:
        """Remove a member or a pending one, and answer what it waits for."""
        self.answer_waiting(group, member_id, ErrorCode.UNKNOWN_MEMBER_ID, event, answered_id="")
        self.cancel_session(group, member_id)
        self.forget_pending(group, member_id)
        group.remove(member_id)

    def answer_waiting(
        self,
        group: ClassicGroup,
        member_id: str,
        error: ErrorCode,
        event: GroupEvent,
        *,
        answered_id: str,
    ) -> None:
        join = group.joins.pop(member_id, None)
        if join is not None:
            event.refuse_join(join, error, member_id=answered_id)
        reply_to = group.syncs.pop(member_id, None)
        if reply_to is not None:
            event.reply(reply_to, SyncGroupResponse(error_code=error))

    def renew_session(self, group: ClassicGroup, member: ClassicMember, event: GroupEvent) -> None:
        self.await_sign_of_life(group, member.member_id, member.session_timeout_ms, event)

    def cancel_session(self, group: ClassicGroup, member_id: str) -> None:
        self._deadlines.cancel(session_key(group.group_id, member_id))

    def forget_pending(self, group: ClassicGroup, member_id: str) -> None:
        self._pending.pop((group.group_id, member_id), None)

    def cancel_all(self, group: ClassicGroup) -> None:
        """The group is gone."""
        for kind in (DeadlineKind.JOIN, DeadlineKind.SYNC):
            self._deadlines.cancel(DeadlineKey(kind, group.group_id))
        for member_id in (*group.members, *group.pending):
            self.cancel_session(group, member_id)
            self.forget_pending(group, member_id)

    def await_sign_of_life(
        self, group: ClassicGroup, member_id: str, within_ms: int, event: GroupEvent
    ) -> None:
        self._deadlines.schedule(session_key(group.group_id, member_id), event.now_ms + within_ms)

    def write(self, group: ClassicGroup, event: GroupEvent) -> None:
        event.outcome.records.append(group_record(group.group_id, group.as_record()))

    def _await_joins(self, group: ClassicGroup, within_ms: int, event: GroupEvent) -> None:
        key = DeadlineKey(DeadlineKind.JOIN, group.group_id)
        self._deadlines.schedule(key, event.now_ms + within_ms)

    def _answer_sync(
        self, group: ClassicGroup, member_id: str, error: ErrorCode, event: GroupEvent
    ) -> None:
        # Its session may have ended unnoticed while it waited for us, so it begins again.
        member = group.members[member_id]
        self.renew_session(group, member, event)
        event.reply(group.syncs.pop(member_id), assignment_answer(group, member, error))


def session_key(group_id: str, member_id: str) -> DeadlineKey:
    return DeadlineKey(DeadlineKind.SESSION, group_id, member_id)


def generation_answer(
    group: ClassicGroup, member_id: str, *, skip_assignment: bool = False
) -> JoinGroupResponse:
    """The generation as a member learns it; only its leader learns who else is in it."""
    members = []
    if group.leader == member_id and group.protocol is not None:
        members = [
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                metadata=member.metadata(group.protocol),
            )
            for member in group.members.values()
        ]
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=group.leader or "",
        skip_assignment=skip_assignment,
        member_id=member_id,
        members=members,
    )


def assignment_answer(
    group: ClassicGroup, member: ClassicMember, error: ErrorCode = ErrorCode.NONE
) -> SyncGroupResponse:
    has_assignment = error is ErrorCode.NONE
    return SyncGroupResponse(
        error_code=error,
        protocol_type=group.protocol_type if has_assignment else None,
        protocol_name=group.protocol if has_assignment else None,
        assignment=member.assignment if has_assignment else NO_ASSIGNMENT,
    )
