"""Static members: joins, restarts, fencing."""

from __future__ import annotations

from tests.golden.cases.registry import group_case
from tests.golden.group_cases.members import (
    RANGE,
    ROUND_ROBIN,
    Member,
    describe,
    heartbeat,
    join,
    leave,
    quiet_join,
    ready,
    stable,
    sync,
)
from tests.golden.talk import Talk


@group_case("JoinGroup", 5, 9)
def a_static_member(talk: Talk, version: int) -> None:
    """It needs no id first."""
    join(talk, version, ready(talk), group_instance_id="one")


@group_case("JoinGroup", 5, 6, 7, 8, 9)
def a_static_member_that_restarts(talk: Talk, version: int) -> None:
    """A new id, the same generation, the same assignment."""
    group = ready(talk)
    stable(talk, group, instance="one")
    answer = join(talk, version, group, group_instance_id="one")
    sync(talk, 3, group, Member(answer["member_id"], answer["generation_id"], "one"))
    describe(talk, group)


@group_case("JoinGroup", 5, 9)
def a_static_member_that_restarts_before_the_assignment(talk: Talk, version: int) -> None:
    """The assignment would be for an id that is gone: a new generation."""
    group = ready(talk)
    quiet_join(talk, group, instance="one")
    join(talk, version, group, group_instance_id="one")


@group_case("JoinGroup", 5, 9)
def a_static_member_that_restarts_with_another_protocol(talk: Talk, version: int) -> None:
    """The chosen protocol changes, so there is a rebalance."""
    group = ready(talk)
    stable(talk, group, instance="one", protocols=[RANGE, ROUND_ROBIN])
    join(talk, version, group, group_instance_id="one", protocols=[ROUND_ROBIN, RANGE])


@group_case("JoinGroup", 5, 9)
def a_fenced_static_member(talk: Talk, version: int) -> None:
    """The process before it may not join again."""
    group = ready(talk)
    old = stable(talk, group, instance="one")
    quiet_join(talk, group, instance="one")
    join(talk, version, group, old.id, group_instance_id="one")
    join(talk, version, group, old.id)


@group_case("JoinGroup", 5, 9)
def an_unknown_instance(talk: Talk, version: int) -> None:
    """The member is there, the instance is not."""
    group = ready(talk)
    member = stable(talk, group)
    join(talk, version, group, member.id, group_instance_id="two")


@group_case("JoinGroup", 5, 9)
def a_pending_id_with_an_instance(talk: Talk, version: int) -> None:
    """Ids are given out to dynamic members only."""
    group = ready(talk)
    given = join(talk, version, group)["member_id"]
    join(talk, version, group, given, group_instance_id="one")


@group_case("SyncGroup", 3, 5)
def of_a_fenced_static_member(talk: Talk, version: int) -> None:
    """Another process has its instance."""
    group = ready(talk)
    old = stable(talk, group, instance="one")
    quiet_join(talk, group, instance="one")
    sync(talk, version, group, old)


@group_case("Heartbeat", 3, 4)
def of_a_static_member(talk: Talk, version: int) -> None:
    """The new process is a member, the one before it is fenced, an unknown one unknown."""
    group = ready(talk)
    old = stable(talk, group, instance="one")
    new = quiet_join(talk, group, instance="one")
    heartbeat(talk, version, group, new)
    heartbeat(talk, version, group, old)
    heartbeat(talk, version, group, Member(new.id, new.generation, "two"))


@group_case("LeaveGroup", 3, 5)
def of_a_static_member_by_its_instance(talk: Talk, version: int) -> None:
    """An administrator knows no member ids."""
    group = ready(talk)
    stable(talk, group, instance="one")
    leave(talk, version, group, {"member_id": "", "group_instance_id": "two"})
    leave(talk, version, group, {"member_id": "", "group_instance_id": "one"})
    describe(talk, group)


@group_case("LeaveGroup", 3, 5)
def of_a_fenced_member(talk: Talk, version: int) -> None:
    """Another process has its instance, and stays."""
    group = ready(talk)
    old = stable(talk, group, instance="one")
    quiet_join(talk, group, instance="one")
    leave(talk, version, group, {"member_id": old.id, "group_instance_id": "one"})
    describe(talk, group)
