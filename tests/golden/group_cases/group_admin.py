"""DescribeGroups, ListGroups and DeleteGroups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.golden.cases.registry import group_case
from tests.golden.group_cases.members import (
    begin_rebalance,
    describe,
    heartbeat,
    join,
    joining,
    leave,
    quiet_join,
    ready,
    stable,
    wait_until_known,
)
from tests.golden.talk import Talk


def own(talk: Talk) -> Callable[[Any], Any]:
    """A list without the groups of other cases."""

    def shown(answer: Any) -> Any:
        mine = [it for it in answer["groups"] if it["group_id"].startswith(talk.name("g"))]
        return {**answer, "groups": mine}

    return shown


def empty(talk: Talk, group: str) -> None:
    """A group that had a member."""
    member = stable(talk, group)
    leave(talk, 3, group, {"member_id": member.id})
    talk.steps.clear()


@group_case("DescribeGroups", 0, 1, 2, 3, 4, 5, 6)
def of_a_stable_group(talk: Talk, version: int) -> None:
    """State, protocol, members with metadata and assignment."""
    group = ready(talk)
    stable(talk, group)
    describe(talk, group, version)


@group_case("DescribeGroups", 0, 6)
def of_an_empty_group(talk: Talk, version: int) -> None:
    """Its type is known, its protocol is not."""
    group = ready(talk)
    empty(talk, group)
    describe(talk, group, version)


@group_case("DescribeGroups", 0, 6)
def of_a_group_without_assignment(talk: Talk, version: int) -> None:
    """Members are shown without metadata."""
    group = ready(talk)
    quiet_join(talk, group)
    describe(talk, group, version)


@group_case("DescribeGroups", 0, 6)
def of_a_rebalance(talk: Talk, version: int) -> None:
    """Two members, one of them waits."""
    group = ready(talk)
    begin_rebalance(talk, group, stable(talk, group))
    describe(talk, group, version)


@group_case("DescribeGroups", 4, 6)
def of_a_group_with_a_static_member(talk: Talk, version: int) -> None:
    """It has its instance id."""
    group = ready(talk)
    stable(talk, group, instance="one")
    describe(talk, group, version)


@group_case("DescribeGroups", 0, 5, 6)
def of_groups_that_are_not_there(talk: Talk, version: int) -> None:
    """Dead; from version 6 on not found. Also a group without a name."""
    group = ready(talk)
    describe(talk, group, version)
    describe(talk, "", version)


@group_case("DescribeGroups", 0, 6)
def of_several(talk: Talk, version: int) -> None:
    """Three groups at once, one of them missing; and none at all."""
    group = ready(talk)
    empty(talk, group + "1")
    empty(talk, group + "2")
    talk.ask("DescribeGroups", version, groups=[group + "2", group + "3", group + "1"])
    talk.ask("DescribeGroups", version, groups=[])


@group_case("DescribeGroups", 3, 6)
def with_authorized_operations(talk: Talk, version: int) -> None:
    """Everything is allowed, to a group that is there."""
    group = ready(talk)
    empty(talk, group)
    talk.ask(
        "DescribeGroups",
        version,
        groups=[group, group + "-missing"],
        include_authorized_operations=True,
    )


@group_case("ListGroups", 0, 1, 2, 3, 4, 5)
def of_all_kinds(talk: Talk, version: int) -> None:
    """Stable, empty, with a pending member, of Connect."""
    group = ready(talk)
    stable(talk, group + "1")
    empty(talk, group + "2")
    talk.quietly("JoinGroup", 9, **joining(group + "3"))
    wait_until_known(talk, group + "3")
    stable(talk, group + "4", protocol_type="connect")
    talk.ask("ListGroups", version, shown=own(talk))


@group_case("ListGroups", 4, 5)
def of_a_state(talk: Talk, version: int) -> None:
    """States in any case, with blanks, several, unknown ones."""
    group = ready(talk)
    stable(talk, group + "1")
    empty(talk, group + "2")
    for states in (["Stable"], ["eMPTY"], [" stable "], ["Stable", "Empty"], ["nonsense"]):
        talk.ask("ListGroups", version, states_filter=states, shown=own(talk))


@group_case("ListGroups", 5)
def of_a_type(talk: Talk, version: int) -> None:
    """Types in any case, several, unknown ones."""
    group = ready(talk)
    stable(talk, group + "1")
    for types in (["classic"], ["CLASSIC"], ["consumer"], ["consumer", "classic"], ["nonsense"]):
        talk.ask("ListGroups", version, types_filter=types, shown=own(talk))


@group_case("DeleteGroups", 0, 1, 2)
def that_are_empty(talk: Talk, version: int) -> None:
    """It is gone, and so is its id for members."""
    group = ready(talk)
    empty(talk, group)
    talk.ask("DeleteGroups", version, groups_names=[group])
    describe(talk, group)
    talk.ask("DeleteGroups", version, groups_names=[group])


@group_case("DeleteGroups", 0, 2)
def that_have_members(talk: Talk, version: int) -> None:
    """Refused, and the group goes on."""
    group = ready(talk)
    member = stable(talk, group)
    talk.ask("DeleteGroups", version, groups_names=[group])
    heartbeat(talk, 3, group, member)


@group_case("DeleteGroups", 0, 2)
def that_rebalance(talk: Talk, version: int) -> None:
    """Refused, before the assignment and during the joins."""
    group = ready(talk)
    member = quiet_join(talk, group + "1")
    talk.ask("DeleteGroups", version, groups_names=[group + "1"])
    heartbeat(talk, 3, group + "1", member)
    begin_rebalance(talk, group, stable(talk, group))
    talk.ask("DeleteGroups", version, groups_names=[group])


@group_case("DeleteGroups", 0, 2)
def that_are_not_there(talk: Talk, version: int) -> None:
    """Unknown, without a name, named twice, none at all."""
    group = ready(talk)
    talk.ask("DeleteGroups", version, groups_names=[group])
    talk.ask("DeleteGroups", version, groups_names=[""])
    talk.ask("DeleteGroups", version, groups_names=[group, group])
    talk.ask("DeleteGroups", version, groups_names=[])


@group_case("DeleteGroups", 0, 2)
def several(talk: Talk, version: int) -> None:
    """One goes, one stays, one was never there."""
    group = ready(talk)
    empty(talk, group + "1")
    stable(talk, group + "2")
    talk.ask("DeleteGroups", version, groups_names=[group + "1", group + "2", group + "3"])


@group_case("DeleteGroups", 0, 2)
def that_begin_anew(talk: Talk, version: int) -> None:
    """The next group of the same name begins with generation 1."""
    group = ready(talk)
    empty(talk, group)
    talk.ask("DeleteGroups", version, groups_names=[group])
    join(talk, 3, group)
