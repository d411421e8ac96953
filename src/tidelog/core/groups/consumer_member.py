"""A member of a KIP-848 group, and its way from the assignment it has to the one it should have.

A partition is given to a member only when its last owner has said that it no longer has it. So a
member first gives back what others should get, in its old epoch; then it comes to the epoch of the
target assignment and gets what is free; the rest it gets as others release it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final

from tidelog.core.groups.classic_member import GroupProtocol
from tidelog.core.groups.consumer_records import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    PartitionKey,
    current_partitions,
    partition_epochs,
)
from tidelog.core.groups.group_limits import member_cost
from tidelog.core.model.ids import TopicId

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
LEAVE_STATIC_EPOCH: Final = -2
"""The static member goes and will come back; its partitions wait for it."""
NO_TIMEOUT: Final = -1


class MemberState(IntEnum):
    """By Kafka's numbers in records."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    """Has to give back partitions before it may come to the next epoch."""
    UNRELEASED_PARTITIONS = 2
    """Waits for partitions that others still have."""
    UNKNOWN = 127
    """Of a later release."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicSide:
    """What a member said when it joined by the classic protocol."""

    session_timeout_ms: int
    protocols: tuple[GroupProtocol, ...]
    """The first one is the member's; all say the same of its topics."""

    @property
    def protocol(self) -> GroupProtocol:
        return self.protocols[0]

    def value(self) -> ClassicMemberMetadata:
        return ClassicMemberMetadata(
            session_timeout_ms=self.session_timeout_ms,
            supported_protocols=[
                ClassicProtocol(name=each.name, metadata=each.metadata) for each in self.protocols
            ],
        )

    @classmethod
    def from_value(cls, value: ClassicMemberMetadata | None) -> ClassicSide | None:
        if value is None:
            return None
        protocols = value.supported_protocols
        return cls(
            session_timeout_ms=value.session_timeout_ms,
            protocols=tuple(GroupProtocol(it.name, bytes(it.metadata)) for it in protocols),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerMember:
    """What the log says of one member. It is replaced, never changed."""

    member_id: str
    member_epoch: int = 0
    previous_epoch: int = -1
    """The member may still be there if the answer with its new epoch was lost."""
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topics: frozenset[str] = frozenset()
    subscribed_regex: str | None = ""
    """Empty or null: none."""
    rebalance_timeout_ms: int = NO_TIMEOUT
    server_assignor: str | None = None
    state: MemberState = MemberState.STABLE
    assigned: Mapping[PartitionKey, int] = field(default_factory=dict)
    """Which partitions it has, with the epoch at which it got each."""
    revoking: Mapping[PartitionKey, int] = field(default_factory=dict)
    """What it has to give back; others wait for these."""
    classic: ClassicSide | None = None
    """None: it speaks the new protocol."""

    @property
    def cost(self) -> int:
        """In bytes of memory, about."""
        parts = (self.rack_id, self.subscribed_regex, *self.subscribed_topics)
        classic = () if self.classic is None else self.classic.protocols
        return member_cost((*parts, *(part for protocol in classic for part in protocol)))

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch

    def partition_epoch(self, partition: PartitionKey) -> int | None:
        """At which epoch the member got a partition that it has, or still has."""
        assigned_epoch = self.assigned.get(partition)
        return self.revoking.get(partition) if assigned_epoch is None else assigned_epoch

    # To the log and back

    def metadata_value(self) -> ConsumerGroupMemberMetadataValue:
        return ConsumerGroupMemberMetadataValue(
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=sorted(self.subscribed_topics),
            subscribed_topic_regex=self.subscribed_regex,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            server_assignor=self.server_assignor,
            classic_member_metadata=None if self.classic is None else self.classic.value(),
        )

    def current_value(self) -> ConsumerGroupCurrentMemberAssignmentValue:
        return ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=self.member_epoch,
            previous_member_epoch=self.previous_epoch,
            state=self.state,
            assigned_partitions=current_partitions(self.assigned),
            partitions_pending_revocation=current_partitions(self.revoking),
        )

    def with_metadata(self, value: ConsumerGroupMemberMetadataValue) -> ConsumerMember:
        return replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed_topics=frozenset(value.subscribed_topic_names),
            subscribed_regex=value.subscribed_topic_regex,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            server_assignor=value.server_assignor,
            classic=ClassicSide.from_value(value.classic_member_metadata),
        )

    def with_current(self, value: ConsumerGroupCurrentMemberAssignmentValue) -> ConsumerMember:
        member_epoch = value.member_epoch
        known = value.state in tuple(MemberState)
        return replace(
            self,
            member_epoch=member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=MemberState(value.state) if known else MemberState.UNKNOWN,
            assigned=partition_epochs(value.assigned_partitions, member_epoch=member_epoch),
            revoking=partition_epochs(
                value.partitions_pending_revocation, member_epoch=member_epoch
            ),
        )

    def without_partitions(self) -> ConsumerMember:
        """After the tombstone of what it has."""
        return replace(
            self, member_epoch=LEAVE_EPOCH, previous_epoch=LEAVE_EPOCH, assigned={}, revoking={}
        )

    def gone_for_a_while(self) -> ConsumerMember:
        """A static member that left to come back: its partitions count from epoch 0 then."""
        return replace(
            self,
            member_epoch=LEAVE_STATIC_EPOCH,
            revoking={},
            assigned=dict.fromkeys(self.assigned, 0),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """One step of a member towards its target."""

    target_epoch: int
    target: AbstractSet[PartitionKey]
    subscribed_ids: AbstractSet[TopicId]
    """The topics of its subscription that exist."""
    owned: AbstractSet[PartitionKey] | None
    """What the member says that it has; None: what it last said."""
    is_owned: Callable[[PartitionKey], bool]
    """Whether any member has a partition."""
    subscription_changed: bool

    def next(self, member: ConsumerMember) -> ConsumerMember | None:
        """The member after this step, or itself. None: it must be fenced, and begin anew."""
        if member.state is MemberState.UNKNOWN:
            return self._advance(member) if self.owned is not None and not self.owned else None
        if member.state is MemberState.STABLE and member.member_epoch == self.target_epoch:
            return self._drop_unsubscribed(member) if self.subscription_changed else member
        if member.state is MemberState.UNREVOKED_PARTITIONS and self._still_owns(member.revoking):
            return self._drop_unsubscribed(member) if self.subscription_changed else member
        return self._advance(member)

    def _still_owns(self, partitions: Mapping[PartitionKey, int]) -> bool:
        return self.owned is None or not self.owned.isdisjoint(partitions)

    def _drop_unsubscribed(self, member: ConsumerMember) -> ConsumerMember:
        """The member takes back a subscription; the assignor has not answered to that yet."""
        kept = {
            each: at_epoch
            for each, at_epoch in member.assigned.items()
            if each[0] in self.subscribed_ids
        }
        if len(kept) == len(member.assigned):
            return member
        dropped = {each: at for each, at in member.assigned.items() if each not in kept}
        revoking = {**member.revoking, **dropped}
        moved = replace(member, previous_epoch=member.member_epoch, assigned=kept)
        if not self._still_owns(revoking):
            return moved
        return replace(moved, state=MemberState.UNREVOKED_PARTITIONS, revoking=revoking)

    def _advance(self, member: ConsumerMember) -> ConsumerMember:
        wanted = {each for each in self.target if each[0] in self.subscribed_ids}
        kept = {each: at_epoch for each, at_epoch in member.assigned.items() if each in wanted}
        revoking = {
            each: at_epoch for each, at_epoch in member.assigned.items() if each not in wanted
        }
        if revoking and self._still_owns(revoking):
            return replace(
                member,
                previous_epoch=member.member_epoch,
                state=MemberState.UNREVOKED_PARTITIONS,
                assigned=kept,
                revoking=revoking,
            )
        # What it was itself asked to give back is not free, but it is the member's own.
        unreleased = {
            each
            for each in wanted
            if each not in kept and self.is_owned(each) and each not in member.revoking
        }
        granted = dict.fromkeys(wanted - kept.keys() - unreleased, self.target_epoch)
        return replace(
            member,
            member_epoch=self.target_epoch,
            previous_epoch=member.member_epoch,
            state=MemberState.UNRELEASED_PARTITIONS if unreleased else MemberState.STABLE,
            assigned={**kept, **granted},
            revoking={},
        )
