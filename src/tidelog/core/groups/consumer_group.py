"""A KIP-848 group as its records say it. Only records change it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from hashlib import blake2b
from typing import Final, Protocol

from tidelog.core.coordinator.record import CoordinatorRecord
from tidelog.core.groups.consumer_member import ConsumerMember, MemberState
from tidelog.core.groups.consumer_records import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataValue,
    ConsumerRecordType,
    PartitionKey,
    consumer_record,
    read_consumer_key,
    read_consumer_value,
)
from tidelog.core.groups.partition_assignors import DEFAULT_ASSIGNOR
from tidelog.core.model.ids import TopicId
from tidelog.core.wire.schema import Message

FIRST_EPOCH: Final = 1
"""Of a group and of its assignment, before there is a record of them."""
NO_TIMESTAMP: Final = 0


class ClusterTopics(Protocol):
    """What groups need to know of the cluster's topics."""

    @property
    def version(self) -> int:
        """Another number whenever topics came, grew or went."""

    @property
    def created_version(self) -> int:
        """Another number whenever a topic was created."""

    def names(self) -> Iterable[str]:
        """All topics, also internal ones."""

    def topic_id(self, name: str) -> TopicId | None:
        """None: there is no such topic."""

    def partitions_count(self, name: str) -> int:
        """Of a topic that exists."""

    def name(self, topic_id: TopicId) -> str | None:
        """The name that a topic has."""


