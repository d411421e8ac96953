"""One call of a member: who it is, what is new about it, and what follows for the group.

It is a ConsumerGroupHeartbeat, or the JoinGroup of a classic member in a KIP-848 group.

The order is Kafka's: the member, its subscription, the group's epoch, the target assignment, and a
step of the member towards it. Everything is decided on the group as the log has it; the records are
what changes it.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import replace
from random import Random
from typing import Final

from tidelog.core.coordinator.record import CoordinatorRecord
from tidelog.core.groups.consumer_group import (
    NO_TIMESTAMP,
    ClusterTopics,
    ConsumerGroup,
    metadata_hash,
    preferred_assignor,
)
from tidelog.core.groups.consumer_member import (
    JOIN_EPOCH,
    LEAVE_STATIC_EPOCH,
    ConsumerMember,
    Reconciliation,
)
from tidelog.core.groups.consumer_records import (
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMetadataValue,
    ConsumerRecordType,
    PartitionKey,
    by_topic,
    consumer_record,
    target_value,
)
from tidelog.core.groups.consumer_refusals import (
    HeartbeatRefused,
    known_static_member,
    refuse_if_full,
    refuse_invalid_regex,
    unknown_member,
)
from tidelog.core.groups.group_limits import EXPRESSIONS_PER_GROUP_MAX, GROUP_BYTES_MAX
from tidelog.core.groups.group_settings import ConsumerGroupSettings
from tidelog.core.groups.member_call import MemberCall
from tidelog.core.groups.partition_assignors import ASSIGNORS, AssignableMember
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicId
from tidelog.core.wire.messages.api_68_consumer_group_heartbeat import (
    ConsumerGroupHeartbeatAssignment,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatTopicPartitions,
)
from tidelog.core.wire.schema import Message

REGEX_REFRESH_MIN_MS: Final = 10_000
"""No group looks its expressions up more often. No setting in Kafka either."""
_MEMBER_ID_BYTES: Final = 16


class ConsumerHeartbeat:
    """One decision. `member` is the caller afterwards, `records` what leads there."""

    def __init__(
        self,
        group: ConsumerGroup,
        call: MemberCall,
        *,
        settings: ConsumerGroupSettings,
        topics: ClusterTopics,
        wall_ms: int,
        random: Random,
        is_last_of_its_kind: bool = False,
    ) -> None:
        """`is_last_of_its_kind`: with this call the group ends, and a classic one takes over."""
        self.records: list[CoordinatorRecord] = []
        self.needs_resolution = False
        """The group's expressions have to be looked up, if that is not under way."""
        self._group = group
        self._call = call
        self._ends = is_last_of_its_kind
        self.is_stale = False
        """The group ends with an assignment that does not know its last change."""
        self._settings = settings
        self._topics = topics
        self._wall_ms = wall_ms
        self._members = dict(group.members)
        self._replaced: ConsumerMember | None = None
        self.member = self._decide(random)

    @property
    def patterns(self) -> list[str]:
        """All expressions of the group after this heartbeat."""
        return sorted({it.subscribed_regex for it in self._members.values() if it.subscribed_regex})

    # Who

    def _decide(self, random: Random) -> ConsumerMember:
        member_id = self._call.member_id
        refuse_if_full(self._group, member_id, self._settings)
        if not member_id:
            member_id = new_member_id(random)
        before = self._find(member_id)
        self._before = before
        member = self._updated(before)
        self._refuse_cost(before, member)
        self._members[member_id] = member
        if member != before:
            self._write(ConsumerRecordType.MEMBER_METADATA, member_id, member.metadata_value())
        names_changed = member.subscribed_topics != before.subscribed_topics
        regex_changed, regex_is_known = self._compare_regex(before, member)
        group_epoch = self._advance_group(must_bump=names_changed or regex_is_known)
        if self._ends:
            self.is_stale = self._group.assignment_epoch < group_epoch
            if self.is_stale:
                return member
            target_epoch, target = group_epoch, self._last_target(member_id)
        else:
            target_epoch, target = self._advance_target(group_epoch, member)
        return self._reconcile(
            member, target_epoch, target, subscription_changed=names_changed or regex_changed
        )

    def _refuse_cost(self, before: ConsumerMember, member: ConsumerMember) -> None:
        """One that says no more than before may stay, whatever the others cost."""
        is_known = before.member_id in self._group.members or self._replaced is not None
        growth = member.cost - (before.cost if is_known else 0)
        if growth > 0 and self._group.cost + growth > GROUP_BYTES_MAX:
            raise HeartbeatRefused(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The members of the group cost more than {GROUP_BYTES_MAX} bytes.",
            )

    def _find(self, member_id: str) -> ConsumerMember:
        """The caller as the group knows it, or a new member."""
        call, instance_id = self._call, self._call.instance_id
        if instance_id is None:
            member = self._group.members.get(member_id)
            if member is None and not call.may_be_new:
                raise unknown_member(self._group.group_id, member_id)
            member = member or ConsumerMember(member_id=member_id)
            self._refuse_epoch(member)
            return member
        member = self._group.static_member(instance_id)
        if not call.may_be_new:
            member = known_static_member(member, member_id, instance_id)
            self._refuse_epoch(member)
            return member
        if member is None:
            return self._group.members.get(member_id) or ConsumerMember(member_id=member_id)
        has_left = member.member_epoch == LEAVE_STATIC_EPOCH
        if call.classic is None and member.classic is None and not has_left:
            raise HeartbeatRefused(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {member_id} with instance id {instance_id} cannot join the group "
                f"because the instance id is owned by {member.member_id} member.",
            )
        return self._take_over(member, member_id)

    def _take_over(self, old: ConsumerMember, member_id: str) -> ConsumerMember:
        """The static member is back, under another id or protocol: what it had is its own."""
        self._replaced = old
        del self._members[old.member_id]
        member = replace(old, member_id=member_id, member_epoch=0, previous_epoch=0)
        types, target = ConsumerRecordType, self._group.target.get(old.member_id, frozenset())
        self.records += removal(self._group.group_id, old.member_id)
        self._write(types.MEMBER_METADATA, member_id, member.metadata_value())
        self._write(types.TARGET_ASSIGNMENT_MEMBER, member_id, target_value(target))
        self._write(types.CURRENT_MEMBER_ASSIGNMENT, member_id, member.current_value())
        return member

    def _refuse_epoch(self, member: ConsumerMember) -> None:
        """One that is behind by the last step may have missed our answer to it."""
        member_epoch, owned = self._call.member_epoch, self._call.owned
        if member_epoch is None or member_epoch in (JOIN_EPOCH, member.member_epoch):
            return
        is_late = member.previous_epoch == member_epoch and member_epoch < member.member_epoch
        if is_late and owned is not None and owned <= member.assigned.keys():
            return
        relation = "greater" if member_epoch > member.member_epoch else "smaller"
        raise HeartbeatRefused(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The consumer group member has a {relation} member epoch ({member_epoch}) than the "
            f"one known by the group coordinator ({member.member_epoch}). The member must "
            "abandon all its partitions and rejoin.",
        )

    def _updated(self, member: ConsumerMember) -> ConsumerMember:
        call = self._call
        timeout_ms = call.rebalance_timeout_ms
        return replace(
            member,
            instance_id=_newest(call.instance_id, member.instance_id),
            rack_id=_newest(call.rack_id, member.rack_id),
            rebalance_timeout_ms=(
                member.rebalance_timeout_ms if timeout_ms is None else timeout_ms
            ),
            server_assignor=_newest(call.server_assignor, member.server_assignor),
            subscribed_topics=member.subscribed_topics if call.topics is None else call.topics,
            subscribed_regex=_newest(call.regex, member.subscribed_regex),
            client_id=call.caller.client_id,
            client_host=call.caller.client_host,
            classic=call.classic,
        )

    # What it reads

    def _compare_regex(self, before: ConsumerMember, after: ConsumerMember) -> tuple[bool, bool]:
        """Whether the expression is another one, and whether its topics are known already."""
        old, new = before.subscribed_regex, after.subscribed_regex
        group, is_known = self._group, False
        must_resolve = False
        if old != new:
            if old and group.regex_users(old) == 1:
                self._write(ConsumerRecordType.REGULAR_EXPRESSION, old, None)
            if new and not group.regex_users(new):
                refuse_invalid_regex(new)
                if len(self.patterns) > EXPRESSIONS_PER_GROUP_MAX:
                    raise HeartbeatRefused(
                        ErrorCode.INVALID_REQUEST,
                        f"A group has {EXPRESSIONS_PER_GROUP_MAX} regular expressions at most.",
                    )
                must_resolve = True
            else:
                is_known = new in group.regexes if new else bool(old)
        patterns = self.patterns
        last_ms = group.last_resolved_ms()
        if patterns and (last_ms is None or self._wall_ms > last_ms + REGEX_REFRESH_MIN_MS):
            self.needs_resolution = (
                must_resolve
                or len(patterns) != len(group.regexes)
                or group.resolved_version != self._topics.created_version
                or last_ms is None
                or self._wall_ms > last_ms + self._settings.regex_refresh_interval_ms
            )
        return old != new, is_known

    def _subscribed(self) -> set[str]:
        return {name for it in self._members.values() for name in self._group.subscriptions(it)}

    # What the group should do

    def _advance_group(self, *, must_bump: bool) -> int:
        """The epoch of the group: another one if its members or its topics have changed."""
        group, version = self._group, self._topics.version
        is_compared = group.hashed_version == version and group.group_epoch >= group.hashed_epoch
        if is_compared and not must_bump:
            return group.group_epoch
        hashed = metadata_hash(self._subscribed(), self._topics)
        group_epoch = group.group_epoch
        if must_bump or hashed != group.metadata_hash:
            group_epoch += 1
            value = ConsumerGroupMetadataValue(group_epoch=group_epoch, metadata_hash=hashed)
            self._write(ConsumerRecordType.GROUP_METADATA, "", value)
        group.hashed_version, group.hashed_epoch = version, group_epoch
        if group.has_partition_metadata:
            self._write(ConsumerRecordType.PARTITION_METADATA, "", None)
        return group_epoch

    def _advance_target(
        self, group_epoch: int, member: ConsumerMember
    ) -> tuple[int, AbstractSet[PartitionKey]]:
        """Epoch and share of the caller in the target assignment, computed anew if it is due."""
        group = self._group
        due_ms = group.assignment_timestamp_ms + self._settings.assignment_interval_ms
        is_due = group.assignment_timestamp_ms == NO_TIMESTAMP or self._wall_ms >= due_ms
        if not self._settings.assignment_interval_ms:
            is_due = True  # also if the clock was set back
        if group.assignment_epoch >= group_epoch or not is_due:
            return group.assignment_epoch, self._last_target(member.member_id)
        ids = {name: self._topics.topic_id(name) for name in self._subscribed()}
        counts = {
            topic_id: self._topics.partitions_count(name)
            for name, topic_id in ids.items()
            if topic_id is not None
        }
        assign = ASSIGNORS[preferred_assignor(self._members)]
        target = assign(
            {
                member_id: AssignableMember(
                    instance_id=it.instance_id,
                    topics=self._subscribed_ids(it),
                    target=self._last_target(member_id),
                )
                for member_id, it in self._members.items()
            },
            counts,
        )
        for member_id in self._members:
            if target[member_id] != group.target.get(member_id):
                value = target_value(target[member_id])
                self._write(ConsumerRecordType.TARGET_ASSIGNMENT_MEMBER, member_id, value)
        metadata = ConsumerGroupTargetAssignmentMetadataValue(
            assignment_epoch=group_epoch, assignment_timestamp=self._wall_ms
        )
        self._write(ConsumerRecordType.TARGET_ASSIGNMENT_METADATA, "", metadata)
        return group_epoch, target[member.member_id]

    def _last_target(self, member_id: str) -> AbstractSet[PartitionKey]:
        if self._replaced is not None and member_id not in self._group.members:
            member_id = self._replaced.member_id
        return self._group.target.get(member_id, frozenset())

    def _subscribed_ids(self, member: ConsumerMember) -> frozenset[TopicId]:
        ids = (self._topics.topic_id(name) for name in self._group.subscriptions(member))
        return frozenset(topic_id for topic_id in ids if topic_id is not None)

    # What the caller may have

    def _reconcile(
        self,
        member: ConsumerMember,
        target_epoch: int,
        target: AbstractSet[PartitionKey],
        *,
        subscription_changed: bool,
    ) -> ConsumerMember:
        if not subscription_changed and member.is_reconciled_to(target_epoch):
            return member
        step = Reconciliation(
            target_epoch=target_epoch,
            target=target,
            subscribed_ids=self._subscribed_ids(member),
            owned=self._call.owned,
            is_owned=self._group.is_owned,
            subscription_changed=subscription_changed,
        )
        after = step.next(member)
        if after is None:
            raise HeartbeatRefused(
                ErrorCode.FENCED_MEMBER_EPOCH,
                "The consumer group member is in a unknown state. The member must abandon all its "
                "partitions and rejoin.",
            )
        if after != member:
            self._write(
                ConsumerRecordType.CURRENT_MEMBER_ASSIGNMENT, after.member_id, after.current_value()
            )
        return after

    def answer(self) -> ConsumerGroupHeartbeatResponse:
        """With the assignment if it has changed, or if the member shows that it does not know."""
        call = self._call
        is_full = (
            call.rebalance_timeout_ms is not None
            and (call.topics is not None or call.regex is not None)
            and call.owned is not None
        )
        joins = call.member_epoch == JOIN_EPOCH
        assignment = None
        if joins or is_full or self.member.assigned != self._before.assigned:
            assignment = ConsumerGroupHeartbeatAssignment(
                topic_partitions=[
                    ConsumerGroupHeartbeatTopicPartitions(topic_id=topic_id, partitions=indexes)
                    for topic_id, indexes in by_topic(self.member.assigned).items()
                ]
            )
        return ConsumerGroupHeartbeatResponse(
            member_id=self.member.member_id,
            member_epoch=self.member.member_epoch,
            heartbeat_interval_ms=self._settings.heartbeat_interval_ms,
            assignment=assignment,
        )

    def _write(self, type_: ConsumerRecordType, part: str, value: Message | None) -> None:
        self.records.append(consumer_record(type_, self._group.group_id, part, value))


def new_member_id(random: Random) -> str:
    return random.randbytes(_MEMBER_ID_BYTES).hex()


def removal(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """The end of a member, in Kafka's order."""
    types = ConsumerRecordType
    order = (types.CURRENT_MEMBER_ASSIGNMENT, types.TARGET_ASSIGNMENT_MEMBER, types.MEMBER_METADATA)
    return [consumer_record(type_, group_id, member_id) for type_ in order]


def _newest(given: str | None, known: str | None) -> str | None:
    return known if given is None else given
