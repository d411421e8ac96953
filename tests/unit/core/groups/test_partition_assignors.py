"""What assignors promise: every partition once, to a subscriber, evenly, and few moves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis.strategies import dictionaries, frozensets, integers, sampled_from

from tidelog.core.groups.partition_assignors import (
    ASSIGNORS,
    AssignableMember,
    Target,
    assign_range,
    assign_uniform,
)
from tidelog.core.model.ids import TopicId

IDS = tuple(TopicId(bytes([number]) * 16) for number in range(1, 5))
T, U = IDS[0], IDS[1]
subscriptions = dictionaries(sampled_from("abcdefg"), frozensets(sampled_from(IDS)), max_size=7)
sizes = dictionaries(sampled_from(IDS), integers(1, 9)).map(
    lambda some: {topic_id: some.get(topic_id, 2) for topic_id in IDS}
)


def members(
    topics: dict[str, frozenset[TopicId]], target: Target | None = None
) -> dict[str, AssignableMember]:
    return {
        name: AssignableMember(
            instance_id=None, topics=each, target=(target or {}).get(name, frozenset())
        )
        for name, each in topics.items()
    }


@pytest.mark.parametrize("name", ASSIGNORS)
@given(before=subscriptions, after=subscriptions, counts=sizes)
def test_each_partition_has_one_subscriber(
    name: str,
    before: dict[str, frozenset[TopicId]],
    after: dict[str, frozenset[TopicId]],
    counts: dict[TopicId, int],
) -> None:
    assign = ASSIGNORS[name]
    target = assign(members(after, assign(members(before), counts)), counts)
    given_away = [partition for each in target.values() for partition in each]
    read = frozenset[TopicId]().union(*after.values())
    assert sorted(given_away) == sorted((it, at) for it in read for at in range(counts[it]))
    assert all(it in after[member] for member, each in target.items() for it, _ in each)


@given(names=frozensets(sampled_from("abcdefg"), min_size=1), counts=sizes)
def test_uniform_is_even_where_all_read_the_same(
    names: frozenset[str], counts: dict[TopicId, int]
) -> None:
    target = assign_uniform(members(dict.fromkeys(names, frozenset(IDS))), counts)
    loads = [len(each) for each in target.values()]
    assert max(loads) - min(loads) <= 1


@given(names=frozensets(sampled_from("abcdef"), min_size=1), counts=sizes)
def test_uniform_moves_no_more_than_a_new_member_gets(
    names: frozenset[str], counts: dict[TopicId, int]
) -> None:
    topics = dict.fromkeys(sorted(names), frozenset(IDS))
    before = assign_uniform(members(topics), counts)
    again = assign_uniform(members(topics, before), counts)
    assert again == before
    after = assign_uniform(members({**topics, "new": frozenset(IDS)}, before), counts)
    assert all(after[name] <= before[name] for name in names)


def test_range_gives_neighbours_and_the_first_ones_more() -> None:
    target = assign_range(members(dict.fromkeys("ab", frozenset((T, U)))), {T: 3, U: 1})
    assert target == {"a": {(T, 0), (T, 1), (U, 0)}, "b": {(T, 2)}}


def test_range_takes_static_members_first() -> None:
    dynamic = AssignableMember(instance_id=None, topics={T}, target=frozenset())
    static = AssignableMember(instance_id="z", topics={T}, target=frozenset())
    assert assign_range({"a": dynamic, "b": static}, {T: 1}) == {"a": set(), "b": {(T, 0)}}


def test_uniform_evens_out_over_overlapping_subscriptions() -> None:
    both, one = frozenset((T, U)), frozenset((T,))
    target = assign_uniform(members({"a": one, "b": both}), {T: 4, U: 2})
    assert {name: len(each) for name, each in target.items()} == {"a": 3, "b": 3}
