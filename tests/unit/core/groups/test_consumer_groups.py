"""KIP-848 groups: joining, reconciling, leaving, and who is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.core.groups.given_consumers import (
    GROUP,
    REBALANCE_MS,
    Client,
    ConsumersUnderTest,
    KnownTopics,
    as_topics,
    settle,
)
from tidelog.core.groups.consumer_group import ConsumerGroupState
from tidelog.core.groups.consumer_member import MemberState
from tidelog.core.model.errors import ErrorCode

E, SESSION_MS = ErrorCode, 45_000


def two_members() -> tuple[ConsumersUnderTest, Client, Client]:
    world = ConsumersUnderTest()
    first, second = Client(world, "a"), Client(world, "b")
    settle(first, second)
    return world, first, second


def test_the_first_member_gets_everything_at_once() -> None:
    world = ConsumersUnderTest()
    answer = world.beat("a")
    assert answer.error_code == E.NONE
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("a", 2, 5_000)
    assert answer.assignment is not None
    assert [it.partitions for it in answer.assignment.topic_partitions] == [[0, 1, 2, 3]]
    assert world.group().state is ConsumerGroupState.STABLE


def test_a_partition_moves_only_when_its_owner_has_given_it_back() -> None:
    world = ConsumersUnderTest()
    first, second = Client(world, "a"), Client(world, "b")
    first.beat()
    second.beat()
    assert second.owned == set(), "the first member has not even heard of it"
    assert world.group().state is ConsumerGroupState.RECONCILING

    told = world.beat("a", 2)
    assert told.assignment is not None and told.member_epoch == 2, "still in its old epoch"
    assert [it.partitions for it in told.assignment.topic_partitions] == [[0, 1]]
    assert world.group().members["a"].state is MemberState.UNREVOKED_PARTITIONS
    second.beat()
    assert second.owned == set(), "revocation was asked for, not acknowledged"

    first.owned = world.topics.partitions("t") - {(k, i) for k, i in first.owned if i > 1}
    first.beat()
    assert first.member_epoch == 3
    second.beat()
    assert {index for _, index in second.owned} == {2, 3}
    assert world.group().state is ConsumerGroupState.STABLE


def test_an_assignment_is_sent_once_and_to_those_who_ask_in_full() -> None:
    world = ConsumersUnderTest()
    world.beat("a")
    assert world.beat("a", 2).assignment is None
    full = {"rebalance_timeout_ms": 1, "subscribed_topic_names": ["t"], "topic_partitions": []}
    assert world.beat("a", 2, **full).assignment is not None


def test_members_that_leave_hand_over_their_partitions() -> None:
    world, first, second = two_members()
    answer = second.leave()
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (E.NONE, "b", -1)
    settle(first)
    assert first.owned == world.topics.partitions("t")
    first.leave()
    assert world.group().state is ConsumerGroupState.EMPTY


def test_a_silent_member_is_fenced_after_its_session() -> None:
    world, first, second = two_members()
    for _ in range(9):
        world.pass_time(SESSION_MS // 9)
        first.beat()
    assert list(world.group().members) == ["a"]
    settle(first)
    assert first.owned == world.topics.partitions("t")
    assert second.beat() == E.UNKNOWN_MEMBER_ID


def test_a_member_that_gives_nothing_back_is_fenced_after_its_rebalance_timeout() -> None:
    world = ConsumersUnderTest()
    world.beat("a")
    world.beat("b")
    everything = as_topics(world.topics.partitions("t"))
    for _ in range(0, REBALANCE_MS - 1, 10_000):
        assert world.beat("a", 2, topic_partitions=everything).error_code == E.NONE
        world.beat("b", world.group().members["b"].member_epoch)
        world.pass_time(10_000)
    assert world.beat("a", 2, topic_partitions=everything).error_code == E.UNKNOWN_MEMBER_ID
    assert list(world.group().members) == ["b"]


@pytest.mark.parametrize(
    ("member", "member_epoch", "fields", "error"),
    [
        ("a", 3, {}, E.NONE),
        ("a", 4, {}, E.FENCED_MEMBER_EPOCH),
        ("a", 1, {}, E.FENCED_MEMBER_EPOCH),
        ("a", 2, {}, E.FENCED_MEMBER_EPOCH),
        ("a", 2, {"topic_partitions": []}, E.NONE),
        ("a", 0, {}, E.NONE),
        ("c", 3, {}, E.UNKNOWN_MEMBER_ID),
        ("c", -1, {}, E.UNKNOWN_MEMBER_ID),
        ("c", 0, {}, E.NONE),
        ("a", 3, {"instance_id": "i"}, E.UNKNOWN_MEMBER_ID),
        ("a", 3, {"group_id": "other"}, E.GROUP_ID_NOT_FOUND),
        ("a", -1, {"group_id": "other"}, E.GROUP_ID_NOT_FOUND),
    ],
)
def test_who_is_refused(
    member: str, member_epoch: int, fields: dict[str, Any], error: ErrorCode
) -> None:
    """Member a is in epoch 3 and was in 2; it has two partitions."""
    world = ConsumersUnderTest()
    settle(Client(world, "a"), Client(world, "b"))
    assert world.group().members["a"].member_epoch == 3
    answer = world.beat(member, member_epoch, **fields)
    assert answer.error_code == error
    assert (answer.error_message is None) == (error is E.NONE)


def test_a_full_group_takes_nobody_but_its_members() -> None:
    world = ConsumersUnderTest(size_max=1)
    for member, error in (("a", E.NONE), ("b", E.GROUP_MAX_SIZE_REACHED), ("a", E.NONE)):
        assert world.beat(member).error_code == error


def test_a_member_that_missed_an_answer_may_repeat_its_epoch_only_with_what_it_has() -> None:
    world, first, _ = two_members()
    late = {"topic_partitions": as_topics(first.owned)}
    assert world.beat("a", 2, **late).error_code == E.NONE
    others = world.topics.partitions("t") - first.owned
    assert (
        world.beat("a", 2, topic_partitions=as_topics(others)).error_code == E.FENCED_MEMBER_EPOCH
    )


# Static members


def test_a_static_member_comes_back_to_its_partitions() -> None:
    world = ConsumersUnderTest()
    first, second = Client(world, "a", instance_id="i"), Client(world, "b")
    settle(first, second)
    had, group_epoch = set(first.owned), world.group().group_epoch
    assert first.leave(-2).member_epoch == -2
    second.beat()
    assert world.group().group_epoch == group_epoch, "nobody is asked to move"

    back = Client(world, "a2", instance_id="i")
    assert back.beat() == E.NONE
    assert (back.owned, world.group().group_epoch) == (had, group_epoch)
    assert set(world.group().members) == {"a2", "b"}
    assert first.beat() == E.UNRELEASED_INSTANCE_ID
    assert world.beat("a", group_epoch, instance_id="i").error_code == E.FENCED_INSTANCE_ID
    assert world.beat("a", -1, instance_id="i").error_code == E.FENCED_INSTANCE_ID


def test_a_static_member_that_stays_away_is_fenced() -> None:
    world = ConsumersUnderTest()
    first = Client(world, "a", instance_id="i")
    settle(first)
    first.leave(-2)
    world.pass_time(SESSION_MS)
    assert world.group().state is ConsumerGroupState.EMPTY


# Subscriptions and topics


def test_a_topic_that_grows_comes_or_goes_is_assigned_anew() -> None:
    world = ConsumersUnderTest(KnownTopics(t=2))
    client = Client(world, "a", topics=["t", "later"])
    settle(client)
    changes: list[Callable[[], None]] = [
        lambda: world.topics.grow("t", 3),
        lambda: world.topics.create("later", 2),
        lambda: world.topics.delete("t"),
    ]
    for change in changes:
        group_epoch = world.group().group_epoch
        change()
        settle(client)
        assert world.group().group_epoch == group_epoch + 1
        assert client.owned == world.topics.partitions("t", "later")


def test_a_topic_nobody_reads_changes_nothing() -> None:
    world = ConsumersUnderTest()
    client = Client(world, "a")
    settle(client)
    group_epoch = world.group().group_epoch
    world.topics.create("other", 1)
    settle(client)
    assert world.group().group_epoch == group_epoch


def test_a_subscription_that_is_taken_back_is_revoked() -> None:
    world = ConsumersUnderTest(KnownTopics(t=1, u=1))
    client = Client(world, "a", topics=["t", "u"])
    settle(client)
    answer = world.beat(
        "a",
        client.member_epoch,
        subscribed_topic_names=["u"],
        topic_partitions=as_topics(client.owned),
    )
    assert answer.assignment is not None
    assert len(answer.assignment.topic_partitions) == 1
    client.owned = world.topics.partitions("u")
    settle(client)
    assert client.owned == world.topics.partitions("u")


def test_between_two_assignments_passes_the_interval() -> None:
    world = ConsumersUnderTest(assignment_interval_ms=1_000)
    world.beat("a")
    world.pass_time(999)
    second = world.beat("b")
    assert second.member_epoch == 2 and world.group().state is ConsumerGroupState.ASSIGNING
    world.pass_time(1)
    assert world.beat("b", 2).member_epoch == 3


def test_most_members_choose_the_assignor() -> None:
    world = ConsumersUnderTest(KnownTopics(t=3, u=3))
    members = [Client(world, name, topics=["t", "u"], assignor="range") for name in ("a", "b")]
    members.append(Client(world, "c", topics=["t", "u"], assignor="uniform"))
    settle(*members)
    assert [sorted(index for _, index in it.owned) for it in members] == [[0, 0], [1, 1], [2, 2]]


# Regular expressions


def test_a_regex_is_looked_up_beside_the_loop_and_then_assigned() -> None:
    world = ConsumersUnderTest(KnownTopics(orders_eu=1, orders_us=2, other=1))
    client = Client(world, "a", topics=[], regex="orders_.*")
    client.beat()
    assert client.owned == set()
    settle(client)
    assert client.owned == world.topics.partitions("orders_eu", "orders_us")

    world.topics.create("orders_asia", 1)
    settle(client, rounds=13)
    assert client.owned == world.topics.partitions("orders_eu", "orders_us", "orders_asia")

    client.leave()
    assert world.group().regexes == {}


def test_a_regex_that_is_none_is_refused() -> None:
    world = ConsumersUnderTest()
    answer = world.beat("a", subscribed_topic_names=None, subscribed_topic_regex="a(")
    assert answer.error_code == E.INVALID_REGULAR_EXPRESSION
    assert answer.error_message is not None and "missing closing )" in answer.error_message
    assert world.log == []


# The log


def test_a_successor_knows_what_the_log_knows() -> None:
    world, first, second = two_members()
    third = Client(world, "c", topics=[], regex="t", instance_id="i")
    settle(first, second, third)
    old, new = world.group(), world.successor().group()
    for name in (
        "group_epoch",
        "assignment_epoch",
        "members",
        "target",
        "regexes",
        "static_members",
    ):
        assert getattr(old, name) == getattr(new, name), name


def test_a_deleted_group_leaves_tombstones_for_every_key() -> None:
    world, first, second = two_members()
    assert world.shard.refuse_deletion(GROUP) is E.NON_EMPTY_GROUP
    first.leave()
    second.leave()
    world.apply(world.shard.delete_group(GROUP))
    assert world.shard.consumer.get(GROUP) is None
    values = {record.key: record.value for record in world.log}
    assert set(values.values()) == {None}
    assert world.successor().shard.consumer.get(GROUP) is None