class ConsumerGroupState(Enum):
    """Kafka's names."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    """Something has changed that the target assignment does not know yet."""
    RECONCILING = "Reconciling"
    """Some members are not where they should be."""
    STABLE = "Stable"
    DEAD = "Dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedRegex:
    """The topics that a regular expression matched, when it was last looked up."""

    topics: frozenset[str]
    version: int
    timestamp_ms: int


class ConsumerGroup:
    """Invariants: see `check`."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.group_epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_timestamp_ms = NO_TIMESTAMP
        self.members: dict[str, ConsumerMember] = {}
        self.static_members: dict[str, str] = {}
        """Member ids by instance ids."""
        self.target: dict[str, frozenset[PartitionKey]] = {}
        self.regexes: dict[str, ResolvedRegex] = {}
        self.has_partition_metadata = False
        """A broker before 4.1 has written a record that is not needed any more."""
        self._owners: dict[PartitionKey, str] = {}
        self.cost = 0
        """Of all members, in bytes."""

        # Not in the log: what a successor looks up anew.
        self.hashed_version: int | None = None
        """The version of the topics that `metadata_hash` was last compared with."""
        self.hashed_epoch = 0
        """The epoch that this comparison led to."""
        self.resolved_version: int | None = None
        """The newest topic that the regular expressions have seen."""

    # Reading

    @property
    def state(self) -> ConsumerGroupState:
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.group_epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        assignment_epoch = self.assignment_epoch
        if all(member.is_reconciled_to(assignment_epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    def is_owned(self, partition: PartitionKey) -> bool:
        """Some member has it, or has not given it back yet."""
        return partition in self._owners

    def static_member(self, instance_id: str) -> ConsumerMember | None:
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def subscriptions(self, member: ConsumerMember) -> frozenset[str]:
        """By name and by regular expression; one that is not looked up yet matches nothing."""
        resolved = self.regexes.get(member.subscribed_regex or "")
        if resolved is None:
            return member.subscribed_topics
        return member.subscribed_topics | resolved.topics

    def is_subscribed_to(self, topic: str) -> bool:
        return any(topic in self.subscriptions(member) for member in self.members.values())

    def regex_users(self, regex: str) -> int:
        return sum(member.subscribed_regex == regex for member in self.members.values())

    def classic_members(self) -> list[ConsumerMember]:
        """Those that speak the classic protocol."""
        return [member for member in self.members.values() if member.classic is not None]

    def supports_classic(self, names: Iterable[str]) -> bool:
        """Whether one of these protocols is supported by all members that are classic."""
        members = self.classic_members()
        supporters = Counter(
            name
            for member in members
            if member.classic is not None
            for name in {protocol.name for protocol in member.classic.protocols}
        )
        return any(supporters[name] == len(members) for name in names)

    def waits_for_others(self, member: ConsumerMember) -> bool:
        """Something that it should get is still another member's."""
        return any(
            partition not in member.assigned and self.is_owned(partition)
            for partition in self.target.get(member.member_id, ())
        )

    def last_resolved_ms(self) -> int | None:
        return min((each.timestamp_ms for each in self.regexes.values()), default=None)

    # The log

    @classmethod
    def from_records(cls, group_id: str, records: Iterable[CoordinatorRecord]) -> ConsumerGroup:
        """The group that these records make."""
        group = cls(group_id)
        for record in records:
            type_, _, part = read_consumer_key(record.key)
            value = None if record.value is None else read_consumer_value(type_, record.value)
            group.apply(type_, part, value)
        return group

    def apply(self, type_: ConsumerRecordType, part: str, value: Message | None) -> None:
        """One record of this group; the tombstone of the group itself is not for it."""
        if isinstance(value, ConsumerGroupMetadataValue):
            self.group_epoch, self.metadata_hash = value.group_epoch, value.metadata_hash
        elif type_ is ConsumerRecordType.PARTITION_METADATA:
            self.has_partition_metadata = value is not None
        elif type_ is ConsumerRecordType.TARGET_ASSIGNMENT_METADATA:
            self._apply_assignment_epoch(value)
        elif type_ is ConsumerRecordType.TARGET_ASSIGNMENT_MEMBER:
            self._apply_target(part, value)
        elif type_ is ConsumerRecordType.REGULAR_EXPRESSION:
            self._apply_regex(part, value)
        else:
            self._apply_member(type_, part, value)

    def _apply_assignment_epoch(self, value: Message | None) -> None:
        if isinstance(value, ConsumerGroupTargetAssignmentMetadataValue):
            self.assignment_epoch = value.assignment_epoch
            self.assignment_timestamp_ms = value.assignment_timestamp
        else:
            self.assignment_epoch, self.assignment_timestamp_ms = FIRST_EPOCH, NO_TIMESTAMP

    def _apply_target(self, member_id: str, value: Message | None) -> None:
        if isinstance(value, ConsumerGroupTargetAssignmentMemberValue):
            self.target[member_id] = frozenset(
                (TopicId(bytes(topic.topic_id)), index)
                for topic in value.topic_partitions
                for index in topic.partitions
            )
        else:
            self.target.pop(member_id, None)

    def _apply_regex(self, regex: str, value: Message | None) -> None:
        if isinstance(value, ConsumerGroupRegularExpressionValue):
            self.regexes[regex] = ResolvedRegex(
                topics=frozenset(value.topics), version=value.version, timestamp_ms=value.timestamp
            )
        else:
            self.regexes.pop(regex, None)

    def _apply_member(
        self, type_: ConsumerRecordType, member_id: str, value: Message | None
    ) -> None:
        before = self.members.get(member_id)
        if isinstance(value, ConsumerGroupMemberMetadataValue):
            self._put(before, (before or ConsumerMember(member_id=member_id)).with_metadata(value))
        elif isinstance(value, ConsumerGroupCurrentMemberAssignmentValue):
            self._put(before, (before or ConsumerMember(member_id=member_id)).with_current(value))
        elif before is None:
            return
        elif type_ is ConsumerRecordType.CURRENT_MEMBER_ASSIGNMENT:
            self._put(before, before.without_partitions())
        else:
            self._release(before)
            del self.members[member_id]
            instance_id = before.instance_id
            if instance_id is not None and self.static_members.get(instance_id) == member_id:
                del self.static_members[instance_id]

    def _put(self, before: ConsumerMember | None, member: ConsumerMember) -> None:
        if before is not None:
            self._release(before)
        self.members[member.member_id] = member
        self.cost += member.cost
        for partition in (*member.assigned, *member.revoking):
            self._owners[partition] = member.member_id
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def _release(self, member: ConsumerMember) -> None:
        self.cost -= member.cost
        for partition in (*member.assigned, *member.revoking):
            if self._owners.get(partition) == member.member_id:
                del self._owners[partition]

    def tombstones(self, member_ids: Iterable[str] | None = None) -> list[CoordinatorRecord]:
        """The end of a group, in an order that a reader may stop in.

        `member_ids` are those that it has by then, if records before these have changed them.
        """
        types, group_id = ConsumerRecordType, self.group_id
        members = list(self.members if member_ids is None else member_ids)
        records = [
            consumer_record(type_, group_id, member_id)
            for type_ in (types.CURRENT_MEMBER_ASSIGNMENT, types.TARGET_ASSIGNMENT_MEMBER)
            for member_id in members
        ]
        records.append(consumer_record(types.TARGET_ASSIGNMENT_METADATA, group_id))
        records += [
            consumer_record(types.MEMBER_METADATA, group_id, member_id) for member_id in members
        ]
        records += [consumer_record(types.REGULAR_EXPRESSION, group_id, it) for it in self.regexes]
        records.append(consumer_record(types.PARTITION_METADATA, group_id))
        records.append(consumer_record(types.GROUP_METADATA, group_id))
        return records

    def check(self) -> None:
        """Assert what must hold between any two events."""
        owners: dict[PartitionKey, str] = {}
        for member_id, member in self.members.items():
            assert member.member_id == member_id
            assert member.assigned.keys().isdisjoint(member.revoking), "to have and to give back"
            is_unrevoked = member.state is MemberState.UNREVOKED_PARTITIONS
            assert is_unrevoked or not member.revoking, "nobody waits for what it gives back"
            for partition in (*member.assigned, *member.revoking):
                assert partition not in owners, f"{partition} has two owners"
                owners[partition] = member_id
            assert member.member_epoch <= self.assignment_epoch, "a member of the future"
        assert owners == self._owners
        assert self.cost == sum(member.cost for member in self.members.values())
        assert self.assignment_epoch <= self.group_epoch, "an assignment of the future"
        assert self.target.keys() <= self.members.keys(), "a target for no member"
        targets = Counter(partition for each in self.target.values() for partition in each)
        assert not targets or max(targets.values()) == 1, "one partition for two members"
        assert self.static_members == {
            member.instance_id: member.member_id
            for member in self.members.values()
            if member.instance_id is not None
        }


def metadata_hash(topics: Iterable[str], metadata: ClusterTopics) -> int:
    """A number that changes when a topic of these is created, grows or is deleted.

    Kafka has another function, and racks in it, which its assignors do not look at. Nobody
    compares the numbers of two coordinators of different software.
    """
    digest = blake2b(digest_size=8)
    is_empty = True
    for name in sorted(topics):
        topic_id = metadata.topic_id(name)
        if topic_id is not None:
            is_empty = False
            digest.update(topic_id + metadata.partitions_count(name).to_bytes(4, "big"))
    return 0 if is_empty else int.from_bytes(digest.digest(), "big", signed=True)


def preferred_assignor(members: Mapping[str, ConsumerMember]) -> str:
    """The one that most members ask for; of equals the first by name."""
    votes = Counter(
        member.server_assignor for member in members.values() if member.server_assignor is not None
    )
    return min(votes, key=lambda name: (-votes[name], name), default=DEFAULT_ASSIGNOR)
