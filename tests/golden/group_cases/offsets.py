"""OffsetCommit of simple consumers, OffsetFetch and OffsetDelete; members commit in commits.py."""

from __future__ import annotations

from typing import Any

from tests.golden.cases.registry import group_case
from tests.golden.group_cases.members import Member, ready, stable
from tests.golden.talk import MADE_UP_ID, Talk, Topic

BY_ID_FROM = 10
GROUPS_FROM = 8
METADATA_MAX = 4096
NOT_A_MEMBER = Member("", -1)


def committing(
    version: int,
    group: str,
    topic: Topic,
    *,
    member: Member = NOT_A_MEMBER,
    offset: int = 5,
    partition: int = 0,
    metadata: str | None = "mine",
    **fields: Any,
) -> dict[str, Any]:
    """The fields of a commit for one partition."""
    one: dict[str, Any] = {
        "partition_index": partition,
        "committed_offset": offset,
        "committed_metadata": metadata,
    }
    if version >= 6:
        one["committed_leader_epoch"] = 0
    named = {"topic_id": topic.id} if version >= BY_ID_FROM else {"name": topic.name}
    return {
        "group_id": group,
        "generation_id_or_member_epoch": member.generation,
        "member_id": member.id,
        "topics": [{**named, "partitions": [one]}],
        **fields,
    }


def commit(talk: Talk, version: int, group: str, topic: Topic, **options: Any) -> Any:
    return talk.ask("OffsetCommit", version, **committing(version, group, topic, **options))


def fetch(
    talk: Talk,
    version: int,
    group: str,
    topic: Topic | None,
    *,
    partitions: tuple[int, ...] = (0, 1),
    **fields: Any,
) -> Any:
    """Some partitions of a topic, or without one all that the group has."""
    named: dict[str, Any] = {}
    if topic is not None:
        named = {"topic_id": topic.id} if version >= BY_ID_FROM else {"name": topic.name}
    topics = None if topic is None else [{**named, "partition_indexes": list(partitions)}]
    if version < GROUPS_FROM:
        return talk.ask("OffsetFetch", version, group_id=group, topics=topics, **fields)
    groups = [{"group_id": group, "topics": topics}]
    return talk.ask("OffsetFetch", version, groups=groups, **fields)


def delete(talk: Talk, group: str, topic: str, *partitions: int) -> Any:
    wanted = [{"partition_index": index} for index in partitions]
    topics = [{"name": topic, "partitions": wanted}]
    return talk.ask("OffsetDelete", 0, group_id=group, topics=topics)


def quietly(talk: Talk, group: str, topic: Topic, **options: Any) -> None:
    """A commit that a case takes for granted."""
    talk.quietly("OffsetCommit", 9, **committing(9, group, topic, **options))


@group_case("OffsetCommit", 2, 3, 4, 5, 6, 7, 8, 9, 10)
def of_a_simple_consumer(talk: Talk, version: int) -> None:
    """Without being a member of a group, which begins with it."""
    group, topic = ready(talk), talk.new_topic(partitions=2)
    commit(talk, version, group, topic)
    fetch(talk, 7, group, topic)


@group_case("OffsetCommit", 2, 9, 10)
def of_what_does_not_exist(talk: Talk, version: int) -> None:
    """A partition too many, and a topic that is not there."""
    group, topic = ready(talk), talk.new_topic()
    fields = committing(version, group, topic)
    fields["topics"] += committing(version, group, topic, partition=7)["topics"]
    missing = Topic(talk.name("missing"), MADE_UP_ID)
    fields["topics"] += committing(version, group, missing)["topics"]
    talk.ask("OffsetCommit", version, **fields)


@group_case("OffsetCommit", 2, 10)
def with_metadata_that_is_too_long(talk: Talk, version: int) -> None:
    """One character more than is allowed, then as many as are."""
    group, topic = ready(talk), talk.new_topic()
    commit(talk, version, group, topic, metadata="x" * (METADATA_MAX + 1))
    commit(talk, version, group, topic, metadata="x" * METADATA_MAX)
    commit(talk, version, group, topic, metadata=None)
    fetch(talk, 7, group, topic, partitions=(0,))


@group_case("OffsetCommit", 2, 10)
def of_a_strange_offset(talk: Talk, version: int) -> None:
    """A negative one, and one beyond the end of the log: the coordinator does not look."""
    group, topic = ready(talk), talk.new_topic()
    commit(talk, version, group, topic, offset=-7)
    commit(talk, version, group, topic, offset=1_000_000)
    fetch(talk, 7, group, topic, partitions=(0,))


@group_case("OffsetCommit", 2, 9)
def of_the_empty_group(talk: Talk, version: int) -> None:
    """The empty name is allowed to simple consumers, and all cases share it."""
    ready(talk)
    topic = talk.new_topic()
    commit(talk, version, "", topic)
    fetch(talk, 7, "", topic, partitions=(0,))


