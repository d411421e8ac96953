"""JoinGroup of dynamic members."""

from __future__ import annotations

from tests.golden.cases.registry import group_case
from tests.golden.group_cases.members import (
    RANGE,
    ROUND_ROBIN,
    Member,
    begin_rebalance,
    completed_pair,
    describe,
    join,
    joining,
    quiet_join,
    ready,
    stable,
    stable_pair,
    subscription,
    sync,
    wait_until_known,
)
from tests.golden.talk import Talk


@group_case("JoinGroup", 0, 1, 2, 3)
def the_first_member(talk: Talk, version: int) -> None:
    """Old versions join at once, and lead."""
    join(talk, version, ready(talk))


@group_case("JoinGroup", 4, 5, 6, 7, 8, 9)
def with_the_id_that_was_given(talk: Talk, version: int) -> None:
    """Newer versions get an id first, and join with it."""
    group = ready(talk)
    given = join(talk, version, group)["member_id"]
    join(talk, version, group, given)


@group_case("JoinGroup", 0, 9)
def without_a_group_id(talk: Talk, version: int) -> None:
    """An empty group id is invalid."""
    ready(talk)
    join(talk, version, "")


@group_case("JoinGroup", 0, 9)
def with_too_short_a_session(talk: Talk, version: int) -> None:
    """A session below the broker's least one."""
    join(talk, version, ready(talk), session_timeout_ms=5_999)


@group_case("JoinGroup", 0, 9)
def with_too_long_a_session(talk: Talk, version: int) -> None:
    """A session above the broker's longest one."""
    join(talk, version, ready(talk), session_timeout_ms=1_800_001)


@group_case("JoinGroup", 3, 9)
def with_the_limits_of_sessions(talk: Talk, version: int) -> None:
    """The least and the longest session are allowed."""
    group = ready(talk)
    join(talk, version, group + "-least", session_timeout_ms=6_000)
    join(talk, version, group + "-longest", session_timeout_ms=1_800_000)


@group_case("JoinGroup", 0, 9)
def a_missing_group_with_an_id(talk: Talk, version: int) -> None:
    """Only a member without an id begins a group."""
    group = ready(talk)
    join(talk, version, group, "someone")
    describe(talk, group)


@group_case("JoinGroup", 0, 9)
def with_an_unknown_id(talk: Talk, version: int) -> None:
    """The group has members, but not this one."""
    group = ready(talk)
    stable(talk, group)
    join(talk, version, group, "someone")


@group_case("JoinGroup", 0, 9)
def without_protocols(talk: Talk, version: int) -> None:
    """A member must support a protocol; the group is there nonetheless."""
    group = ready(talk)
    join(talk, version, group, protocols=[])
    wait_until_known(talk, group)
    describe(talk, group)


@group_case("JoinGroup", 0, 9)
def without_a_protocol_type(talk: Talk, version: int) -> None:
    """A group needs a type."""
    join(talk, version, ready(talk), protocol_type="")


@group_case("JoinGroup", 0, 9)
def with_another_protocol_type(talk: Talk, version: int) -> None:
    """A group of consumers takes no worker of Connect."""
    group = ready(talk)
    stable(talk, group)
    join(talk, version, group, protocol_type="connect")


@group_case("JoinGroup", 0, 9)
def with_another_protocol(talk: Talk, version: int) -> None:
    """There must be a protocol that all members support."""
    group = ready(talk)
    stable(talk, group)
    join(talk, version, group, protocols=[ROUND_ROBIN])


@group_case("JoinGroup", 0, 9)
def alone_with_another_protocol(talk: Talk, version: int) -> None:
    """Not even the only member may change to a protocol that the group does not have."""
    group = ready(talk)
    member = stable(talk, group)
    join(talk, version, group, member.id, protocols=[ROUND_ROBIN])


@group_case("JoinGroup", 0, 3)
def a_group_of_another_type(talk: Talk, version: int) -> None:
    """A group may be of anything."""
    group = ready(talk)
    join(talk, version, group, protocol_type="connect", protocols=[ROUND_ROBIN])
    describe(talk, group)


@group_case("JoinGroup", 0, 9)
def the_leader_of_a_stable_group_again(talk: Talk, version: int) -> None:
    """It wants a rebalance, and gets a new generation."""
    group = ready(talk)
    member = stable(talk, group)
    join(talk, version, group, member.id)
    describe(talk, group)


@group_case("JoinGroup", 0, 9)
def a_follower_of_a_stable_group_again(talk: Talk, version: int) -> None:
    """It only learns the generation."""
    group = ready(talk)
    _, follower = stable_pair(talk, group)
    join(talk, version, group, follower.id)


@group_case("JoinGroup", 0, 9)
def before_the_assignment_again(talk: Talk, version: int) -> None:
    """Leader and follower missed their answers, and get them again."""
    group = ready(talk)
    leader, follower = completed_pair(talk, group)
    join(talk, version, group, leader.id)
    join(talk, version, group, follower.id)


@group_case("JoinGroup", 0, 9)
def with_other_metadata(talk: Talk, version: int) -> None:
    """The only member changed its mind: a new generation."""
    group = ready(talk)
    member = stable(talk, group)
    join(talk, version, group, member.id, protocols=[{**RANGE, "metadata": subscription("c")}])


@group_case("JoinGroup", 0, 2, 5, 9)
def a_second_member(talk: Talk, version: int) -> None:
    """The second waits for the first; the leader learns of both."""
    group = ready(talk)
    first = stable(talk, group)
    joined = begin_rebalance(talk, group, first)
    join(talk, version, group, first.id)
    joined()
    describe(talk, group)


@group_case("JoinGroup", 2, 9)
def the_protocol_with_most_votes(talk: Talk, version: int) -> None:
    """Two members like different protocols; both support both."""
    group = ready(talk)
    first = stable(talk, group, protocols=[RANGE, ROUND_ROBIN])
    joined = begin_rebalance(talk, group, first, protocols=[ROUND_ROBIN])
    join(talk, version, group, first.id, protocols=[RANGE, ROUND_ROBIN])
    joined()


@group_case("JoinGroup", 4, 9)
def a_group_with_a_pending_member(talk: Talk, version: int) -> None:
    """An id was given out: the group is there and empty."""
    group = ready(talk)
    join(talk, version, group)
    wait_until_known(talk, group)
    describe(talk, group)


@group_case("JoinGroup", 3, 9)
def after_the_assignment_of_one(talk: Talk, version: int) -> None:
    """A whole round by one member, with its assignment."""
    group = ready(talk)
    member = quiet_join(talk, group)
    sync(talk, 3, group, member, {member.id: b"mine"})
    answer = join(talk, version, group, member.id)
    sync(talk, 3, group, Member(member.id, answer["generation_id"]), {member.id: b"mine again"})
    describe(talk, group)


@group_case("JoinGroup", 0, 3)
def with_an_unreadable_subscription(talk: Talk, version: int) -> None:
    """A consumer's metadata that is no subscription: is the join answered?"""
    group = ready(talk)
    protocols = [{"name": "range", "metadata": b"no subscription at all"}]
    talk.ask_in_vain("JoinGroup", version, **joining(group, protocols=protocols))
