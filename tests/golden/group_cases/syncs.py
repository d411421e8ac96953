"""SyncGroup: assignments handed in and fetched."""

from __future__ import annotations

from dataclasses import replace

from tests.golden.cases.registry import group_case
from tests.golden.group_cases.members import (
    Member,
    begin_rebalance,
    completed_pair,
    describe,
    quiet_join,
    ready,
    stable,
    sync,
    syncing,
)
from tests.golden.talk import Talk


@group_case("SyncGroup", 0, 1, 2, 3, 4, 5)
def of_the_leader(talk: Talk, version: int) -> None:
    """It hands in the assignment and gets its own."""
    group = ready(talk)
    member = quiet_join(talk, group)
    sync(talk, version, group, member, {member.id: b"mine", "stranger": b"not mine"})
    describe(talk, group)


@group_case("SyncGroup", 0, 5)
def of_a_leader_that_assigns_nothing(talk: Talk, version: int) -> None:
    """Whoever is left out gets an empty assignment."""
    group = ready(talk)
    sync(talk, version, group, quiet_join(talk, group))
    describe(talk, group)


@group_case("SyncGroup", 0, 5)
def of_a_follower_that_waits(talk: Talk, version: int) -> None:
    """Its answer comes with the leader's assignment."""
    group = ready(talk)
    leader, follower = completed_pair(talk, group)
    waiting = talk.start("SyncGroup", version, on="follower", **syncing(version, group, follower))
    sync(talk, version, group, leader, {leader.id: b"one", follower.id: b"two"})
    waiting()
    describe(talk, group)


@group_case("SyncGroup", 0, 5)
def of_a_stable_group(talk: Talk, version: int) -> None:
    """Whoever asks again gets the same; what is handed in now is ignored."""
    group = ready(talk)
    member = stable(talk, group)
    sync(talk, version, group, member)
    sync(talk, version, group, member, {member.id: b"something else"})


@group_case("SyncGroup", 0, 5)
def of_an_unknown_member(talk: Talk, version: int) -> None:
    """The group does not have it."""
    group = ready(talk)
    member = stable(talk, group)
    sync(talk, version, group, replace(member, id="someone"))


@group_case("SyncGroup", 0, 5)
def of_a_missing_group(talk: Talk, version: int) -> None:
    """Nobody is a member of it."""
    sync(talk, version, ready(talk), Member("someone", 1))


@group_case("SyncGroup", 0, 5)
def of_another_generation(talk: Talk, version: int) -> None:
    """An old one, one to come, and none."""
    group = ready(talk)
    member = stable(talk, group)
    for generation in (member.generation - 1, member.generation + 1, -1):
        sync(talk, version, group, replace(member, generation=generation))


@group_case("SyncGroup", 0, 5)
def without_a_group(talk: Talk, version: int) -> None:
    """An empty group id is invalid."""
    ready(talk)
    sync(talk, version, "", Member("someone", 1))


@group_case("SyncGroup", 5)
def of_another_protocol(talk: Talk, version: int) -> None:
    """Type or name is not the group's."""
    group = ready(talk)
    member = stable(talk, group)
    sync(talk, version, group, member, protocol_type="connect")
    sync(talk, version, group, member, protocol_name="sticky")


@group_case("SyncGroup", 5)
def of_no_protocol(talk: Talk, version: int) -> None:
    """From version 5 on both must be named, whatever the group."""
    group = ready(talk)
    member = stable(talk, group)
    sync(talk, version, group, member, protocol_type=None)
    sync(talk, version, group, member, protocol_name=None)
    sync(talk, version, "", member, protocol_name=None)


@group_case("SyncGroup", 0, 5)
def during_a_rebalance(talk: Talk, version: int) -> None:
    """The generation ends: join again."""
    group = ready(talk)
    member = stable(talk, group)
    begin_rebalance(talk, group, member)
    sync(talk, version, group, member)
    sync(talk, version, group, replace(member, generation=0))
