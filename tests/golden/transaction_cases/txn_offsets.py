"""TxnOffsetCommit, and OffsetFetch while and after offsets are pending."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.golden.cases.registry import transaction_case
from tests.golden.group_cases.consumer_groups import beat, first
from tests.golden.group_cases.members import Member, ready, stable
from tests.golden.group_cases.offsets import BY_ID_FROM, GROUPS_FROM, METADATA_MAX, commit
from tests.golden.talk import Talk, Topic
from tests.golden.transaction_cases.producer import (
    ABORT,
    CLASSIC_END,
    COMMIT,
    NEW_END,
    Producer,
    add_group,
    describe,
    end,
    end_and_settle,
    init,
    nobody,
)

IMPLICIT_FROM = 5
MEMBERS_FROM = 3
VERSIONS = (0, 1, 2, 3, 4, 5)


def txn_commit(
    talk: Talk,
    version: int,
    producer: Producer,
    group: str,
    *offsets: dict[str, Any],
    member: Member | None = None,
) -> Any:
    """TxnOffsetCommit of these topics."""
    named: dict[str, Any] = {}
    if member is not None:
        named = {"generation_id": member.generation, "member_id": member.id}
        named |= {"group_instance_id": member.instance} if member.instance else {}
    return talk.ask_patiently(
        "TxnOffsetCommit",
        version,
        transactional_id=producer.name,
        group_id=group,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        topics=list(offsets),
        **named,
    )


def of(topic: str, offset: int = 5, *, partition: int = 0, metadata: str | None = "m") -> Any:
    """One offset of one partition."""
    one = {
        "partition_index": partition,
        "committed_offset": offset,
        "committed_metadata": metadata,
    }
    return {"name": topic, "partitions": [one]}


def fetch(talk: Talk, version: int, group: str, topic: Topic, *, stable_only: bool) -> Any:
    """OffsetFetch of the first two partitions; not repeated, since what is pending is the point."""
    named = {"topic_id": topic.id} if version >= BY_ID_FROM else {"name": topic.name}
    topics = [{**named, "partition_indexes": [0, 1]}]
    if version < GROUPS_FROM:
        asked: dict[str, Any] = {"group_id": group, "topics": topics}
    else:
        asked = {"groups": [{"group_id": group, "topics": topics}]}
    return talk.ask("OffsetFetch", version, require_stable=stable_only, **asked)


def prepared(talk: Talk, version: int) -> tuple[str, Topic, Producer]:
    """A group, a topic, and a producer whose transaction has the group where it must."""
    group, topic = ready(talk), talk.new_topic(partitions=2)
    producer = init(talk, 5)
    if version < IMPLICIT_FROM:
        add_group(talk, 4, producer, group)
    return group, topic, producer


def end_version(version: int) -> int:
    return NEW_END if version >= IMPLICIT_FROM else CLASSIC_END


@transaction_case("TxnOffsetCommit", *VERSIONS)
def and_commit(talk: Talk, version: int) -> None:
    """Pending offsets count when their transaction commits."""
    group, topic, producer = prepared(talk, version)
    txn_commit(talk, version, producer, group, of(topic.name))
    describe(talk, producer)
    fetch(talk, 9, group, topic, stable_only=False)
    fetch(talk, 9, group, topic, stable_only=True)
    end_and_settle(talk, end_version(version), producer, COMMIT)
    fetch(talk, 9, group, topic, stable_only=True)


@transaction_case("TxnOffsetCommit", 0, 4, 5)
def and_abort(talk: Talk, version: int) -> None:
    """What was committed before stays."""
    group, topic, producer = prepared(talk, version)
    commit(talk, 9, group, topic, offset=3)
    txn_commit(talk, version, producer, group, of(topic.name))
    fetch(talk, 9, group, topic, stable_only=False)
    end_and_settle(talk, end_version(version), producer, ABORT)
    fetch(talk, 9, group, topic, stable_only=True)


@transaction_case("TxnOffsetCommit", 0, 3, 4, 5)
def of_a_group_that_was_not_added(talk: Talk, version: int) -> None:
    """Up to version 4 the group must be in the transaction; 5 adds it."""
    group, topic = ready(talk), talk.new_topic(partitions=2)
    producer = init(talk, 5)
    txn_commit(talk, version, producer, group, of(topic.name))
    describe(talk, producer)
    fetch(talk, 9, group, topic, stable_only=True)


@transaction_case("TxnOffsetCommit", 0, 5)
def of_what_does_not_exist(talk: Talk, version: int) -> None:
    """A partition too many, and a topic that is not there."""
    group, topic, producer = prepared(talk, version)
    missing = of(talk.name("missing"))
    txn_commit(talk, version, producer, group, of(topic.name, partition=7), missing)
    txn_commit(talk, version, producer, group, of(topic.name), missing)
    describe(talk, producer)
    end_and_settle(talk, end_version(version), producer, COMMIT)
    fetch(talk, 9, group, topic, stable_only=True)


@transaction_case("TxnOffsetCommit", 0, 5)
def of_nothing(talk: Talk, version: int) -> None:
    """No topic at all."""
    group, _, producer = prepared(talk, version)
    txn_commit(talk, version, producer, group)
    describe(talk, producer)


@transaction_case("TxnOffsetCommit", 0, 5)
def with_metadata_that_is_too_long(talk: Talk, version: int) -> None:
    """One character more than is allowed, as many as are, none."""
    group, topic, producer = prepared(talk, version)
    long = of(topic.name, metadata="x" * (METADATA_MAX + 1))
    txn_commit(talk, version, producer, group, long)
    txn_commit(talk, version, producer, group, of(topic.name, metadata="x" * METADATA_MAX))
    txn_commit(talk, version, producer, group, of(topic.name, partition=1, metadata=None))
    end_and_settle(talk, end_version(version), producer, COMMIT)
    fetch(talk, 9, group, topic, stable_only=True)


@transaction_case("TxnOffsetCommit", 0, 2, 5)
def of_the_wrong_producer(talk: Talk, version: int) -> None:
    """Older and newer epochs, another producer id, an unknown transactional id."""
    init(talk, 5)
    group, topic, producer = prepared(talk, version)
    txn_commit(talk, version, producer.with_epoch(0), group, of(topic.name))
    txn_commit(talk, version, producer.with_epoch(9), group, of(topic.name))
    other = replace(producer, id=talk.new_producer_id())
    txn_commit(talk, version, other, group, of(topic.name))
    txn_commit(talk, version, nobody(talk), group, of(topic.name))
    txn_commit(talk, version, replace(producer, name=""), group, of(topic.name))


@transaction_case("TxnOffsetCommit", 0, 5)
def after_a_fencing(talk: Talk, version: int) -> None:
    """Another producer has the transactional id; the zombie's offsets are gone with its epoch."""
    group, topic, zombie = prepared(talk, version)
    txn_commit(talk, version, zombie, group, of(topic.name))
    producer = init(talk, 5)
    txn_commit(talk, version, zombie, group, of(topic.name, 6))
    if version < IMPLICIT_FROM:
        add_group(talk, 4, producer, group)
    txn_commit(talk, version, producer, group, of(topic.name, 7))
    end_and_settle(talk, end_version(version), producer, COMMIT)
    fetch(talk, 9, group, topic, stable_only=True)


