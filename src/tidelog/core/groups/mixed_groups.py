"""Classic members of a KIP-848 group: JoinGroup, SyncGroup and Heartbeat, answered by its epochs.

To such a member the group is one that others lead. Its generation is its member epoch. It is told
to join again when there is something to give back or to get; a join is what a heartbeat is to the
others, and a sync brings the assignment.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from tidelog.core.coordinator.outcome import Outcome, ReplyTo
from tidelog.core.groups.classic_group import ClassicGroup
from tidelog.core.groups.classic_join import NEW_MEMBER, Joiner
from tidelog.core.groups.classic_member import ParkedJoin
from tidelog.core.groups.classic_rebalance import GroupEvent
from tidelog.core.groups.consumer_deadlines import ConsumerDeadlines
from tidelog.core.groups.consumer_group import ClusterTopics, ConsumerGroup
from tidelog.core.groups.consumer_heartbeat import ConsumerHeartbeat, new_member_id
from tidelog.core.groups.consumer_member import ClassicSide, ConsumerMember, MemberState
from tidelog.core.groups.consumer_protocol import (
    CONSUMER_PROTOCOL_TYPE,
    MalformedProtocol,
    read_protocol_version,
    read_subscription,
)
from tidelog.core.groups.consumer_refusals import (
    HeartbeatRefused,
    known_static_member,
    refuse_if_full,
    unknown_member,
)
from tidelog.core.groups.group_migration import downgraded, embedded_assignment, may_downgrade
from tidelog.core.groups.group_records import group_record
from tidelog.core.groups.group_settings import ConsumerGroupSettings, MigrationPolicy
from tidelog.core.groups.member_call import MemberCall
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_11_join_group import JoinGroupResponse
from tidelog.core.wire.messages.api_12_heartbeat import HeartbeatRequest, HeartbeatResponse
from tidelog.core.wire.messages.api_14_sync_group import SyncGroupRequest, SyncGroupResponse


class Downgrade(NamedTuple):
    """A classic group that takes over from a KIP-848 group as soon as its record is applied."""

    group: ClassicGroup
    must_rebalance: bool
    now_ms: int


class MixedGroups:
    """Decides one call after the other. The groups are its callers', and records change them."""

    def __init__(
        self,
        settings: Callable[[str], ConsumerGroupSettings],
        *,
        classic_size_max: int,
        topics: ClusterTopics,
        deadlines: ConsumerDeadlines,
        random: Random,
        wall_ms: Callable[[int], int],
    ) -> None:
        self._settings = settings
        self._classic_size_max = classic_size_max
        self._topics = topics
        self._deadlines = deadlines
        self._random = random
        self._wall_ms = wall_ms
        self._downgrades: dict[str, Downgrade] = {}
        """Decided, and in the batch that is about to be applied."""

    # Joining

    def join(self, group: ConsumerGroup, joiner: Joiner, reply_to: ReplyTo, now_ms: int) -> Outcome:
        """JoinGroup to a KIP-848 group that has members."""
        join = ParkedJoin(reply_to, joiner.version)
        event = GroupEvent(now_ms)
        try:
            self._refuse_join(group, joiner)
            if joiner.needs_known_id:
                member_id = new_member_id(self._random)
                event.refuse_join(join, ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)
                return event.outcome
            self._accept(group, joiner, join, event)
        except HeartbeatRefused as why:
            event = GroupEvent(now_ms)
            event.refuse_join(join, why.error, member_id=NEW_MEMBER)
        return event.outcome

    def _refuse_join(self, group: ConsumerGroup, joiner: Joiner) -> None:
        settings = self._settings(group.group_id)
        if settings.migration_policy is MigrationPolicy.DISABLED:
            raise HeartbeatRefused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, None)
        refuse_if_full(group, joiner.member_id, settings)
        is_of_consumers = joiner.protocol_type == CONSUMER_PROTOCOL_TYPE
        if not is_of_consumers or not group.supports_classic(it.name for it in joiner.protocols):
            raise HeartbeatRefused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, None)

    def _accept(
        self, group: ConsumerGroup, joiner: Joiner, join: ParkedJoin, event: GroupEvent
    ) -> None:
        replaced = self._last_of_its_kind(group, joiner.group_instance_id)
        beat = ConsumerHeartbeat(
            group,
            self._call(joiner),
            settings=self._settings(group.group_id),
            topics=self._topics,
            wall_ms=self._wall_ms(event.now_ms),
            random=self._random,
            is_last_of_its_kind=replaced is not None,
        )
        event.outcome.records += beat.records
        if replaced is not None:
            self._end(group, replaced, beat, event)
            event.outcome.if_too_large = lambda: self._refuse_too_large(group, join, event.now_ms)
        else:
            self._deadlines.renew_session(group.group_id, beat.member, event.now_ms)
            self._deadlines.await_revocation(group.group_id, beat.member, event.now_ms)
            self._deadlines.await_sync(group.group_id, beat.member, event.now_ms)
        answer = JoinGroupResponse(
            generation_id=beat.member.member_epoch,
            protocol_type=CONSUMER_PROTOCOL_TYPE,
            protocol_name=_side(beat.member).protocol.name,
            member_id=beat.member.member_id,
        )
        event.answer_join(join, answer)

    def _call(self, joiner: Joiner) -> MemberCall:
        try:
            subscription = read_subscription(joiner.protocols[0].metadata)
        except MalformedProtocol as why:
            raise HeartbeatRefused(ErrorCode.UNKNOWN_SERVER_ERROR, None) from why
        return MemberCall.from_join(joiner, subscription, self._topics)

    # The last member of the new kind is replaced

    def _last_of_its_kind(
        self, group: ConsumerGroup, instance_id: str | None
    ) -> ConsumerMember | None:
        """The static member that this one replaces, if only classic ones are left then."""
        replaced = None if instance_id is None else group.static_member(instance_id)
        if replaced is None or replaced.classic is not None:
            return None
        others = {it.member_id: it for it in group.members.values() if it is not replaced}
        settings = self._settings(group.group_id)
        only_classic = all(it.classic is not None for it in others.values())
        fits = len(group.members) <= self._classic_size_max
        allowed = settings.migration_policy.may_downgrade
        return replaced if only_classic and fits and allowed else None

    def _end(
        self,
        group: ConsumerGroup,
        replaced: ConsumerMember,
        beat: ConsumerHeartbeat,
        event: GroupEvent,
    ) -> None:
        """The group becomes a classic one, with the newcomer in the place of the other."""
        old_id, new_id = replaced.member_id, beat.member.member_id
        others = [it for it in group.members.values() if it is not replaced]
        targets = {**group.target, new_id: group.target.get(old_id, frozenset())}
        try:
            classic = downgraded(
                group,
                [*others, beat.member],
                targets,
                self._topics,
                wall_ms=self._wall_ms(event.now_ms),
            )
        except MalformedProtocol as why:
            raise HeartbeatRefused(ErrorCode.GROUP_ID_NOT_FOUND, None) from why
        ids = [new_id if member_id == old_id else member_id for member_id in group.members]
        event.outcome.records += group.tombstones(ids)
        self._take_over(classic, event.outcome, must_rebalance=beat.is_stale, now_ms=event.now_ms)

    def _refuse_too_large(self, group: ConsumerGroup, join: ParkedJoin, now_ms: int) -> Outcome:
        self.give_up(group.group_id)
        event = GroupEvent(now_ms)
        event.refuse_join(join, ErrorCode.UNKNOWN_SERVER_ERROR, member_id=NEW_MEMBER)
        return event.outcome

    # Being in the group

    def heartbeat(
        self, group: ConsumerGroup, request: HeartbeatRequest, reply_to: ReplyTo, now_ms: int
    ) -> Outcome:
        """REBALANCE_IN_PROGRESS asks the member to join again."""
        error = ErrorCode.NONE
        try:
            member = self._member(group, request)
            self._deadlines.renew_session(group.group_id, member, now_ms)
            if _should_join(group, member):
                self._deadlines.await_join(group.group_id, member, now_ms)
                error = ErrorCode.REBALANCE_IN_PROGRESS
        except HeartbeatRefused as why:
            error = why.error
        return Outcome(replies=[(reply_to, HeartbeatResponse(error_code=error))])

    def sync(
        self, group: ConsumerGroup, request: SyncGroupRequest, reply_to: ReplyTo, now_ms: int
    ) -> Outcome:
        """The assignment is there since the join, unless there is a newer one by now."""
        try:
            answer = self._synced(group, request, now_ms)
        except HeartbeatRefused as why:
            answer = SyncGroupResponse(error_code=why.error)
        return Outcome(replies=[(reply_to, answer)])

    def _synced(
        self, group: ConsumerGroup, request: SyncGroupRequest, now_ms: int
    ) -> SyncGroupResponse:
        member = self._member(group, request)
        protocol = _side(member).protocol
        type_differs = request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE)
        if type_differs or request.protocol_name not in (None, protocol.name):
            raise HeartbeatRefused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, None)
        is_behind = group.assignment_epoch > member.member_epoch
        if is_behind and member.state is not MemberState.UNREVOKED_PARTITIONS:
            self._deadlines.await_join(group.group_id, member, now_ms)
            raise HeartbeatRefused(ErrorCode.REBALANCE_IN_PROGRESS, None)
        self._deadlines.note_synced(group.group_id, member.member_id)
        self._deadlines.renew_session(group.group_id, member, now_ms)
        version = read_protocol_version(protocol.metadata)
        return SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=embedded_assignment(member.assigned, self._topics, version=version),
        )

    def _member(
        self, group: ConsumerGroup, request: HeartbeatRequest | SyncGroupRequest
    ) -> ConsumerMember:
        """The caller, if it is a classic member in its present generation."""
        member_id, instance_id = request.member_id, request.group_instance_id
        if instance_id is not None:
            known = group.static_member(instance_id)
            member = known_static_member(known, member_id, instance_id)
        elif member_id in group.members:
            member = group.members[member_id]
        else:
            raise unknown_member(group.group_id, member_id)
        if member.classic is None:
            raise unknown_member(group.group_id, member_id)
        if request.generation_id != member.member_epoch:
            raise HeartbeatRefused(ErrorCode.ILLEGAL_GENERATION, None)
        return member

    # When the last member of the new kind leaves

    def downgrade(
        self, group: ConsumerGroup, left: dict[str, ConsumerMember], now_ms: int
    ) -> Outcome | None:
        """The records that make a classic group of those who are left; None: it stays."""
        settings = self._settings(group.group_id)
        if not may_downgrade(left, settings, size_max=self._classic_size_max):
            return None
        wall_ms = self._wall_ms(now_ms)
        try:
            classic = downgraded(group, left.values(), group.target, self._topics, wall_ms=wall_ms)
        except MalformedProtocol:
            return None
        outcome = Outcome(group.tombstones())
        self._take_over(classic, outcome, must_rebalance=True, now_ms=now_ms)
        return outcome

    def _take_over(
        self, classic: ClassicGroup, outcome: Outcome, *, must_rebalance: bool, now_ms: int
    ) -> None:
        """With the record of the classic group this group ends."""
        outcome.records.append(group_record(classic.group_id, classic.as_record()))
        self._downgrades[classic.group_id] = Downgrade(classic, must_rebalance, now_ms)

    def give_up(self, group_id: str) -> None:
        """The records are too many for a batch: the group stays what it is."""
        del self._downgrades[group_id]

    def finish(self, group_id: str) -> Downgrade | None:
        """The record of a classic group is applied: the group that waits for it, if there is one.

        What was awaited of its members is awaited by classic groups from now on.
        """
        downgrade = self._downgrades.pop(group_id, None)
        if downgrade is not None:
            for member_id in downgrade.group.members:
                self._deadlines.cancel(group_id, member_id)
        return downgrade


def _side(member: ConsumerMember) -> ClassicSide:
    assert member.classic is not None, "only classic members get here"
    return member.classic


def _should_join(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """It is behind, has to give back, or can get what it waits for."""
    if member.state is MemberState.UNRELEASED_PARTITIONS and not group.waits_for_others(member):
        return True
    is_behind = member.member_epoch < group.assignment_epoch
    return is_behind or member.state is MemberState.UNREVOKED_PARTITIONS
