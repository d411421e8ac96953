"""LeaveGroup of dynamic members."""

from __future__ import annotations

from tests.golden.cases.registry import group_case
from tests.golden.group_cases.members import (
    begin_rebalance,
    describe,
    join,
    joining,
    leave,
    ready,
    stable,
    stable_pair,
)
from tests.golden.talk import Talk


@group_case("LeaveGroup", 0, 1, 2, 3, 4, 5)
def of_the_last_member(talk: Talk, version: int) -> None:
    """The group is empty, and keeps its type."""
    group = ready(talk)
    leave(talk, version, group, {"member_id": stable(talk, group).id})
    describe(talk, group)


@group_case("LeaveGroup", 0, 5)
def of_somebody_else(talk: Talk, version: int) -> None:
    """The group does not have this member."""
    group = ready(talk)
    stable(talk, group)
    leave(talk, version, group, {"member_id": "someone"})
    leave(talk, version, group, {"member_id": ""})
    describe(talk, group)


@group_case("LeaveGroup", 0, 5)
def of_a_group_that_is_not_there(talk: Talk, version: int) -> None:
    """Nobody is in it; and a group without a name is invalid."""
    group = ready(talk)
    leave(talk, version, group, {"member_id": "someone"})
    leave(talk, version, "", {"member_id": "someone"})


@group_case("LeaveGroup", 3, 5)
def of_many(talk: Talk, version: int) -> None:
    """Each has its own answer."""
    group = ready(talk)
    leader, follower = stable_pair(talk, group)
    leave(
        talk,
        version,
        group,
        {"member_id": follower.id},
        {"member_id": "someone"},
        {"member_id": leader.id},
    )
    describe(talk, group)


@group_case("LeaveGroup", 3, 5)
def of_one_member_twice(talk: Talk, version: int) -> None:
    """The second time it is gone."""
    group = ready(talk)
    member = stable(talk, group)
    both = [{"member_id": member.id, "group_instance_id": instance} for instance in (None, "x")]
    leave(talk, version, group, *both)


@group_case("LeaveGroup", 3, 5)
def of_nobody(talk: Talk, version: int) -> None:
    """An empty list changes nothing."""
    group = ready(talk)
    stable(talk, group)
    leave(talk, version, group)
    describe(talk, group)


@group_case("LeaveGroup", 0, 5)
def of_a_follower(talk: Talk, version: int) -> None:
    """The others must join again."""
    group = ready(talk)
    leader, follower = stable_pair(talk, group)
    leave(talk, version, group, {"member_id": follower.id})
    join(talk, 3, group, leader.id)


@group_case("LeaveGroup", 0, 5)
def of_the_one_that_is_waited_for(talk: Talk, version: int) -> None:
    """The rebalance goes on without it."""
    group = ready(talk)
    member = stable(talk, group)
    joined = begin_rebalance(talk, group, member)
    leave(talk, version, group, {"member_id": member.id})
    joined()
    describe(talk, group)


@group_case("LeaveGroup", 0, 5)
def of_one_that_waits(talk: Talk, version: int) -> None:
    """Its join is answered, and the other goes on."""
    group = ready(talk)
    leader, follower = stable_pair(talk, group)
    joined = begin_rebalance(talk, group, leader)
    waiting = talk.start("JoinGroup", 3, on="waiting", **joining(group, follower.id))
    talk.wait_a_moment()
    leave(talk, version, group, {"member_id": follower.id})
    waiting()
    join(talk, 3, group, leader.id)
    joined()


@group_case("LeaveGroup", 0, 5)
def of_a_pending_member(talk: Talk, version: int) -> None:
    """It has an id, and has not joined with it."""
    group = ready(talk)
    given = join(talk, 9, group)["member_id"]
    leave(talk, version, group, {"member_id": given})
    join(talk, 9, group, given)