@transaction_case("TxnOffsetCommit", 0, 4, 5)
def after_the_end(talk: Talk, version: int) -> None:
    """A late offset with the epoch of the last transaction."""
    group, topic, producer = prepared(talk, version)
    txn_commit(talk, version, producer, group, of(topic.name))
    end_and_settle(talk, end_version(version), producer, COMMIT)
    txn_commit(talk, version, producer, group, of(topic.name, 9))
    fetch(talk, 9, group, topic, stable_only=True)


@transaction_case("TxnOffsetCommit", 3, 4, 5)
def by_a_member(talk: Talk, version: int) -> None:
    """A member in its generation may commit; strangers and other generations may not."""
    group, topic, producer = prepared(talk, version)
    member = stable(talk, group)
    for wrong in (
        replace(member, id="someone"),
        replace(member, generation=0),
        replace(member, generation=7),
        replace(member, generation=-1),
        replace(member, id=""),
    ):
        txn_commit(talk, version, producer, group, of(topic.name), member=wrong)
    txn_commit(talk, version, producer, group, of(topic.name), member=member)
    end_and_settle(talk, end_version(version), producer, COMMIT)
    fetch(talk, 9, group, topic, stable_only=True)


@transaction_case("TxnOffsetCommit", 0, 3, 5)
def by_nobody_to_a_group_with_members(talk: Talk, version: int) -> None:
    """Without member and generation there is no check of them."""
    group, topic, producer = prepared(talk, version)
    stable(talk, group)
    txn_commit(talk, version, producer, group, of(topic.name))
    end_and_settle(talk, end_version(version), producer, COMMIT)
    fetch(talk, 9, group, topic, stable_only=True)


