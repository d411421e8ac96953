"""Groups that change their protocol while they have members: classic to KIP-848, and back."""

from __future__ import annotations

from typing import Any

from tests.golden.cases.registry import group_case
from tests.golden.group_cases.commits import commit, fetch
from tests.golden.group_cases.consumer_groups import beat, first, owned, show
from tests.golden.group_cases.members import (
    Member,
    begin_rebalance,
    describe,
    heartbeat,
    join,
    joining,
    leave,
    quiet_join,
    quiet_sync,
    ready,
    sync,
)
from tests.golden.talk import Talk, Topic


def text(value: str) -> bytes:
    return len(value).to_bytes(2, "big") + value.encode()


def partitions(topic: str, indexes: tuple[int, ...]) -> bytes:
    """One topic's partitions, as consumers write them for each other."""
    numbers = b"".join(index.to_bytes(4, "big") for index in indexes)
    return (1).to_bytes(4, "big") + text(topic) + len(indexes).to_bytes(4, "big") + numbers


def wants(topic: Topic, *has: int, version: int = 3, rack: str | None = None) -> bytes:
    """A subscription; from version 1 on with what the member has."""
    content = version.to_bytes(2, "big") + (1).to_bytes(4, "big") + text(topic.name) + NO_USER_DATA
    if version >= 1:
        content += partitions(topic.name, has) if has else bytes(4)
    if version >= 2:
        content += (1).to_bytes(4, "big")
    if version >= 3:
        content += b"\xff\xff" if rack is None else text(rack)
    return content


def gets(topic: Topic, *indexes: int, version: int = 3, user_data: bytes | None = None) -> bytes:
    """An assignment."""
    rest = NO_USER_DATA if user_data is None else len(user_data).to_bytes(4, "big") + user_data
    return version.to_bytes(2, "big") + partitions(topic.name, indexes) + rest


NO_USER_DATA = b"\xff\xff\xff\xff"


def by(metadata: bytes, *names: str) -> dict[str, Any]:
    """The protocols of a JoinGroup."""
    return {"protocols": [{"name": name, "metadata": metadata} for name in names or ("range",)]}


def classic(talk: Talk, group: str, topic: Topic, *has: int, **fields: Any) -> Member:
    """A stable classic group with one member that has these partitions."""
    member = quiet_join(talk, group, **{**by(wants(topic)), **fields})
    quiet_sync(talk, group, member, {member.id: gets(topic, *has)})
    return member


def static(talk: Talk, group: str, topic: Topic) -> Member:
    """A static classic member that joins a KIP-848 group, and gets an id of that kind."""
    fields = joining(group, group_instance_id="i", **by(wants(topic)))
    answer = talk.quietly("JoinGroup", 8, **fields)
    talk.learn_random_member(answer["member_id"])
    return Member(answer["member_id"], answer["generation_id"], "i")


def mixed(talk: Talk, group: str, topic: Topic) -> Member:
    """A KIP-848 group with the member `a` of the new kind, and the classic one that was first."""
    member = classic(talk, group, topic, 0, 1)
    talk.quietly(
        "ConsumerGroupHeartbeat", 1, group_id=group, member_id="a", member_epoch=0, **first(topic)
    )
    return member


@group_case("ConsumerGroupHeartbeat", 0, 1)
def migration_and_back(talk: Talk, version: int) -> None:
    """A member of the new kind comes and goes; the classic one gives back, and gets all again."""
    group, topic = ready(talk), talk.new_topic(partitions=2)
    old = classic(talk, group, topic, 0, 1)
    beat(talk, version, group, **first(topic))
    show(talk, group)
    describe(talk, group)
    heartbeat(talk, 4, group, old)
    join(talk, 9, group, old.id, **by(wants(topic, 0, 1)))
    show(talk, group)
    sync(talk, 5, group, old)
    heartbeat(talk, 4, group, old)
    joined = join(talk, 9, group, old.id, **by(wants(topic, 0)))
    old = Member(old.id, joined["generation_id"])
    sync(talk, 5, group, old)
    heartbeat(talk, 4, group, old)
    beat(talk, version, group, epoch=2)
    show(talk, group)
    beat(talk, version, group, epoch=-1)
    show(talk, group)
    describe(talk, group)
    heartbeat(talk, 4, group, old)
    joined = join(talk, 9, group, old.id, **by(wants(topic, 0)))
    old = Member(old.id, joined["generation_id"])
    sync(talk, 5, group, old, {old.id: gets(topic, 0, 1)})
    describe(talk, group)


