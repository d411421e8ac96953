"""The KIP-848 groups of one coordinator partition: events in, outcomes out.

What is in the log is changed by `apply` only, at replay and at append alike. Not in the log are the
deadlines of members and how far the group has looked at the cluster's topics; a successor begins
these anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random

from tidelog.core.coordinator.outcome import Outcome, ReplyTo
from tidelog.core.coordinator.record import CoordinatorRecord
from tidelog.core.groups.consumer_deadlines import ConsumerDeadlines
from tidelog.core.groups.consumer_group import (
    ClusterTopics,
    ConsumerGroup,
    ConsumerGroupState,
    metadata_hash,
)
from tidelog.core.groups.consumer_heartbeat import ConsumerHeartbeat, removal
from tidelog.core.groups.consumer_member import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    ConsumerMember,
    MemberState,
)
from tidelog.core.groups.consumer_records import (
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionValue,
    ConsumerRecordType,
    consumer_record,
    read_consumer_key,
    read_consumer_value,
)
from tidelog.core.groups.consumer_refusals import (
    HeartbeatRefused,
    known_static_member,
    unknown_member,
)
from tidelog.core.groups.group_deadlines import DeadlineKind
from tidelog.core.groups.group_settings import ConsumerGroupSettings
from tidelog.core.groups.member_call import HeartbeatCaller, MemberCall
from tidelog.core.groups.mixed_groups import MixedGroups
from tidelog.core.groups.regex_resolution import RegexJob, RegexResolution
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_13_leave_group import (
    LeaveGroupRequest,
    LeaveGroupRequestMember,
    LeaveGroupResponse,
    LeaveGroupResponseMember,
)
from tidelog.core.wire.messages.api_68_consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


class ConsumerGroups:
    """All KIP-848 groups of a partition, by id."""

    def __init__(
        self,
        settings: Callable[[str], ConsumerGroupSettings],
        *,
        classic_size_max: int,
        topics: ClusterTopics,
        random: Random,
        wall_ms: Callable[[int], int],
    ) -> None:
        self._groups: dict[str, ConsumerGroup] = {}
        self._settings = settings
        self._topics = topics
        self._random = random
        self._wall_ms = wall_ms
        self._deadlines = ConsumerDeadlines(settings)
        self._resolution = RegexResolution()
        self._is_loaded = False
        self.mixed = MixedGroups(
            settings,
            classic_size_max=classic_size_max,
            topics=topics,
            deadlines=self._deadlines,
            random=random,
            wall_ms=wall_ms,
        )

    # The log

    def apply(self, record: CoordinatorRecord) -> str:
        """Take a record over; the id of its group. A tombstone may be of what is gone already."""
        type_, group_id, part = read_consumer_key(record.key)
        if record.value is None:
            if type_ is ConsumerRecordType.GROUP_METADATA:
                self._groups.pop(group_id, None)
                self._resolution.forget(group_id)
            elif group_id in self._groups:
                self._groups[group_id].apply(type_, part, None)
            return group_id
        group = self._groups.get(group_id)
        if group is None:
            group = self._groups[group_id] = ConsumerGroup(group_id)
        if type_ is ConsumerRecordType.PARTITION_METADATA:
            group.has_partition_metadata = True
        else:
            group.apply(type_, part, read_consumer_value(type_, record.value))
        return group_id

    def on_loaded(self, now_ms: int) -> None:
        """Sessions begin anew, and so does the time that members have to give back partitions."""
        self._is_loaded = True
        for group in self._groups.values():
            for member in group.members.values():
                self._deadlines.renew_session(group.group_id, member, now_ms)
                self._deadlines.await_revocation(group.group_id, member, now_ms)

    # Time

    def next_deadline_ms(self) -> int | None:
        due = (self._deadlines.next_deadline_ms(), self._resolution.next_deadline_ms())
        return min((each for each in due if each is not None), default=None)

    def on_timer(self, now_ms: int) -> Outcome:
        """One thing that is due; more may be."""
        key = self._deadlines.pop_due(now_ms)
        if key is None:
            job = self._resolution.on_timer(now_ms)
            return Outcome() if job is None else self._resolved(job)
        group = self._groups.get(key.group_id)
        member = None if group is None else group.members.get(key.member_id)
        if group is None or member is None:
            return Outcome()
        has_revoked = member.state is not MemberState.UNREVOKED_PARTITIONS
        if key.kind is DeadlineKind.REVOCATION and has_revoked:
            return Outcome()
        return self._remove(group, [member], now_ms)

    # Members

    def heartbeat(
        self,
        request: ConsumerGroupHeartbeatRequest,
        caller: HeartbeatCaller,
        reply_to: ReplyTo,
        now_ms: int,
        *,
        upgrade: Sequence[CoordinatorRecord] | None = None,
    ) -> Outcome:
        """ConsumerGroupHeartbeat. `upgrade`: the records of this group that was a classic one."""
        try:
            if request.member_epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH):
                return self._leave(request, reply_to, now_ms)
            group = self._groups.get(request.group_id)
            if upgrade is not None:
                group = ConsumerGroup.from_records(request.group_id, upgrade)
            outcome = self._stay(request, caller, reply_to, now_ms, group)
        except HeartbeatRefused as why:
            return refused_heartbeat(why, reply_to)
        for member in group.classic_members() if group is not None and upgrade else ():
            self._deadlines.renew_session(request.group_id, member, now_ms)
        return outcome

    def _stay(
        self,
        request: ConsumerGroupHeartbeatRequest,
        caller: HeartbeatCaller,
        reply_to: ReplyTo,
        now_ms: int,
        group: ConsumerGroup | None,
    ) -> Outcome:
        group_id = request.group_id
        if group is None and request.member_epoch != JOIN_EPOCH:
            raise HeartbeatRefused(
                ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found."
            )
        wall_ms = self._wall_ms(now_ms)
        beat = ConsumerHeartbeat(
            group or ConsumerGroup(group_id),
            MemberCall.from_heartbeat(request, caller),
            settings=self._settings(group_id),
            topics=self._topics,
            wall_ms=wall_ms,
            random=self._random,
        )
        member = beat.member
        self._deadlines.renew_session(group_id, member, now_ms)
        self._deadlines.note_new_protocol(group_id, member.member_id)
        before = None if group is None else group.members.get(member.member_id)
        if before is None or before.revoking != member.revoking:
            self._deadlines.restart_revocation(group_id, member, now_ms)
        self._deadlines.await_revocation(group_id, member, now_ms)
        if beat.needs_resolution and group_id not in self._resolution:
            job = RegexJob(
                group_id=group_id,
                version=self._topics.created_version,
                started_wall_ms=wall_ms,
                patterns=beat.patterns,
                names=sorted(self._topics.names()),
            )
            self._resolution.begin(job, now_ms)
        return Outcome(beat.records, [(reply_to, beat.answer())])

    def _leave(
        self, request: ConsumerGroupHeartbeatRequest, reply_to: ReplyTo, now_ms: int
    ) -> Outcome:
        group = self._groups.get(request.group_id)
        if group is None:
            raise HeartbeatRefused(
                ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} not found."
            )
        member = self._leaver(group, request.member_id, request.instance_id)
        answer = ConsumerGroupHeartbeatResponse(
            member_id=request.member_id, member_epoch=request.member_epoch
        )
        if request.member_epoch != LEAVE_STATIC_EPOCH:
            return self._remove(group, [member], now_ms, [(reply_to, answer)])
        away = consumer_record(
            ConsumerRecordType.CURRENT_MEMBER_ASSIGNMENT,
            group.group_id,
            member.member_id,
            member.gone_for_a_while().current_value(),
        )
        return Outcome([away], [(reply_to, answer)])

    def _leaver(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None
    ) -> ConsumerMember:
        if instance_id is not None:
            return known_static_member(group.static_member(instance_id), member_id, instance_id)
        if member_id not in group.members:
            raise unknown_member(group.group_id, member_id)
        return group.members[member_id]

    def leave_by_name(self, request: LeaveGroupRequest, reply_to: ReplyTo, now_ms: int) -> Outcome:
        """LeaveGroup of classic members; or an administrator removes any, static ones by their
        instance ids."""
        group = self._groups[request.group_id]
        leaving: dict[str, ConsumerMember] = {}
        answers = []
        for named in request.members:
            error = ErrorCode.NONE
            try:
                member = self._named_member(group, named)
                leaving[member.member_id] = member
            except HeartbeatRefused as why:
                error = why.error
            answers.append(
                LeaveGroupResponseMember(
                    member_id=named.member_id,
                    group_instance_id=named.group_instance_id,
                    error_code=error,
                )
            )
        answer = LeaveGroupResponse(members=answers)
        if not leaving:
            return Outcome(replies=[(reply_to, answer)])
        return self._remove(group, leaving.values(), now_ms, [(reply_to, answer)])

    def _named_member(self, group: ConsumerGroup, named: LeaveGroupRequestMember) -> ConsumerMember:
        instance_id = named.group_instance_id
        if instance_id is not None and not named.member_id:
            member = group.static_member(instance_id)
            member_id = "" if member is None else member.member_id
            return known_static_member(member, member_id, instance_id)
        return self._leaver(group, named.member_id, instance_id)

    def _remove(
        self,
        group: ConsumerGroup,
        members: Iterable[ConsumerMember],
        now_ms: int,
        replies: Sequence[tuple[ReplyTo, object]] = (),
    ) -> Outcome:
        """Members leave or are fenced. If only classic ones are left, so is the group."""
        group_id = group.group_id
        leaving = [member.member_id for member in members]
        left = {it.member_id: it for it in group.members.values() if it.member_id not in leaving}
        for member_id in leaving:
            self._deadlines.cancel(group_id, member_id)
        downgrade = self.mixed.downgrade(group, left, now_ms)
        if downgrade is None:
            return Outcome(self._removal(group, leaving, left), list(replies))

        def stay() -> Outcome:
            self.mixed.give_up(group_id)
            return Outcome(self._removal(group, leaving, left), list(replies))

        downgrade.replies += replies
        downgrade.if_too_large = stay
        return downgrade

    def _removal(
        self, group: ConsumerGroup, leaving: Iterable[str], left: dict[str, ConsumerMember]
    ) -> list[CoordinatorRecord]:
        """The others get the partitions of those who leave in another epoch."""
        group_id = group.group_id
        records = [record for member_id in leaving for record in removal(group_id, member_id)]
        used = {member.subscribed_regex for member in left.values()}
        records += [
            consumer_record(ConsumerRecordType.REGULAR_EXPRESSION, group_id, regex)
            for regex in group.regexes
            if regex not in used
        ]
        names = {name for member in left.values() for name in group.subscriptions(member)}
        records.append(self._epoch_record(group, metadata_hash(names, self._topics)))
        return records

    def _epoch_record(self, group: ConsumerGroup, hashed: int) -> CoordinatorRecord:
        value = ConsumerGroupMetadataValue(group_epoch=group.group_epoch + 1, metadata_hash=hashed)
        return consumer_record(ConsumerRecordType.GROUP_METADATA, group.group_id, value=value)

    def _resolved(self, job: RegexJob) -> Outcome:
        """Expressions were looked up. The epoch moves if they match other topics than before."""
        group = self._groups.get(job.group_id)
        if group is None:
            return Outcome()
        records = []
        resolved = {regex: each.topics for regex, each in group.regexes.items()}
        has_changed = False
        for regex, topics in job.matched.items():
            if not group.regex_users(regex):
                continue
            has_changed |= resolved.get(regex, frozenset()) != topics
            resolved[regex] = frozenset(topics)
            value = ConsumerGroupRegularExpressionValue(
                topics=sorted(topics), version=job.version, timestamp=job.started_wall_ms
            )
            records.append(
                consumer_record(ConsumerRecordType.REGULAR_EXPRESSION, job.group_id, regex, value)
            )
        group.resolved_version = job.version
        names: set[str] = set()
        for member in group.members.values():
            names |= member.subscribed_topics | resolved.get(
                member.subscribed_regex or "", frozenset()
            )
        hashed = metadata_hash(names, self._topics)
        if has_changed or hashed != group.metadata_hash:
            records.append(self._epoch_record(group, hashed))
        return Outcome(records)

    # Deletion

    def refuse_deletion(self, group_id: str) -> ErrorCode:
        is_empty = self._groups[group_id].state is ConsumerGroupState.EMPTY
        return ErrorCode.NONE if is_empty else ErrorCode.NON_EMPTY_GROUP

    def delete(self, group_id: str) -> list[CoordinatorRecord]:
        """The records that end an empty group; its offsets are somebody else's."""
        assert self.refuse_deletion(group_id) is ErrorCode.NONE, "ask before you delete"
        return self._groups[group_id].tombstones()

    # Reading

    def get(self, group_id: str) -> ConsumerGroup | None:
        """To read from: only records change a group."""
        return self._groups.get(group_id)

    def __iter__(self) -> Iterator[ConsumerGroup]:
        return iter(self._groups.values())

    def __contains__(self, group_id: str) -> bool:
        return group_id in self._groups

    def check(self) -> None:
        self._deadlines.check()
        for group in self._groups.values():
            group.check()
            for member in group.members.values() if self._is_loaded else ():
                self._deadlines.check_member(group.group_id, member)


def refused_heartbeat(why: HeartbeatRefused, reply_to: ReplyTo) -> Outcome:
    answer = ConsumerGroupHeartbeatResponse(error_code=why.error, error_message=why.message)
    return Outcome(replies=[(reply_to, answer)])