@transaction_case("TxnOffsetCommit", 3, 5)
def by_a_member_of_a_group_that_is_not_there(talk: Talk, version: int) -> None:
    """A generation of which the coordinator knows nothing."""
    group, topic, producer = prepared(talk, version)
    member = Member("someone", 3)
    txn_commit(talk, version, producer, group, of(topic.name), member=member)
    stranger = Member("someone", -1)
    txn_commit(talk, version, producer, group, of(topic.name), member=stranger)


@transaction_case("TxnOffsetCommit", 3, 5)
def by_a_static_member(talk: Talk, version: int) -> None:
    """Right and wrong instances of a group."""
    group, topic, producer = prepared(talk, version)
    member = stable(talk, group, instance="one")
    for wrong in (replace(member, instance="two"), replace(member, id="someone")):
        txn_commit(talk, version, producer, group, of(topic.name), member=wrong)
    txn_commit(talk, version, producer, group, of(topic.name), member=member)


@transaction_case("TxnOffsetCommit", 0, 3, 5)
def by_a_member_of_a_consumer_group(talk: Talk, version: int) -> None:
    """A KIP-848 group has member epochs in place of generations."""
    group, topic, producer = prepared(talk, version)
    epoch = beat(talk, 1, group, "a", **first(topic))["member_epoch"]
    if version < MEMBERS_FROM:
        txn_commit(talk, version, producer, group, of(topic.name))
        return
    for member in (
        Member("a", epoch - 1),
        Member("a", epoch + 1),
        Member("b", epoch),
        Member("", epoch),
        Member("a", -1),
        Member("", -1),
        Member("a", epoch),
    ):
        txn_commit(talk, version, producer, group, of(topic.name), member=member)
    end_and_settle(talk, end_version(version), producer, COMMIT)
    fetch(talk, 9, group, topic, stable_only=True)


@transaction_case("TxnOffsetCommit", 0, 5)
def of_two_groups(talk: Talk, version: int) -> None:
    """One transaction commits offsets of two groups."""
    group, topic, producer = prepared(talk, version)
    other = talk.name("other")
    if version < IMPLICIT_FROM:
        add_group(talk, 4, producer, other)
    txn_commit(talk, version, producer, group, of(topic.name, 5))
    txn_commit(talk, version, producer, other, of(topic.name, 6))
    end_and_settle(talk, end_version(version), producer, COMMIT)
    fetch(talk, 9, group, topic, stable_only=True)
    fetch(talk, 9, other, topic, stable_only=True)


