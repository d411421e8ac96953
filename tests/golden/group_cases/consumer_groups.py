"""KIP-848 groups: ConsumerGroupHeartbeat, ConsumerGroupDescribe, and offsets by member epochs."""

from __future__ import annotations

from typing import Any

from tests.golden.cases.registry import group_case
from tests.golden.group_cases.commits import commit, fetch
from tests.golden.group_cases.members import Member, describe, join, leave, ready, stable
from tests.golden.talk import Talk, Topic


def beat(
    talk: Talk, version: int, group: str, member: str = "a", epoch: int = 0, **fields: Any
) -> Any:
    """One heartbeat with only what is given."""
    given = {"group_id": group, "member_id": member, "member_epoch": epoch, **fields}
    return talk.ask("ConsumerGroupHeartbeat", version, **given)


def first(topic: Topic, **fields: Any) -> dict[str, Any]:
    """What a member says when it joins."""
    return {
        "rebalance_timeout_ms": 60_000,
        "subscribed_topic_names": [topic.name],
        "topic_partitions": [],
        **fields,
    }


def owned(topic: Topic, *partitions: int) -> dict[str, Any]:
    return {"topic_partitions": [{"topic_id": topic.id, "partitions": list(partitions)}]}


def show(talk: Talk, group: str, version: int = 1) -> Any:
    return talk.ask("ConsumerGroupDescribe", version, group_ids=[group])


@group_case("ConsumerGroupHeartbeat", 0, 1)
def life_of_a_member(talk: Talk, version: int) -> None:
    """Join, stay, commit, leave; an empty group is left over, and can be deleted."""
    group, topic = ready(talk), talk.new_topic(partitions=2)
    beat(talk, version, group, **first(topic))
    show(talk, group)
    beat(talk, version, group, epoch=2)
    beat(talk, version, group, epoch=2, **owned(topic, 0, 1))
    talk.ask("ListGroups", 5, types_filter=["consumer"], states_filter=["stable"])
    talk.ask("DeleteGroups", 2, groups_names=[group])
    beat(talk, version, group, epoch=-1)
    show(talk, group)
    beat(talk, version, group, epoch=-1)
    talk.ask("DeleteGroups", 2, groups_names=[group])
    show(talk, group)
    beat(talk, version, group, epoch=2)


@group_case("ConsumerGroupHeartbeat", 0, 1)
def second_member(talk: Talk, version: int) -> None:
    """The first one gives back, acknowledges, and only then the second one gets partitions."""
    group, topic = ready(talk), talk.new_topic(partitions=4)
    beat(talk, version, group, "a", **first(topic))
    beat(talk, version, group, "b", **first(topic))
    show(talk, group)
    beat(talk, version, group, "a", 2)
    beat(talk, version, group, "b", 3)
    show(talk, group)
    beat(talk, version, group, "a", 2, **owned(topic, 0, 1))
    show(talk, group)
    beat(talk, version, group, "b", 3)
    show(talk, group)
    beat(talk, version, group, "a", -1)
    beat(talk, version, group, "b", 3)
    show(talk, group)


@group_case("ConsumerGroupHeartbeat", 0, 1)
def range_assignor(talk: Talk, version: int) -> None:
    """Neighbouring partitions, by the order of the members."""
    group, topic = ready(talk), talk.new_topic(partitions=3)
    beat(talk, version, group, "b", **first(topic, server_assignor="range"))
    beat(talk, version, group, "a", **first(topic, server_assignor="range"))
    beat(talk, version, group, "b", 2)
    show(talk, group)
    beat(talk, version, group, "b", 2, **owned(topic, 2))
    beat(talk, version, group, "a", 3)
    show(talk, group)


@group_case("ConsumerGroupHeartbeat", 0, 1)
def wrong_requests(talk: Talk, version: int) -> None:
    """Each is refused before anybody looks for the group."""
    group, topic = ready(talk), talk.new_topic()
    whole = first(topic)
    beat(talk, version, "", **whole)
    beat(talk, version, group, "", 1)
    beat(talk, version, group, "", -1)
    beat(talk, version, group, instance_id="", **whole)
    beat(talk, version, group, rack_id="", **whole)
    beat(talk, version, group, **{**whole, "rebalance_timeout_ms": -1})
    beat(talk, version, group, **{**whole, "topic_partitions": None})
    beat(talk, version, group, **{**whole, **owned(topic, 0)})
    beat(talk, version, group, **{**whole, "subscribed_topic_names": None})
    beat(talk, version, group, epoch=-2)
    beat(talk, version, group, epoch=-3)
    beat(talk, version, group, server_assignor="fair", **whole)
    show(talk, group)


@group_case("ConsumerGroupHeartbeat", 0, 1)
def wrong_members(talk: Talk, version: int) -> None:
    """Unknown ones, and epochs that are not the member's."""
    group, topic = ready(talk), talk.new_topic(partitions=2)
    beat(talk, version, group, epoch=3)
    beat(talk, version, group, epoch=-1)
    beat(talk, version, group, **first(topic))
    beat(talk, version, group, "b", 2)
    beat(talk, version, group, "b", -1)
    beat(talk, version, group, epoch=3)
    beat(talk, version, group, epoch=1)
    beat(talk, version, group, epoch=2, instance_id="i")
    beat(talk, version, group, epoch=-2, instance_id="i")
    beat(talk, version, group, **first(topic))
    show(talk, group)