@group_case("JoinGroup", 3, 9)
def eager_member_of_a_consumer_group(talk: Talk, version: int) -> None:
    """Its first format has no partitions: whoever joins with it has given back everything."""
    group, topic = ready(talk), talk.new_topic(partitions=4)
    old = classic(talk, group, topic, 0, 1, 2, 3, **by(wants(topic, version=0)))
    beat(talk, 1, group, **first(topic))
    heartbeat(talk, 4, group, old)
    joined = join(talk, version, group, old.id, **by(wants(topic, version=0)))
    old = Member(old.id, joined["generation_id"])
    sync(talk, 5, group, old)
    show(talk, group)
    beat(talk, 1, group, "a", 2)
    leave(talk, 5, group, {"member_id": old.id})
    show(talk, group)
    beat(talk, 1, group, "a", 2)


@group_case("JoinGroup", 0, 9)
def of_new_members_in_a_consumer_group(talk: Talk, version: int) -> None:
    """Known by any id; in later versions whoever has none gets one first."""
    group, topic = ready(talk), talk.new_topic(partitions=2)
    beat(talk, 1, group, **first(topic))

    def hide(answer: Any) -> Any:
        return {**answer, "member_id": "<some id>"}

    fields = joining(group, **by(wants(topic)))
    talk.ask("JoinGroup", version, shown=hide, **fields)
    join(talk, version, group, "c", **by(wants(topic, rack="r")))
    sync(talk, 5, group, Member("c", 3))
    sync(talk, 5, group, Member("c", 4))
    heartbeat(talk, 4, group, Member("c", 3))
    describe(talk, group)


@group_case("JoinGroup", 0, 9)
def refused_by_a_consumer_group(talk: Talk, version: int) -> None:
    """Protocols that nobody else has, and bytes that are no subscription."""
    group, topic = ready(talk), talk.new_topic(partitions=2)
    old = mixed(talk, group, topic)
    join(talk, version, group, "c", **by(wants(topic), "roundrobin"))
    join(talk, version, group, "c", protocols=[])
    join(talk, version, group, "c", protocol_type="connect", **by(wants(topic)))
    for bad in (b"", b"\0", b"\0\3", b"\0\0\0\0", b"\xff\xff" + bytes(8), b"\0\0" + b"\x7f" * 8):
        join(talk, version, group, "c", **by(bad))
    join(talk, version, group, "c", **by(b"\0\3" + wants(topic, version=0)[2:]))
    join(talk, version, group, "c", **by(b"\0\0" + b"\0\0\0\1" + b"\0\x09abc"))
    join(talk, version, group, "c", **by(b"\0\0" + b"\0\0\0\1" + b"\xff\xff" + NO_USER_DATA))
    heartbeat(talk, 4, group, old)


@group_case("JoinGroup", 5, 9)
def of_static_members_in_a_consumer_group(talk: Talk, version: int) -> None:
    """A new process takes over, whatever protocol it or the other speaks."""
    group, topic = ready(talk), talk.new_topic(partitions=2)
    beat(talk, 1, group, "a", **first(topic))
    named = {"group_instance_id": "i", **by(wants(topic))}
    join(talk, version, group, "c", **named)
    member = static(talk, group, topic)
    join(talk, version, group, "c", **named)
    heartbeat(talk, 4, group, Member("c", member.generation, "i"))
    heartbeat(talk, 4, group, Member(member.id, member.generation, "j"))
    show(talk, group)
    beat(talk, 1, group, "b", **first(topic, instance_id="i"))
    show(talk, group)
    heartbeat(talk, 4, group, member)
    beat(talk, 1, group, "c", **first(topic, instance_id="i"))


@group_case("JoinGroup", 9)
def that_replaces_the_last_new_member(talk: Talk, version: int) -> None:
    """A static member of the new kind comes back as a classic one: so does the group."""
    group, topic = ready(talk), talk.new_topic(partitions=2)
    beat(talk, 1, group, "a", **first(topic, instance_id="i"))
    member = static(talk, group, topic)
    describe(talk, group)
    sync(talk, 5, group, member)
    heartbeat(talk, 4, group, member)


