"""OffsetCommit by members, strangers and simple consumers: the group's state decides."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.golden.cases.registry import group_case
from tests.golden.group_cases.members import (
    Member,
    begin_rebalance,
    describe,
    heartbeat,
    join,
    leave,
    quiet_join,
    ready,
    stable,
    sync,
)
from tests.golden.talk import Talk, Topic

COMMIT_BY_ID_FROM = 10
NOBODY = Member("", -1)


def commit(
    talk: Talk, version: int, group: str, topic: Topic, member: Member, offset: int = 5
) -> Any:
    """One offset of one partition, with the instance from version 7 on."""
    named: dict[str, Any] = {"group_instance_id": member.instance} if member.instance else {}
    by_id = version >= COMMIT_BY_ID_FROM
    return talk.ask(
        "OffsetCommit",
        version,
        group_id=group,
        generation_id_or_member_epoch=member.generation,
        member_id=member.id,
        topics=[
            {
                **({"topic_id": topic.id} if by_id else {"name": topic.name}),
                "partitions": [
                    {"partition_index": 0, "committed_offset": offset, "committed_metadata": "m"}
                ],
            }
        ],
        **named,
    )


def fetch(talk: Talk, group: str, topic: Topic) -> Any:
    """What is committed, as one more step."""
    asked = [{"name": topic.name, "partition_indexes": [0]}]
    return talk.ask("OffsetFetch", 8, groups=[{"group_id": group, "topics": asked}])


@group_case("OffsetCommit", 2, 9, 10)
def of_a_members_life(talk: Talk, version: int) -> None:
    """Join, sync, heartbeat, commit, leave; the offset outlives the member."""
    group, topic = ready(talk), talk.new_topic()
    answer = join(talk, 3, group)
    member = Member(answer["member_id"], answer["generation_id"])
    sync(talk, 3, group, member, {member.id: b"all"})
    heartbeat(talk, 3, group, member)
    commit(talk, version, group, topic, member)
    leave(talk, 3, group, {"member_id": member.id})
    fetch(talk, group, topic)
    describe(talk, group)


@group_case("OffsetCommit", 2, 9, 10)
def of_strangers_to_a_stable_group(talk: Talk, version: int) -> None:
    """Unknown members, other generations, nobody at all: nothing is kept."""
    group, topic = ready(talk), talk.new_topic()
    member = stable(talk, group)
    commit(talk, version, group, topic, replace(member, id="someone"))
    commit(talk, version, group, topic, replace(member, generation=0))
    commit(talk, version, group, topic, replace(member, generation=2))
    commit(talk, version, group, topic, replace(member, generation=-1))
    commit(talk, version, group, topic, NOBODY)
    fetch(talk, group, topic)


@group_case("OffsetCommit", 2, 9)
def before_the_assignment(talk: Talk, version: int) -> None:
    """The generation is known, but nobody has partitions in it yet."""
    group, topic = ready(talk), talk.new_topic()
    commit(talk, version, group, topic, quiet_join(talk, group))


@group_case("OffsetCommit", 2, 9)
def while_others_join(talk: Talk, version: int) -> None:
    """The last generation may still commit what it has read."""
    group, topic = ready(talk), talk.new_topic()
    member = stable(talk, group)
    begin_rebalance(talk, group, member)
    commit(talk, version, group, topic, member)
    fetch(talk, group, topic)


@group_case("OffsetCommit", 2, 8, 9, 10)
def for_a_group_that_is_not_there(talk: Talk, version: int) -> None:
    """With a generation it is refused, without one a simple group begins."""
    group, topic = ready(talk), talk.new_topic()
    commit(talk, version, group, topic, Member("someone", 3))
    describe(talk, group)
    commit(talk, version, group, topic, NOBODY)
    describe(talk, group)
    talk.ask("DeleteGroups", 2, groups_names=[group])
    fetch(talk, group, topic)


@group_case("OffsetCommit", 2, 9)
def for_an_empty_group(talk: Talk, version: int) -> None:
    """Anybody may commit, but no former member."""
    group, topic = ready(talk), talk.new_topic()
    member = stable(talk, group)
    leave(talk, 3, group, {"member_id": member.id})
    commit(talk, version, group, topic, member)
    commit(talk, version, group, topic, NOBODY)
    commit(talk, version, group, topic, Member("someone", -1), 6)
    fetch(talk, group, topic)


@group_case("OffsetCommit", 7, 9)
def of_a_fenced_member(talk: Talk, version: int) -> None:
    """Another process has its instance; an unknown instance is an unknown member."""
    group, topic = ready(talk), talk.new_topic()
    old = stable(talk, group, instance="one")
    new = quiet_join(talk, group, instance="one")
    commit(talk, version, group, topic, old)
    commit(talk, version, group, topic, replace(old, instance=None))
    commit(talk, version, group, topic, replace(new, instance="two"))
    commit(talk, version, group, topic, new)
    fetch(talk, group, topic)


@group_case("OffsetCommit", 2, 9)
def of_a_simple_group_that_gets_members(talk: Talk, version: int) -> None:
    """Its offsets stay; without membership nobody commits any more."""
    group, topic = ready(talk), talk.new_topic()
    commit(talk, version, group, topic, NOBODY)
    member = stable(talk, group)
    commit(talk, version, group, topic, NOBODY, 6)
    commit(talk, version, group, topic, member, 7)
    fetch(talk, group, topic)
    talk.ask("DeleteGroups", 2, groups_names=[group])