@group_case("ConsumerGroupHeartbeat", 0, 1)
def static_members(talk: Talk, version: int) -> None:
    """One leaves to come back under another id, to its own partitions."""
    group, topic = ready(talk), talk.new_topic(partitions=2)
    beat(talk, version, group, "a", **first(topic, instance_id="i"))
    beat(talk, version, group, "b", **first(topic, instance_id="i"))
    beat(talk, version, group, "b", 2, instance_id="i")
    beat(talk, version, group, "a", -2, instance_id="i")
    show(talk, group)
    beat(talk, version, group, "b", **first(topic, instance_id="i"))
    show(talk, group)
    beat(talk, version, group, "a", 2, instance_id="i")
    leave(talk, 3, group, {"member_id": "", "group_instance_id": "i"})
    show(talk, group)


@group_case("ConsumerGroupHeartbeat", 0, 1)
def subscription_that_changes(talk: Talk, version: int) -> None:
    """A topic is taken back; what the member has of it is revoked at once."""
    group, one, two = ready(talk), talk.new_topic("one"), talk.new_topic("two")
    beat(talk, version, group, **first(one))
    beat(talk, version, group, epoch=2, subscribed_topic_names=[two.name])
    show(talk, group)
    beat(talk, version, group, epoch=2, topic_partitions=[])
    show(talk, group)


@group_case("ConsumerGroupHeartbeat", 0, 1)
def missing_topics(talk: Talk, version: int) -> None:
    """Nothing is assigned; a topic of that name may still come."""
    group = ready(talk)
    nowhere: dict[str, Any] = {"subscribed_topic_names": [talk.name("nowhere")]}
    beat(talk, version, group, **{**nowhere, "rebalance_timeout_ms": 1, "topic_partitions": []})
    beat(talk, version, group, epoch=2, subscribed_topic_names=[])
    show(talk, group)


@group_case("ConsumerGroupHeartbeat", 1)
def bad_expressions(talk: Talk, version: int) -> None:
    """RE2 has no look-around and no back-references; no group is created."""
    group, topic = ready(talk), talk.new_topic()
    for regex in ("a(", "[b-a]", "(?=a)b", r"(a)\1", "*a", "a**", "a{2,1}", "\\"):
        beat(talk, version, group, **first(topic, subscribed_topic_regex=regex))
    show(talk, group)


@group_case("ConsumerGroupHeartbeat", 0, 1)
def classic_groups_and_ids(talk: Talk, version: int) -> None:
    """An empty classic group becomes one of the new kind, and the other way round."""
    group, topic = ready(talk), talk.new_topic()
    member = stable(talk, group)
    show(talk, group)
    beat(talk, version, group, epoch=5)
    leave(talk, 3, group, {"member_id": member.id})
    beat(talk, version, group, **first(topic))
    show(talk, group)
    describe(talk, group)
    beat(talk, version, group, epoch=-1)
    join(talk, 3, group)
    show(talk, group)


@group_case("OffsetCommit", 8, 9, 10)
def of_a_consumer_groups_member(talk: Talk, version: int) -> None:
    """The epoch counts, or that the partition was the member's since an older one."""
    group, topic = ready(talk), talk.new_topic(partitions=1)
    beat(talk, 1, group, **first(topic))
    commit(talk, version, group, topic, Member("a", 2))
    commit(talk, version, group, topic, Member("a", 3))
    commit(talk, version, group, topic, Member("a", 1))
    commit(talk, version, group, topic, Member("b", 2))
    commit(talk, version, group, topic, Member("", -1))
    fetch(talk, group, topic)
    beat(talk, 1, group, epoch=2, rack_id="r")
    beat(talk, 1, group, "b", **first(topic))
    beat(talk, 1, group, epoch=2)
    commit(talk, version, group, topic, Member("a", 2), 7)
    fetch(talk, group, topic)
    beat(talk, 1, group, epoch=-1)
    beat(talk, 1, group, "b", -1)
    commit(talk, version, group, topic, Member("", -1), 8)
    fetch(talk, group, topic)


@group_case("OffsetFetch", 9)
def of_a_consumer_groups_member_by_epoch(talk: Talk, version: int) -> None:
    """Who names itself has to be a member, in its epoch."""
    group, topic = ready(talk), talk.new_topic()
    beat(talk, 1, group, **first(topic))
    asked = [{"name": topic.name, "partition_indexes": [0]}]
    for member_id, epoch in (("a", 2), ("a", 1), ("a", 3), ("b", 2), (None, -1)):
        wanted = {"group_id": group, "topics": asked}
        who = {"member_id": member_id, "member_epoch": epoch}
        talk.ask("OffsetFetch", version, groups=[{**wanted, **who}])


@group_case("OffsetDelete", 0)
def of_a_consumer_group(talk: Talk, version: int) -> None:
    """Not while a member reads the topic."""
    group, topic, other = ready(talk), talk.new_topic(), talk.new_topic("u")
    beat(talk, 1, group, **first(topic))
    for each in (topic, other):
        asked = [{"name": each.name, "partitions": [{"partition_index": 0}]}]
        talk.ask("OffsetDelete", version, group_id=group, topics=asked)


@group_case("ConsumerGroupDescribe", 0, 1)
def of_several_groups(talk: Talk, version: int) -> None:
    """Missing ones, a classic one, one without a name; operations only if they are asked for."""
    group, topic = ready(talk), talk.new_topic(partitions=2)
    beat(talk, 1, group, rack_id="r", **first(topic))
    classic = talk.name("classic")
    stable(talk, classic)
    asked = [group, talk.name("missing"), classic, ""]
    talk.ask("ConsumerGroupDescribe", version, group_ids=asked)
    talk.ask(
        "ConsumerGroupDescribe", version, group_ids=asked[:2], include_authorized_operations=True
    )
