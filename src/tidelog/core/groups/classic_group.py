"""One classic group: its state, its members, and who among them waits for an answer.

This is the group's content and the rules that hold within it. When it rebalances, and what is
written and answered then, is decided in classic_rebalance.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import Enum

from tidelog.core.coordinator.outcome import ReplyTo
from tidelog.core.groups.classic_member import ClassicMember, GroupProtocol, ParkedJoin
from tidelog.core.groups.consumer_protocol import CONSUMER_PROTOCOL_TYPE, read_subscribed_topics
from tidelog.core.groups.group_records import (
    NO_REBALANCE_TIMEOUT,
    NO_STATE_TIMESTAMP,
    GroupMetadataMember,
    GroupMetadataValue,
)
from tidelog.core.model.errors import ErrorCode


class ClassicState(Enum):
    """Kafka's states, with the names that clients see."""

    EMPTY = "Empty"
    """No members; offsets may be kept."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """Joins wait until all members have joined, or time is up."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """The generation is known; syncs wait until the leader hands in the assignment."""
    STABLE = "Stable"
    """Every member has its assignment or may fetch it."""
    DEAD = "Dead"
    """Deleted."""


NEXT: dict[ClassicState, frozenset[ClassicState]] = {
    ClassicState.EMPTY: frozenset({ClassicState.PREPARING_REBALANCE, ClassicState.DEAD}),
    ClassicState.PREPARING_REBALANCE: frozenset(
        {ClassicState.COMPLETING_REBALANCE, ClassicState.EMPTY, ClassicState.DEAD}
    ),
    ClassicState.COMPLETING_REBALANCE: frozenset(
        {ClassicState.STABLE, ClassicState.PREPARING_REBALANCE, ClassicState.DEAD}
    ),
    ClassicState.STABLE: frozenset({ClassicState.PREPARING_REBALANCE, ClassicState.DEAD}),
    ClassicState.DEAD: frozenset(),
}
assert set(NEXT) == set(ClassicState)


class ClassicGroup:
    """Invariants: the leader is a member; whoever waits is a member; see `check`."""

    def __init__(self, group_id: str, *, state_timestamp_ms: int | None) -> None:
        self.group_id = group_id
        self.state = ClassicState.EMPTY
        self.previous_state: ClassicState | None = None
        self.state_timestamp_ms = state_timestamp_ms
        """Wall clock time of the last change of state; None in a record of an old format."""
        self.generation = 0
        self.protocol_type: str | None = None
        """None until the first member: a simple group, which only keeps offsets."""
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, ClassicMember] = {}
        """In the order in which they came."""
        self.static_members: dict[str, str] = {}
        """Group instance id to member id."""
        self.pending: set[str] = set()
        """Ids that were given out; whoever got one has not joined with it yet."""
        self.joins: dict[str, ParkedJoin] = {}
        self.syncs: dict[str, ReplyTo] = {}
        self.not_synced: set[str] = set()
        """Members of this generation that have not sent SyncGroup."""
        self.initial_delay_left_ms: int | None = None
        """While a group that was empty collects members: how long it may still go on doing so."""
        self.has_new_member = False
        """A member came during the present initial delay, so there may be another one."""
        self.subscribed_topics: frozenset[str] | None = None
        """None when it cannot be known."""
        self.cost = 0
        """Of all members, in bytes."""
        self._supporters: Counter[str] = Counter()

    # What holds

    @property
    def is_initial_rebalance(self) -> bool:
        return (
            self.state is ClassicState.PREPARING_REBALANCE
            and self.previous_state is ClassicState.EMPTY
        )

    @property
    def can_rebalance(self) -> bool:
        return ClassicState.PREPARING_REBALANCE in NEXT[self.state]

    @property
    def all_joined(self) -> bool:
        return len(self.joins) == len(self.members) and not self.pending

    @property
    def is_of_consumers(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    @property
    def rebalance_timeout_ms(self) -> int:
        """The slowest member's."""
        return max((it.rebalance_timeout_ms for it in self.members.values()), default=0)

    def supports(self, protocol_type: str, protocols: Iterable[GroupProtocol]) -> bool:
        """Whether a member with these protocols fits into the group."""
        names = {protocol.name for protocol in protocols}
        if self.state is ClassicState.EMPTY:
            return bool(protocol_type) and bool(names)
        count = len(self.members)
        return self.protocol_type == protocol_type and any(
            self._supporters[name] == count for name in names
        )

    def refuse_member(self, member_id: str, group_instance_id: str | None) -> ErrorCode:
        """Whether this id is a member, and not one that another process has taken over."""
        if group_instance_id is not None:
            current = self.static_members.get(group_instance_id)
            if current is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if current != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether offsets of this topic are in use; if that cannot be known, consumers use them."""
        if self.subscribed_topics is None:
            return self.is_of_consumers
        return topic in self.subscribed_topics

    def chosen_protocol(self) -> str:
        """The protocol with the most votes among those that all members support."""
        count = len(self.members)
        candidates = {name for name, have_it in self._supporters.items() if have_it == count}
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return max(votes, key=lambda name: votes[name])  # the first to be voted for, among equals

    # What changes

    def become(self, state: ClassicState, *, wall_ms: int) -> None:
        """The only way a group changes state."""
        assert state in NEXT[self.state], f"{self.state.name} may not become {state.name}"
        self.previous_state = self.state
        self.state = state
        self.state_timestamp_ms = wall_ms

    def add(self, member: ClassicMember, *, protocol_type: str) -> None:
        assert member.member_id not in self.members
        if not self.members:
            self.protocol_type = protocol_type
        assert self.protocol_type == protocol_type, "a group has one protocol type"
        if member.group_instance_id is not None:
            assert member.group_instance_id not in self.static_members
            self.static_members[member.group_instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self._count(member, 1)
        self.pending.discard(member.member_id)

    def remove(self, member_id: str) -> None:
        """Forget a member, or a pending one. Whatever it waited for is answered before."""
        assert member_id not in self.joins and member_id not in self.syncs, "it waits for an answer"
        self.pending.discard(member_id)
        self.not_synced.discard(member_id)
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._count(member, -1)
        if member.group_instance_id is not None:
            del self.static_members[member.group_instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)

    def update(
        self,
        member: ClassicMember,
        *,
        protocols: tuple[GroupProtocol, ...],
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
    ) -> None:
        """Take over what a member says about itself when it joins again."""
        self._count(member, -1)
        member.protocols = protocols
        self._count(member, 1)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def rename_static(self, group_instance_id: str, new_id: str) -> ClassicMember:
        """The static member came back: another process, the same assignment, a new id."""
        old_id = self.static_members[group_instance_id]
        assert old_id not in self.joins and old_id not in self.syncs, "it waits for an answer"
        member = self.members.pop(old_id)
        member.member_id = new_id
        member.is_new = False
        self.members[new_id] = member
        self.static_members[group_instance_id] = new_id
        self.not_synced.discard(old_id)
        if self.leader == old_id:
            self.leader = new_id
        return member

    def elect_joined_leader(self) -> bool:
        """Keep the leader if it has joined, or else take one that has; False if nobody has."""
        if self.leader is not None and self.leader in self.joins:
            return True
        joined = next((member_id for member_id in self.members if member_id in self.joins), None)
        if joined is None:
            return False
        self.leader = joined
        return True

    def begin_generation(self, *, wall_ms: int) -> None:
        """All who joined are in the next generation; with nobody in it the group is empty."""
        self.generation += 1
        self.protocol = self.chosen_protocol() if self.members else None
        self.note_subscriptions()
        self.become(
            ClassicState.COMPLETING_REBALANCE if self.members else ClassicState.EMPTY,
            wall_ms=wall_ms,
        )
        self.not_synced.clear()

    def note_subscriptions(self) -> None:
        """Read which topics the members subscribe to, under the chosen protocol."""
        self.subscribed_topics = None
        if not self.is_of_consumers:
            return
        topics: set[str] = set()
        for member in self.members.values():
            assert self.protocol is not None, "members without a protocol"
            subscribed = read_subscribed_topics(member.metadata(self.protocol))
            if subscribed is None:
                return
            topics |= subscribed
        self.subscribed_topics = frozenset(topics)

    # To the log and back

    def as_record(self) -> GroupMetadataValue:
        """What a successor must know of this generation."""
        return GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol,
            leader=self.leader,
            current_state_timestamp=(
                NO_STATE_TIMESTAMP if self.state_timestamp_ms is None else self.state_timestamp_ms
            ),
            members=[
                GroupMetadataMember(
                    member_id=member.member_id,
                    group_instance_id=member.group_instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout=member.rebalance_timeout_ms,
                    session_timeout=member.session_timeout_ms,
                    subscription=member.metadata(self.protocol or ""),
                    assignment=member.assignment,
                )
                for member in self.members.values()
            ],
        )

    @classmethod
    def from_record(cls, group_id: str, value: GroupMetadataValue) -> ClassicGroup:
        """The group as its last record left it: stable, or empty."""
        stamp = value.current_state_timestamp
        group = cls(group_id, state_timestamp_ms=None if stamp == NO_STATE_TIMESTAMP else stamp)
        group.generation = value.generation
        group.protocol_type = value.protocol_type or None
        group.protocol = value.protocol
        for kept in value.members:
            member = ClassicMember(
                member_id=kept.member_id,
                group_instance_id=kept.group_instance_id,
                client_id=kept.client_id,
                client_host=kept.client_host,
                rebalance_timeout_ms=(
                    kept.session_timeout
                    if kept.rebalance_timeout == NO_REBALANCE_TIMEOUT
                    else kept.rebalance_timeout
                ),
                session_timeout_ms=kept.session_timeout,
                protocols=(GroupProtocol(value.protocol or "", bytes(kept.subscription)),),
                assignment=bytes(kept.assignment),
            )
            group.add(member, protocol_type=value.protocol_type)
        if value.leader in group.members:
            group.leader = value.leader
        if group.members:
            group.state = ClassicState.STABLE
        group.note_subscriptions()
        return group

    def check(self) -> None:
        """Assert what must hold between any two events."""
        assert (self.leader is None) == (not self.members), "a leader without a group"
        assert self.leader is None or self.leader in self.members, "the leader is no member"
        assert self.joins.keys() <= self.members.keys(), "a parked join of no member"
        assert self.syncs.keys() <= self.members.keys(), "a parked sync of no member"
        assert self.not_synced <= self.members.keys()
        assert not self.pending & self.members.keys(), "both pending and a member"
        assert set(self.static_members.values()) == {
            member.member_id for member in self.members.values() if member.is_static
        }
        assert self.cost == sum(member.cost for member in self.members.values())
        assert not self.joins or self.state is ClassicState.PREPARING_REBALANCE, self.state
        assert not self.syncs or self.state is ClassicState.COMPLETING_REBALANCE, self.state
        assert not self.members or self.state is not ClassicState.EMPTY, "empty, with members"
        if self.state in (ClassicState.COMPLETING_REBALANCE, ClassicState.STABLE):
            assert self.members, "a generation without members"
            assert self.protocol is not None, "a generation without a protocol"

    def _count(self, member: ClassicMember, change: int) -> None:
        self.cost += change * member.cost
        for name in {protocol.name for protocol in member.protocols}:
            self._supporters[name] += change
            if not self._supporters[name]:
                del self._supporters[name]