@group_case("JoinGroup", 9)
def that_replaces_it_with_another_subscription(talk: Talk, version: int) -> None:
    """The assignment does not know of it: the classic group rebalances at once."""
    group, topic, other = ready(talk), talk.new_topic(partitions=2), talk.new_topic("u")
    beat(talk, 1, group, "a", **first(topic, instance_id="i"))
    member = static(talk, group, other)
    talk.look("generation", member.generation)
    describe(talk, group)
    sync(talk, 5, group, member)
    heartbeat(talk, 4, group, Member(member.id, 2, "i"))


@group_case("ConsumerGroupHeartbeat", 1)
def of_a_classic_static_member(talk: Talk, version: int) -> None:
    """Its new process speaks the new protocol; the group has no classic member any more."""
    group, topic = ready(talk), talk.new_topic(partitions=2)
    old = classic(talk, group, topic, 0, 1, instance="i")
    beat(talk, version, group, "a", **first(topic, instance_id="i"))
    show(talk, group)
    heartbeat(talk, 4, group, old)
    beat(talk, version, group, "a", -1, instance_id="i")
    show(talk, group)


@group_case("ConsumerGroupHeartbeat", 1)
def to_groups_that_cannot_migrate(talk: Talk, version: int) -> None:
    """Custom assignors, other kinds of groups, and bytes that are no assignment."""
    topic = talk.new_topic(partitions=2)
    whole = gets(topic, 0)
    bad = {
        "short": b"all",
        "empty": b"\0\0",
        "negative version": b"\xff\xff" + whole[2:],
        "long array": b"\0\0" + b"\x7f\xff\xff\xff",
        "negative array": b"\0\0" + b"\xff\xff\xff\xff" + NO_USER_DATA,
        "null topic": b"\0\0" + b"\0\0\0\1" + b"\xff\xff" + bytes(4) + NO_USER_DATA,
        "no user data": whole[:-4],
        "user data of its own": gets(topic, 0, user_data=b"custom"),
        "empty user data": gets(topic, 0, user_data=b""),
        "unknown topic": gets(Topic("nowhere", bytes(16)), 0),
        "twice": gets(topic, 0, 0),
        "later version": gets(topic, 0, version=9),
        "rest": whole + b"rest",
    }
    ready(talk)
    for what, assignment in bad.items():
        group = talk.name(what.replace(" ", "-"))
        member = quiet_join(talk, group, **by(wants(topic)))
        quiet_sync(talk, group, member, {member.id: assignment})
        beat(talk, version, group, **first(topic))
        show(talk, group)
    group = talk.name("connect")
    member = quiet_join(talk, group, protocol_type="connect", **by(wants(topic)))
    quiet_sync(talk, group, member, {member.id: whole})
    beat(talk, version, group, **first(topic))


@group_case("ConsumerGroupHeartbeat", 1)
def to_a_group_with_bad_subscriptions(talk: Talk, version: int) -> None:
    """A classic group takes any subscription that Kafka can begin a generation with."""
    topic = talk.new_topic(partitions=2)
    ready(talk)
    bad = {
        "empty": b"",
        "one-byte": b"\0",
        "version-only": b"\0\1",
        "no-owned": b"\0\1" + wants(topic, version=0)[2:],
        "no-generation": b"\0\2" + wants(topic, version=1)[2:],
        "no-rack": b"\0\3" + wants(topic, version=2)[2:],
    }
    for what, metadata in bad.items():
        group = talk.name(what)
        member = quiet_join(talk, group, **by(metadata))
        quiet_sync(talk, group, member, {member.id: gets(topic, 0)})
        beat(talk, version, group, **first(topic))


@group_case("ConsumerGroupHeartbeat", 1)
def while_a_classic_group_rebalances(talk: Talk, version: int) -> None:
    """Whoever waits for the rebalance is told to join again, into the new kind of group."""
    group, topic = ready(talk), talk.new_topic(partitions=2)
    old = classic(talk, group, topic, 0, 1)
    joined = begin_rebalance(talk, group, old, **by(wants(topic)))
    beat(talk, version, group, **first(topic))
    joined()
    heartbeat(talk, 4, group, old)


