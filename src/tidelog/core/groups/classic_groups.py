"""The classic groups of one coordinator partition: events in, outcomes out.

A group lives between two records: who waits, who has not synced and whose session ends when is not
in the log. So events change the live group at once, and its records are what a successor begins
with. `apply` builds groups while the log is replayed. From `on_loaded` on the live groups are
ahead of their records, and `apply` only adds what other records bring (a simple group, with its
first offset) and drops what a tombstone ends. Nothing that was decided is undone: if a record
cannot be appended, the whole shard is dropped.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from random import Random

from tidelog.core.coordinator.outcome import Outcome, ReplyTo
from tidelog.core.coordinator.record import CoordinatorRecord
from tidelog.core.groups.classic_group import ClassicGroup, ClassicState
from tidelog.core.groups.classic_join import NEW_MEMBER, ClassicJoin, Joiner
from tidelog.core.groups.classic_member import ParkedJoin
from tidelog.core.groups.classic_rebalance import (
    ClassicRebalance,
    GroupEvent,
    assignment_answer,
    session_key,
)
from tidelog.core.groups.classic_refusals import refuse_commit, refuse_heartbeat, refuse_sync
from tidelog.core.groups.group_deadlines import DeadlineKey, DeadlineKind, GroupDeadlines
from tidelog.core.groups.group_limits import UNUSED_GROUPS_MAX
from tidelog.core.groups.group_records import group_tombstone, read_group_key, read_group_value
from tidelog.core.groups.group_settings import GroupSettings
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_12_heartbeat import HeartbeatRequest, HeartbeatResponse
from tidelog.core.wire.messages.api_13_leave_group import (
    LeaveGroupRequest,
    LeaveGroupRequestMember,
    LeaveGroupResponse,
    LeaveGroupResponseMember,
)
from tidelog.core.wire.messages.api_14_sync_group import SyncGroupRequest, SyncGroupResponse

NO_GENERATION = -1
"""The generation of whoever commits without being a member."""
_FIRST_COMMIT_VERSION_WITH_GROUP_ID_NOT_FOUND = 9


class ClassicGroups:
    """All classic groups of a partition, by id."""

    def __init__(
        self, settings: GroupSettings, *, random: Random, wall_ms: Callable[[int], int]
    ) -> None:
        self._groups: dict[str, ClassicGroup] = {}
        self._settings = settings
        self._wall_ms = wall_ms
        self._deadlines = GroupDeadlines()
        self._rebalance = ClassicRebalance(settings, self._deadlines, wall_ms)
        self._join = ClassicJoin(settings, self._rebalance, random)
        self._is_loaded = False
        self._unused: OrderedDict[str, None] = OrderedDict()
        """Groups that began here and had neither members nor offsets so far, the oldest first."""

    # The log

    def apply(self, record: CoordinatorRecord) -> str:
        """Take a GroupMetadata record over: at replay its content, later only its end.

        Returns the id of its group.
        """
        group_id = read_group_key(record.key)
        if record.value is None:
            self._drop(group_id)
        elif not self._is_loaded:
            self._groups[group_id] = ClassicGroup.from_record(
                group_id, read_group_value(record.value)
            )
        return group_id

    def add_simple(self, group_id: str) -> None:
        """An offset was committed: if there is no such group, it is one without a protocol.

        It has no record of its own; the offset's record brings it back at replay.
        """
        self._unused.pop(group_id, None)
        if group_id not in self._groups:
            self._groups[group_id] = ClassicGroup(group_id, state_timestamp_ms=None)

    def remove_simple(self, group_id: str) -> None:
        """The id belongs to a KIP-848 group, whose offsets came first in the log."""
        group = self._groups.get(group_id)
        if group is not None and group.protocol_type is None:
            self._drop(group_id)

    def on_loaded(self, now_ms: int) -> Outcome:
        """Sessions begin anew. A group that is too large by now rebalances, and so shrinks."""
        self._is_loaded = True
        event = GroupEvent(now_ms)
        for group in list(self._groups.values()):
            for member in group.members.values():
                self._rebalance.renew_session(group, member, event)
            if len(group.members) > self._settings.size_max:
                self._rebalance.prepare(group, event)
        return event.outcome

    # Time

    def next_deadline_ms(self) -> int | None:
        return self._deadlines.next_deadline_ms()

    def on_timer(self, now_ms: int) -> Outcome:
        event = GroupEvent(now_ms)
        while (key := self._deadlines.pop_due(now_ms)) is not None:
            group = self._groups[key.group_id]
            if key.kind is DeadlineKind.SESSION:
                self._end_session(group, key.member_id, event)
            elif key.kind is DeadlineKind.JOIN:
                self._rebalance.on_join_deadline(group, event)
            else:
                self._rebalance.on_sync_deadline(group, event)
        return event.outcome

    def _end_session(self, group: ClassicGroup, member_id: str, event: GroupEvent) -> None:
        """A member that waits for us is alive, unless it is new: its client may have given up."""
        member = group.members.get(member_id)
        waits = member_id in group.joins or member_id in group.syncs
        if member is not None and waits and not member.is_new:
            return
        self._rebalance.forget(group, member_id, event)
        if member is not None and group.state in _SETTLED:
            self._rebalance.prepare(group, event)
        elif group.state is ClassicState.PREPARING_REBALANCE and group.all_joined:
            self._rebalance.complete_join(group, event)

    # Members

    def join(self, joiner: Joiner, reply_to: ReplyTo, now_ms: int) -> Outcome:
        """JoinGroup. Whoever has no id yet may begin a group."""
        event = GroupEvent(now_ms)
        group = self._groups.get(joiner.group_id)
        if group is None and joiner.member_id != NEW_MEMBER:
            join = ParkedJoin(reply_to, joiner.version)
            event.refuse_join(join, ErrorCode.UNKNOWN_MEMBER_ID, member_id=joiner.member_id)
            return event.outcome
        if group is None:
            group = ClassicGroup(joiner.group_id, state_timestamp_ms=self._wall_ms(now_ms))
            self._groups[joiner.group_id] = group
            self._rebalance.write(group, event)
            self._note_unused(group.group_id, event)
        self._join.join(group, joiner, reply_to, event)
        if group.members:
            self._unused.pop(group.group_id, None)
        return event.outcome

    def _note_unused(self, group_id: str, event: GroupEvent) -> None:
        """A group begins. If too many began that nobody ever joined, the oldest ends."""
        self._unused[group_id] = None
        if len(self._unused) > UNUSED_GROUPS_MAX:
            event.outcome.records.append(group_tombstone(next(iter(self._unused))))

    def sync(self, request: SyncGroupRequest, reply_to: ReplyTo, now_ms: int) -> Outcome:
        """SyncGroup: waits for the leader's, unless the assignment is there."""
        event = GroupEvent(now_ms)
        group = self._groups.get(request.group_id)
        error = refuse_sync(group, request)
        if group is None or error is not ErrorCode.NONE:
            event.reply(reply_to, SyncGroupResponse(error_code=error))
            return event.outcome
        member_id = request.member_id
        self._rebalance.note_synced(group, member_id)
        if group.state is ClassicState.STABLE:
            event.reply(reply_to, assignment_answer(group, group.members[member_id]))
            return event.outcome
        self._rebalance.park_sync(group, member_id, reply_to, event)
        if group.leader == member_id:
            assignments = {it.member_id: bytes(it.assignment) for it in request.assignments}
            self._rebalance.complete_sync(group, assignments, event)
        return event.outcome

    def heartbeat(self, request: HeartbeatRequest, reply_to: ReplyTo, now_ms: int) -> Outcome:
        event = GroupEvent(now_ms)
        group = self._groups.get(request.group_id)
        error = refuse_heartbeat(group, request)
        if group is not None and error is ErrorCode.NONE:
            self._rebalance.renew_session(group, group.members[request.member_id], event)
            if group.state is ClassicState.PREPARING_REBALANCE:
                error = ErrorCode.REBALANCE_IN_PROGRESS
        event.reply(reply_to, HeartbeatResponse(error_code=error))
        return event.outcome

    def leave(self, request: LeaveGroupRequest, reply_to: ReplyTo, now_ms: int) -> Outcome:
        """LeaveGroup, in the form of version 3: each member has its answer, then one rebalance."""
        event = GroupEvent(now_ms)
        group = self._groups.get(request.group_id)
        answers = [
            LeaveGroupResponseMember(
                member_id=leaving.member_id,
                group_instance_id=leaving.group_instance_id,
                error_code=self._leave_one(group, leaving, event),
            )
            for leaving in request.members
        ]
        if group is not None and any(it.error_code == ErrorCode.NONE for it in answers):
            if group.state in _SETTLED:
                self._rebalance.prepare(group, event)
            else:
                self._rebalance.complete_join_if_all_joined(group, event)
        event.reply(reply_to, LeaveGroupResponse(members=answers))
        return event.outcome

    def _leave_one(
        self, group: ClassicGroup | None, leaving: LeaveGroupRequestMember, event: GroupEvent
    ) -> ErrorCode:
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        member_id = leaving.member_id
        if member_id == NEW_MEMBER:  # an administrator removes a static member by its instance id
            instance_id = leaving.group_instance_id
            if instance_id is None or instance_id not in group.static_members:
                return ErrorCode.UNKNOWN_MEMBER_ID
            member_id = group.static_members[instance_id]
        elif member_id not in group.pending:
            error = group.refuse_member(member_id, leaving.group_instance_id)
            if error is not ErrorCode.NONE:
                return error
        self._rebalance.forget(group, member_id, event)
        return ErrorCode.NONE

    # What offsets ask

    def validate_offset_commit(
        self,
        group_id: str,
        member_id: str,
        group_instance_id: str | None,
        generation_id: int,
        now_ms: int,
        *,
        version: int,
        is_transactional: bool = False,
    ) -> ErrorCode:
        """Whether this caller may commit; a member's commit is a sign of life.

        Without a generation (-1) anybody may commit for a group that has no members, and so begins
        a simple group.
        """
        group = self._groups.get(group_id)
        if group is None:
            if generation_id < 0:
                return ErrorCode.NONE
            if not is_transactional and version >= _FIRST_COMMIT_VERSION_WITH_GROUP_ID_NOT_FOUND:
                return ErrorCode.GROUP_ID_NOT_FOUND
            return ErrorCode.ILLEGAL_GENERATION
        error = refuse_commit(
            group, member_id, group_instance_id, generation_id, is_transactional=is_transactional
        )
        if error is ErrorCode.NONE and not is_transactional and member_id in group.members:
            event = GroupEvent(now_ms)
            self._rebalance.renew_session(group, group.members[member_id], event)
        return error

    def validate_offset_fetch(self, group_id: str) -> ErrorCode:
        """GROUP_ID_NOT_FOUND means that no offset is known, which is not an error to a client."""
        return ErrorCode.NONE if group_id in self._groups else ErrorCode.GROUP_ID_NOT_FOUND

    def validate_offset_delete(self, group_id: str, topic: str | None = None) -> ErrorCode:
        """For the whole group, or with a topic for one of its topics."""
        group = self._groups.get(group_id)
        if group is None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        if topic is not None:
            subscribed = group.is_subscribed_to(topic)
            return ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE
        if group.state is not ClassicState.EMPTY and not group.is_of_consumers:
            return ErrorCode.NON_EMPTY_GROUP
        return ErrorCode.NONE

    # Deletion

    def refuse_deletion(self, group_id: str) -> ErrorCode:
        group = self._groups.get(group_id)
        if group is None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        if group.state is not ClassicState.EMPTY:
            return ErrorCode.NON_EMPTY_GROUP
        return ErrorCode.NONE

    def delete(self, group_id: str) -> list[CoordinatorRecord]:
        """The record that ends an empty group; its offsets are somebody else's."""
        assert self.refuse_deletion(group_id) is ErrorCode.NONE, "ask before you delete"
        return [group_tombstone(group_id)]

    def end(self, group_id: str) -> list[CoordinatorRecord]:
        """The record that ends a group, whoever is in it: a KIP-848 group takes over."""
        return [group_tombstone(group_id)]

    def rebalance_answers(self, group_id: str) -> list[tuple[ReplyTo, object]]:
        """The answers to those who wait, when this group ends and another takes over."""
        group, event = self._groups[group_id], GroupEvent(0)
        error = ErrorCode.REBALANCE_IN_PROGRESS
        for member_id, join in group.joins.items():
            event.refuse_join(join, error, member_id=member_id)
        for reply_to in group.syncs.values():
            event.reply(reply_to, SyncGroupResponse(error_code=error))
        return event.outcome.replies

    def take_over(self, group: ClassicGroup, must_rebalance: bool, now_ms: int) -> None:
        """A KIP-848 group has become this one, and its record is written."""
        assert group.group_id not in self._groups, "an id belongs to one group"
        self._groups[group.group_id] = group
        event = GroupEvent(now_ms)
        for member in group.members.values():
            self._rebalance.renew_session(group, member, event)
        if must_rebalance:
            self._rebalance.prepare(group, event)
        assert not event.outcome.records and not event.outcome.replies, "nobody has joined yet"

    def expire(self, group_id: str) -> list[CoordinatorRecord]:
        """The group has no offsets left: end it if it is empty and nobody is about to join."""
        group = self._groups.get(group_id)
        if group is None or group.state is not ClassicState.EMPTY or group.pending:
            return []
        return [group_tombstone(group_id)]

    # Reading

    def get(self, group_id: str) -> ClassicGroup | None:
        """To read from. Whoever changes a group here goes through an event."""
        return self._groups.get(group_id)

    def __iter__(self) -> Iterator[ClassicGroup]:
        return iter(self._groups.values())

    def __contains__(self, group_id: str) -> bool:
        return group_id in self._groups

    def is_empty(self, group_id: str) -> bool:
        """Whether the group exists and has no members."""
        return self.refuse_deletion(group_id) is ErrorCode.NONE

    def check(self) -> None:
        self._deadlines.check()
        assert len(self._unused) <= UNUSED_GROUPS_MAX
        for group_id in self._unused:
            assert not self._groups[group_id].members, f"{group_id} is in use"
        for group in self._groups.values():
            group.check()
            if self._is_loaded:
                self._check_deadlines(group)

    def _check_deadlines(self, group: ClassicGroup) -> None:
        """Every wait ends: nobody can keep a group from its next generation for ever."""
        group_id, deadlines = group.group_id, self._deadlines
        if group.state is ClassicState.PREPARING_REBALANCE:
            assert DeadlineKey(DeadlineKind.JOIN, group_id) in deadlines, "joins are awaited"
        if group.not_synced:
            assert DeadlineKey(DeadlineKind.SYNC, group_id) in deadlines, "syncs are awaited"
        for member_id in [*group.members, *group.pending]:
            waits = member_id in group.joins or member_id in group.syncs
            assert waits or session_key(group_id, member_id) in deadlines, member_id

    def _drop(self, group_id: str) -> None:
        group = self._groups.pop(group_id, None)
        self._unused.pop(group_id, None)
        if group is not None:
            self._rebalance.cancel_all(group)
            group.become(ClassicState.DEAD, wall_ms=group.state_timestamp_ms or 0)


_SETTLED = (ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE)
"""A change of members in one of these begins a rebalance."""