@group_case("OffsetCommit", 2, 10)
def of_nothing(talk: Talk, version: int) -> None:
    """No topic at all."""
    group = ready(talk)
    talk.ask("OffsetCommit", version, group_id=group, member_id="", topics=[])


@group_case("OffsetFetch", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
def of_some_partitions(talk: Talk, version: int) -> None:
    """One that was committed and one that was not."""
    group, topic = ready(talk), talk.new_topic(partitions=2)
    quietly(talk, group, topic)
    fetch(talk, version, group, topic)


@group_case("OffsetFetch", 2, 7, 8, 10)
def of_all_that_a_group_has(talk: Talk, version: int) -> None:
    """Without naming topics."""
    group, topic = ready(talk), talk.new_topic(partitions=2)
    quietly(talk, group, topic)
    quietly(talk, group, topic, partition=1, offset=8, metadata=None)
    fetch(talk, version, group, None)


@group_case("OffsetFetch", 1, 2, 8, 10)
def of_an_unknown_group(talk: Talk, version: int) -> None:
    """No offset, and no error."""
    group, topic = ready(talk), talk.new_topic(partitions=2)
    fetch(talk, version, group, topic)
    if version > 1:
        fetch(talk, version, group, None)


@group_case("OffsetFetch", 1, 9, 10)
def of_an_unknown_topic(talk: Talk, version: int) -> None:
    """By name it has no offset, by id that is an error."""
    group, topic = ready(talk), talk.new_topic()
    quietly(talk, group, topic)
    fetch(talk, version, group, Topic(talk.name("missing"), MADE_UP_ID))


@group_case("OffsetFetch", 8, 9, 10)
def of_many_groups(talk: Talk, version: int) -> None:
    """One that has offsets and two that are unknown."""
    group, topic = ready(talk), talk.new_topic()
    quietly(talk, group, topic)
    names = [group, f"{group}-b", f"{group}-c"]
    groups = [{"group_id": name, "topics": None} for name in names]
    talk.ask("OffsetFetch", version, groups=groups)


@group_case("OffsetFetch", 7, 8, 10)
def of_stable_offsets(talk: Talk, version: int) -> None:
    """Nothing is pending, so all are stable."""
    group, topic = ready(talk), talk.new_topic()
    quietly(talk, group, topic)
    fetch(talk, version, group, topic, partitions=(0,), require_stable=True)


@group_case("OffsetFetch", 9, 10)
def by_a_member_of_another_protocol(talk: Talk, version: int) -> None:
    """Member id and epoch mean nothing to a classic group."""
    group, topic = ready(talk), talk.new_topic()
    quietly(talk, group, topic)
    named = {"topic_id": topic.id} if version >= BY_ID_FROM else {"name": topic.name}
    wanted = {"group_id": group, "member_id": "m", "member_epoch": 4}
    topics = [{**named, "partition_indexes": [0]}]
    talk.ask("OffsetFetch", version, groups=[{**wanted, "topics": topics}])


@group_case("OffsetFetch", 7, 10)
def of_a_deleted_topic(talk: Talk, version: int) -> None:
    """Its offsets went with it: a new topic of that name begins without."""
    group, topic = ready(talk), talk.new_topic()
    quietly(talk, group, topic)
    talk.quietly("DeleteTopics", 5, topic_names=[topic.name], timeout_ms=30_000)

    def is_gone() -> bool:
        answer = talk.quietly("OffsetFetch", 7, group_id=group, topics=None)
        return not answer["topics"]

    talk.wait_for(is_gone, "the end of the topic's offsets")
    fetch(talk, 7, group, topic, partitions=(0,))
    fetch(talk, version, group, None)


@group_case("OffsetDelete", 0)
def of_a_simple_group(talk: Talk, version: int) -> None:
    """One that was committed and one that was not; a partition too many; a topic that is not."""
    group, topic = ready(talk), talk.new_topic(partitions=2)
    quietly(talk, group, topic)
    delete(talk, group, topic.name, 0, 1, 7)
    delete(talk, group, talk.name("missing"), 0)
    fetch(talk, 7, group, topic)


@group_case("OffsetDelete", 0)
def of_a_group_with_members(talk: Talk, version: int) -> None:
    """A topic that the members do not read."""
    group, topic = ready(talk), talk.new_topic()
    member = stable(talk, group)
    quietly(talk, group, topic, member=member)
    delete(talk, group, topic.name, 0)
    fetch(talk, 7, group, topic, partitions=(0,))


@group_case("OffsetDelete", 0)
def of_a_group_that_nobody_knows(talk: Talk, version: int) -> None:
    """And of the group without a name."""
    group, topic = ready(talk), talk.new_topic()
    delete(talk, group, topic.name, 0)
    delete(talk, "", topic.name, 0)
