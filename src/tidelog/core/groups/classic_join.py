"""JoinGroup on one classic group: who is let in, under which id, and whether it means a rebalance.

The question comes in three kinds: a new dynamic member, a new process of a static member, a member
that joins again. Refusals first, in Kafka's order.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tidelog.core.coordinator.outcome import Outcome, ReplyTo
from tidelog.core.groups.classic_group import ClassicGroup, ClassicState
from tidelog.core.groups.classic_member import (
    ClassicMember,
    GroupProtocol,
    ParkedJoin,
    protocols_cost,
)
from tidelog.core.groups.classic_rebalance import (
    ClassicRebalance,
    GroupEvent,
    generation_answer,
)
from tidelog.core.groups.group_limits import GROUP_BYTES_MAX, PENDING_PER_GROUP_MAX
from tidelog.core.groups.group_settings import NEW_MEMBER_JOIN_TIMEOUT_MS, GroupSettings
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_11_join_group import JoinGroupRequest

NEW_MEMBER = ""
"""The member id of whoever has none yet."""
_FIRST_VERSION_WITH_REBALANCE_TIMEOUT = 1
_FIRST_VERSION_THAT_ASKS_FOR_AN_ID = 4
_FIRST_VERSION_WITH_SKIP_ASSIGNMENT = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Joiner:
    """A JoinGroup, copied out of its frame: members outlive it."""

    group_id: str
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    version: int
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[GroupProtocol, ...]

    @property
    def needs_known_id(self) -> bool:
        """It gets an id first, and joins with that."""
        is_dynamic = self.member_id == NEW_MEMBER and self.group_instance_id is None
        return is_dynamic and self.version >= _FIRST_VERSION_THAT_ASKS_FOR_AN_ID

    @classmethod
    def from_request(
        cls, request: JoinGroupRequest, *, version: int, client_id: str, client_host: str
    ) -> Joiner:
        return cls(
            group_id=request.group_id,
            member_id=request.member_id,
            group_instance_id=request.group_instance_id,
            client_id=client_id,
            client_host=client_host,
            version=version,
            session_timeout_ms=request.session_timeout_ms,
            rebalance_timeout_ms=(
                request.rebalance_timeout_ms
                if version >= _FIRST_VERSION_WITH_REBALANCE_TIMEOUT
                else request.session_timeout_ms
            ),
            protocol_type=request.protocol_type,
            protocols=tuple(
                GroupProtocol(protocol.name, bytes(protocol.metadata))
                for protocol in request.protocols
            ),
        )


class ClassicJoin:
    """Decides one join after the other; ids are made of the given chance."""

    def __init__(
        self, settings: GroupSettings, rebalance: ClassicRebalance, random: Random
    ) -> None:
        self._settings = settings
        self._rebalance = rebalance
        self._random = random

    def join(
        self, group: ClassicGroup, joiner: Joiner, reply_to: ReplyTo, event: GroupEvent
    ) -> None:
        join = ParkedJoin(reply_to, joiner.version)
        refusal = self._refuse(group, joiner)
        if refusal is ErrorCode.GROUP_MAX_SIZE_REACHED:
            event.refuse_join(join, refusal, member_id=NEW_MEMBER)
            if joiner.member_id in group.members or joiner.member_id in group.pending:
                self._rebalance.forget(group, joiner.member_id, event)
                self._rebalance.complete_join_if_all_joined(group, event)
        elif refusal is not ErrorCode.NONE:
            event.refuse_join(join, refusal, member_id=joiner.member_id)
        elif joiner.member_id != NEW_MEMBER:
            self._join_known(group, joiner, join, event)
        elif joiner.group_instance_id is not None:
            self._join_static(group, joiner, joiner.group_instance_id, join, event)
        else:
            self._join_dynamic(group, joiner, join, event)

    def _refuse(self, group: ClassicGroup, joiner: Joiner) -> ErrorCode:
        if not self._has_room(group, joiner.member_id) or _costs_too_much(group, joiner):
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        if not group.supports(joiner.protocol_type, joiner.protocols):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return ErrorCode.NONE

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        """Members stay. In a rebalance those count that have joined: a group that became too large
        when the limit was lowered so loses the last of its members, and not a random one."""
        if group.state is ClassicState.EMPTY:
            return True
        if group.state is ClassicState.PREPARING_REBALANCE:
            return member_id in group.joins or len(group.joins) < self._settings.size_max
        return member_id in group.members or len(group.members) < self._settings.size_max

    def _join_dynamic(
        self, group: ClassicGroup, joiner: Joiner, join: ParkedJoin, event: GroupEvent
    ) -> None:
        """Give an id out first: a client that never hears of its join would join once more, and
        the member that it left behind would hold up every rebalance until it times out."""
        member_id = self._new_member_id(joiner.client_id)
        if not joiner.needs_known_id:
            self._add(group, member_id, joiner, join, event)
            return
        self._rebalance.note_pending(group, member_id)
        self._rebalance.await_sign_of_life(group, member_id, joiner.session_timeout_ms, event)
        event.refuse_join(join, ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)

    def _join_static(
        self,
        group: ClassicGroup,
        joiner: Joiner,
        group_instance_id: str,
        join: ParkedJoin,
        event: GroupEvent,
    ) -> None:
        member_id = self._new_member_id(group_instance_id)
        if group_instance_id not in group.static_members:
            self._add(group, member_id, joiner, join, event)
            return
        old_leader = group.leader
        member = self._replace(group, group_instance_id, member_id, joiner, event)
        if group.state is ClassicState.STABLE and group.protocol == group.chosen_protocol():
            self._keep_generation(group, member, old_leader, join, event)
            return
        self._rebalance.park_join(group, member_id, join, event)
        self._rebalance.prepare_or_complete(group, event)

    def _replace(
        self,
        group: ClassicGroup,
        group_instance_id: str,
        member_id: str,
        joiner: Joiner,
        event: GroupEvent,
    ) -> ClassicMember:
        """The process before this one is fenced: what it waits for is answered, its id is gone."""
        old_id = group.static_members[group_instance_id]
        self._rebalance.answer_waiting(
            group, old_id, ErrorCode.FENCED_INSTANCE_ID, event, answered_id=old_id
        )
        self._rebalance.cancel_session(group, old_id)
        member = group.rename_static(group_instance_id, member_id)
        self._update(group, member, joiner)
        self._rebalance.renew_session(group, member, event)
        return member

    def _keep_generation(
        self,
        group: ClassicGroup,
        member: ClassicMember,
        old_leader: str | None,
        join: ParkedJoin,
        event: GroupEvent,
    ) -> None:
        """A restarted static member gets its assignment back without a rebalance.

        A leader of an old version must not learn that it leads: it would assign anew, and sync
        with an assignment that nobody asks for.
        """
        group.note_subscriptions()
        self._rebalance.write(group, event)
        leads = group.leader == member.member_id
        answer = generation_answer(group, member.member_id, skip_assignment=leads)
        if join.version < _FIRST_VERSION_WITH_SKIP_ASSIGNMENT:
            answer.skip_assignment = False
            answer.members = []
            answer.leader = old_leader or ""
        event.answer_join(join, answer)
        event.outcome.if_too_large = lambda: self._refuse_too_large(group, join, event.now_ms)

    def _refuse_too_large(self, group: ClassicGroup, join: ParkedJoin, now_ms: int) -> Outcome:
        """What the member says about itself does not fit into a batch with the others."""
        event = GroupEvent(now_ms)
        event.refuse_join(join, ErrorCode.UNKNOWN_SERVER_ERROR, member_id=NEW_MEMBER)
        self._rebalance.prepare(group, event)
        return event.outcome

    def _join_known(
        self, group: ClassicGroup, joiner: Joiner, join: ParkedJoin, event: GroupEvent
    ) -> None:
        member_id = joiner.member_id
        if member_id in group.pending:
            if joiner.group_instance_id is not None:
                # Ids are given out to dynamic members only; Kafka stumbles over it, too.
                event.refuse_join(join, ErrorCode.UNKNOWN_SERVER_ERROR, member_id=NEW_MEMBER)
                return
            self._add(group, member_id, joiner, join, event)
            return
        error = group.refuse_member(member_id, joiner.group_instance_id)
        if error is not ErrorCode.NONE:
            event.refuse_join(join, error, member_id=member_id)
            return
        member = group.members[member_id]
        if self._has_nothing_new(group, member, joiner):
            event.answer_join(join, generation_answer(group, member_id))
            return
        self._update(group, member, joiner)
        self._rebalance.park_join(group, member_id, join, event)
        self._rebalance.prepare_or_complete(group, event)

    def _has_nothing_new(self, group: ClassicGroup, member: ClassicMember, joiner: Joiner) -> bool:
        """It only missed an answer. A leader that joins a stable group wants a rebalance: topics
        may have changed, which its metadata does not show."""
        if member.protocols != joiner.protocols:
            return False
        if group.state is ClassicState.STABLE:
            return group.leader != member.member_id
        return group.state is ClassicState.COMPLETING_REBALANCE

    def _add(
        self,
        group: ClassicGroup,
        member_id: str,
        joiner: Joiner,
        join: ParkedJoin,
        event: GroupEvent,
    ) -> None:
        member = ClassicMember(
            member_id=member_id,
            group_instance_id=joiner.group_instance_id,
            client_id=joiner.client_id,
            client_host=joiner.client_host,
            rebalance_timeout_ms=joiner.rebalance_timeout_ms,
            session_timeout_ms=joiner.session_timeout_ms,
            protocols=joiner.protocols,
            is_new=True,
        )
        if group.is_initial_rebalance:
            group.has_new_member = True
        self._rebalance.forget_pending(group, member_id)
        group.add(member, protocol_type=joiner.protocol_type)
        self._rebalance.await_sign_of_life(group, member_id, NEW_MEMBER_JOIN_TIMEOUT_MS, event)
        self._rebalance.park_join(group, member_id, join, event)
        self._rebalance.prepare_or_complete(group, event)

    def _update(self, group: ClassicGroup, member: ClassicMember, joiner: Joiner) -> None:
        group.update(
            member,
            protocols=joiner.protocols,
            rebalance_timeout_ms=joiner.rebalance_timeout_ms,
            session_timeout_ms=joiner.session_timeout_ms,
        )

    def _new_member_id(self, prefix: str) -> str:
        """`prefix` and a random version 4 uuid in Kafka's text form."""
        digits = f"{self._random.getrandbits(128):032x}"
        variant = "89ab"[int(digits[16], 16) % 4]
        return (
            f"{prefix}-{digits[:8]}-{digits[8:12]}-4{digits[13:16]}"
            f"-{variant}{digits[17:20]}-{digits[20:]}"
        )


def _costs_too_much(group: ClassicGroup, joiner: Joiner) -> bool:
    """One that says no more than before may stay, whatever the others cost."""
    if joiner.needs_known_id:
        return len(group.pending) >= PENDING_PER_GROUP_MAX
    known = group.members.get(joiner.member_id)
    growth = protocols_cost(joiner.protocols) - (0 if known is None else known.cost)
    return growth > 0 and group.cost + growth > GROUP_BYTES_MAX
