"""Any story of a group: members come, go, repeat themselves, fall silent, and time passes.

Invariants: the leader is a member, the generation never goes back, nobody is answered twice, and
in the end nobody is left without an answer. Whenever a group is stable or empty its records tell a
successor the same.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.unit.core.groups.given import (
    GROUP,
    JOIN_WITHOUT_ID_ROUND,
    NEWEST_JOIN,
    REBALANCE_MS,
    GroupsUnderTest,
)
from tidelog.core.groups.classic_group import ClassicState
from tidelog.core.groups.classic_member import GroupProtocol
from tidelog.core.groups.group_settings import NEW_MEMBER_JOIN_TIMEOUT_MS

A, B = GroupProtocol("a", b"1"), GroupProtocol("b", b"2")
PROTOCOLS = st.sampled_from([(A,), (A, B), (B, A), (GroupProtocol("a", b"3"), B), (B,)])
VERSIONS = st.sampled_from([JOIN_WITHOUT_ID_ROUND, NEWEST_JOIN])
INSTANCES = st.sampled_from([None, None, "one", "two"])
WHO = st.integers(0, 9)


class GroupStory(RuleBasedStateMachine):
    """One group; ids that were ever given out are remembered, also those that are gone."""

    delay_ms = 0

    def __init__(self) -> None:
        super().__init__()
        self.here = GroupsUnderTest(initial_rebalance_delay_ms=self.delay_ms, size_max=4)
        self.generation = 0
        self.ids: list[str] = []

    def someone(self, who: int) -> str:
        """A member of today, or with bad luck one of yesterday."""
        group = self.here.groups.get(GROUP)
        today = [] if group is None else [*group.members, *sorted(group.pending)]
        candidates = [*today, *today, *self.ids[-2:], "stranger"]
        return candidates[who % len(candidates)]

    def instance_of(self, member_id: str) -> str | None:
        group = self.here.groups.get(GROUP)
        member = None if group is None else group.members.get(member_id)
        return None if member is None else member.group_instance_id

    @rule(version=VERSIONS, protocols=PROTOCOLS, instance=INSTANCES)
    def join(
        self, version: int, protocols: tuple[GroupProtocol, ...], instance: str | None
    ) -> None:
        self.here.join(version=version, protocols=protocols, instance=instance)
        group = self.here.groups.get(GROUP)
        if group is not None:
            for member_id in [*group.members, *sorted(group.pending)]:
                if member_id not in self.ids:
                    self.ids.append(member_id)

    @rule(who=WHO, protocols=PROTOCOLS, version=VERSIONS)
    def join_again(self, who: int, protocols: tuple[GroupProtocol, ...], version: int) -> None:
        member_id = self.someone(who)
        self.here.join(
            member_id, protocols=protocols, version=version, instance=self.instance_of(member_id)
        )

    @rule()
    def all_join_again(self) -> None:
        group = self.here.groups.get(GROUP)
        for member in list(group.members.values()) if group else []:
            self.here.join(
                member.member_id, protocols=member.protocols, instance=member.group_instance_id
            )

    @rule()
    def all_sync(self) -> None:
        group = self.here.groups.get(GROUP)
        for member in list(group.members.values()) if group else []:
            content = {member_id: member_id.encode() for member_id in self.ids}
            self.here.sync(member.member_id, content)

    @rule(who=WHO, back=st.integers(0, 1))
    def sync(self, who: int, back: int) -> None:
        group = self.here.groups.get(GROUP)
        if group is not None:
            member_id = self.someone(who)
            self.here.sync(member_id, {member_id: b"x"}, generation=group.generation - back)

    @rule(who=WHO)
    def heartbeat(self, who: int) -> None:
        self.here.heartbeat(self.someone(who))

    @rule(who=WHO)
    def leave(self, who: int) -> None:
        member_id = self.someone(who)
        self.here.leave((member_id, self.instance_of(member_id)))

    @rule(duration_ms=st.sampled_from([1, 500, 4_000, 11_000, REBALANCE_MS]))
    def wait(self, duration_ms: int) -> None:
        self.here.wait(duration_ms)

    @rule()
    def delete(self) -> None:
        """Then the next group of this name begins at generation 0 again."""
        for record in self.here.groups.expire(GROUP):
            self.here.groups.apply(record)
            self.here.log.append(record)
            self.generation = 0

    @invariant()
    def the_generation_never_goes_back(self) -> None:
        group = self.here.groups.get(GROUP)
        if group is not None:
            assert group.generation >= self.generation
            self.generation = group.generation

    @invariant()
    def nobody_is_answered_twice(self) -> None:
        assert all(len(caller.answers) <= 1 for caller in self.here.callers)

    @invariant()
    def a_successor_reads_what_members_were_answered(self) -> None:
        group = self.here.groups.get(GROUP)
        later = GroupsUnderTest(self.here.log).groups.get(GROUP)
        assert (group is None) == (later is None)
        if group is None or later is None:
            return
        if group.state is ClassicState.EMPTY:
            assert (later.state, later.generation) == (ClassicState.EMPTY, group.generation)
        if group.state is ClassicState.STABLE:
            ours, theirs = group.as_record(), later.as_record()
            theirs.current_state_timestamp = ours.current_state_timestamp  # of the state before
            assert theirs == ours
            assert later.subscribed_topics == group.subscribed_topics

    def teardown(self) -> None:
        self.here.wait(2 * (NEW_MEMBER_JOIN_TIMEOUT_MS + REBALANCE_MS))
        assert not [caller for caller in self.here.callers if caller.waits], "left waiting"
        group = self.here.groups.get(GROUP)
        assert group is None or group.state is ClassicState.EMPTY, "waits for nobody"


class GroupStoryWithInitialDelay(GroupStory):
    """The same, with members that wait for more members."""

    delay_ms = 3_000


TestAnyStory = GroupStory.TestCase
TestAnyStoryWithInitialDelay = GroupStoryWithInitialDelay.TestCase