@transaction_case("TxnOffsetCommit", 0, 5)
def of_one_partition_twice(talk: Talk, version: int) -> None:
    """The last offset of a transaction counts; two producers may both have one pending."""
    group, topic, producer = prepared(talk, version)
    txn_commit(talk, version, producer, group, of(topic.name, 5))
    txn_commit(talk, version, producer, group, of(topic.name, 4))
    second = init(talk, 5, talk.name("second"))
    if version < IMPLICIT_FROM:
        add_group(talk, 4, second, group)
    txn_commit(talk, version, second, group, of(topic.name, 9))
    end_and_settle(talk, end_version(version), producer, COMMIT)
    fetch(talk, 9, group, topic, stable_only=False)
    fetch(talk, 9, group, topic, stable_only=True)
    end_and_settle(talk, end_version(version), second, ABORT)
    fetch(talk, 9, group, topic, stable_only=True)


@transaction_case("TxnOffsetCommit", 0, 5)
def to_the_empty_group(talk: Talk, version: int) -> None:
    """A group without a name."""
    ready(talk)
    topic, producer = talk.new_topic(partitions=2), init(talk, 5)
    txn_commit(talk, version, producer, "", of(topic.name))


@transaction_case("OffsetFetch", 7, 8, 9, 10)
def of_pending_offsets(talk: Talk, version: int) -> None:
    """Who wants stable offsets is refused for those, as long as the transaction is open."""
    group, topic, producer = prepared(talk, 4)
    commit(talk, 9, group, topic, offset=3, partition=1)
    txn_commit(talk, 4, producer, group, of(topic.name))
    fetch(talk, version, group, topic, stable_only=False)
    fetch(talk, version, group, topic, stable_only=True)
    end_and_settle(talk, CLASSIC_END, producer, COMMIT)
    fetch(talk, version, group, topic, stable_only=True)


@transaction_case("OffsetFetch", 8, 9)
def of_all_offsets_while_some_are_pending(talk: Talk, version: int) -> None:
    """Without naming topics."""
    group, topic, producer = prepared(talk, 4)
    commit(talk, 9, group, topic, offset=3, partition=1)
    txn_commit(talk, 4, producer, group, of(topic.name))
    for stable_only in (False, True):
        groups = [{"group_id": group, "topics": None}]
        talk.ask("OffsetFetch", version, groups=groups, require_stable=stable_only)


@transaction_case("OffsetCommit", 9)
def beside_a_pending_offset(talk: Talk, version: int) -> None:
    """A commit outside of the transaction counts at once; the later one of the two wins."""
    group, topic, producer = prepared(talk, 4)
    txn_commit(talk, 4, producer, group, of(topic.name))
    commit(talk, version, group, topic, offset=8)
    fetch(talk, 9, group, topic, stable_only=False)
    fetch(talk, 9, group, topic, stable_only=True)
    end_and_settle(talk, CLASSIC_END, producer, COMMIT)
    fetch(talk, 9, group, topic, stable_only=True)


@transaction_case("OffsetDelete", 0)
def while_an_offset_is_pending(talk: Talk, version: int) -> None:
    """The committed one goes, the pending one comes with the end of its transaction."""
    group, topic, producer = prepared(talk, 4)
    commit(talk, 9, group, topic, offset=3)
    txn_commit(talk, 4, producer, group, of(topic.name))
    topics = [{"name": topic.name, "partitions": [{"partition_index": 0}]}]
    talk.ask("OffsetDelete", version, group_id=group, topics=topics)
    end_and_settle(talk, CLASSIC_END, producer, COMMIT)
    fetch(talk, 9, group, topic, stable_only=True)


@transaction_case("DeleteGroups", 2)
def while_an_offset_is_pending_in_one(talk: Talk, version: int) -> None:
    """A group that has nothing but pending offsets, and one that has others too."""
    group, topic, producer = prepared(talk, 4)
    txn_commit(talk, 4, producer, group, of(topic.name))
    talk.ask("DeleteGroups", version, groups_names=[group])
    commit(talk, 9, group, topic, offset=3)
    talk.ask("DeleteGroups", version, groups_names=[group])
    end(talk, CLASSIC_END, producer, ABORT)
