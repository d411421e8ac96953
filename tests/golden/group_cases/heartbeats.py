"""Heartbeat of dynamic members."""

from __future__ import annotations

from dataclasses import replace

from tests.golden.cases.registry import group_case
from tests.golden.group_cases.members import (
    Member,
    begin_rebalance,
    heartbeat,
    leave,
    quiet_join,
    ready,
    stable,
)
from tests.golden.talk import Talk


@group_case("Heartbeat", 0, 1, 2, 3, 4)
def of_a_member(talk: Talk, version: int) -> None:
    """All is well."""
    group = ready(talk)
    heartbeat(talk, version, group, stable(talk, group))


@group_case("Heartbeat", 0, 4)
def before_the_assignment(talk: Talk, version: int) -> None:
    """A member may send heartbeats from its join on."""
    group = ready(talk)
    heartbeat(talk, version, group, quiet_join(talk, group))


@group_case("Heartbeat", 0, 4)
def during_a_rebalance_of_others(talk: Talk, version: int) -> None:
    """Join again."""
    group = ready(talk)
    member = stable(talk, group)
    begin_rebalance(talk, group, member)
    heartbeat(talk, version, group, member)


@group_case("Heartbeat", 0, 4)
def of_strangers(talk: Talk, version: int) -> None:
    """No such member, no id at all, no such group, no group at all."""
    group = ready(talk)
    member = stable(talk, group)
    heartbeat(talk, version, group, replace(member, id="someone"))
    heartbeat(talk, version, group, replace(member, id=""))
    heartbeat(talk, version, group + "-missing", member)
    heartbeat(talk, version, "", member)


@group_case("Heartbeat", 0, 4)
def of_other_generations(talk: Talk, version: int) -> None:
    """An old one, one to come, and none."""
    group = ready(talk)
    member = stable(talk, group)
    for generation in (0, 2, -1):
        heartbeat(talk, version, group, replace(member, generation=generation))


@group_case("Heartbeat", 0, 4)
def after_the_last_member_left(talk: Talk, version: int) -> None:
    """An empty group has no members."""
    group = ready(talk)
    member = stable(talk, group)
    leave(talk, 3, group, {"member_id": member.id})
    heartbeat(talk, version, group, member)
    heartbeat(talk, version, group, Member(member.id, 2))