@group_case("SyncGroup", 0, 5)
def to_a_consumer_group(talk: Talk, version: int) -> None:
    """By members that are not classic, in wrong generations, with wrong protocols."""
    group, topic = ready(talk), talk.new_topic(partitions=2)
    old = mixed(talk, group, topic)
    sync(talk, version, group, Member("a", 2))
    sync(talk, version, group, Member("nobody", 2))
    sync(talk, version, group, Member(old.id, 7))
    sync(talk, version, group, old)
    joined = join(talk, 9, group, old.id, **by(wants(topic, 0)))
    old = Member(old.id, joined["generation_id"])
    if version >= 5:
        sync(talk, version, group, old, protocol_type="connect")
        sync(talk, version, group, old, protocol_name="roundrobin")
    sync(talk, version, group, old, {old.id: b"mine"})
    beat(talk, 1, group, epoch=-1)
    leave(talk, 5, group, {"member_id": old.id})
    sync(talk, version, group, old)


@group_case("Heartbeat", 0, 4)
def to_a_consumer_group_of_both_kinds(talk: Talk, version: int) -> None:
    """By members that are not classic, and in wrong generations."""
    group, topic = ready(talk), talk.new_topic(partitions=2)
    old = mixed(talk, group, topic)
    heartbeat(talk, version, group, Member("a", 2))
    heartbeat(talk, version, group, Member("nobody", 2))
    heartbeat(talk, version, group, Member(old.id, 7))
    heartbeat(talk, version, group, old)
    beat(talk, 1, group, "b", **first(topic))
    heartbeat(talk, version, group, old)


@group_case("LeaveGroup", 0, 5)
def from_a_consumer_group_of_both_kinds(talk: Talk, version: int) -> None:
    """The last member of the new kind can be removed by its name: a classic group is left."""
    group, topic = ready(talk), talk.new_topic(partitions=2)
    old = mixed(talk, group, topic)
    leave(talk, version, group, {"member_id": "nobody"})
    leave(talk, version, group, {"member_id": "a"})
    show(talk, group)
    describe(talk, group)
    heartbeat(talk, 4, group, old)


@group_case("OffsetCommit", 8, 9)
def of_a_classic_member_in_a_consumer_group(talk: Talk, version: int) -> None:
    """Its generation counts, in any version; an older one for what it had since then."""
    group, topic = ready(talk), talk.new_topic(partitions=2)
    old = mixed(talk, group, topic)
    commit(talk, version, group, topic, old)
    commit(talk, version, group, topic, Member(old.id, 7))
    joined = join(talk, 9, group, old.id, **by(wants(topic, 0)))
    commit(talk, version, group, topic, Member(old.id, joined["generation_id"]), 5)
    commit(talk, version, group, topic, old, 6)
    commit(talk, version, group, topic, Member(old.id, 0), 7)
    fetch(talk, group, topic)


@group_case("OffsetFetch", 9)
def of_a_classic_member_in_a_consumer_group_by_generation(talk: Talk, version: int) -> None:
    """A wrong generation has another code than a wrong epoch."""
    group, topic = ready(talk), talk.new_topic(partitions=2)
    old = mixed(talk, group, topic)
    asked = [{"name": topic.name, "partition_indexes": [0]}]
    for member_id, generation in ((old.id, 1), (old.id, 7), ("a", 7)):
        wanted = {"group_id": group, "topics": asked}
        who = {"member_id": member_id, "member_epoch": generation}
        talk.ask("OffsetFetch", version, groups=[{**wanted, **who}])


@group_case("ConsumerGroupHeartbeat", 1)
def of_a_member_that_was_classic(talk: Talk, version: int) -> None:
    """The same id in the new protocol: it is one of the new kind from now on."""
    group, topic = ready(talk), talk.new_topic(partitions=2)
    old = mixed(talk, group, topic)
    beat(talk, version, group, old.id, 1, **owned(topic, 0, 1))
    show(talk, group)
    heartbeat(talk, 4, group, old)
    beat(talk, version, group, old.id, **first(topic))
    beat(talk, version, group, "a", -1)
    show(talk, group)
