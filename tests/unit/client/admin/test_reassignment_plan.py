"""Plans of reassignments: few moves, even loads, racks apart."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.client.admin.reassignment_plan import (
    Replicas,
    TooFewBrokers,
    plan_reassignment,
)
from tidelog.core.model.ids import TopicPartition


def topic(*replicas: Replicas) -> dict[TopicPartition, Replicas]:
    return {TopicPartition("t", index): each for index, each in enumerate(replicas)}


def brokers(*ids: int) -> dict[int, str | None]:
    return dict.fromkeys(ids)


def planned(
    current: dict[TopicPartition, Replicas], racks: dict[int, str | None], **rest: object
) -> list[Replicas]:
    plan = plan_reassignment(current, brokers=racks, **rest)  # type: ignore[arg-type]
    assert not isinstance(plan, TooFewBrokers), plan
    return list(plan.values())


def test_what_stands_well_stays_in_its_place() -> None:
    assert planned(topic((1, 2, 3)), brokers(1, 2, 4)) == [(1, 2, 4)]
    assert planned(topic((3, 2, 1)), brokers(1, 2, 3, 4)) == [(3, 2, 1)]


def test_leaders_and_replicas_are_even_on_new_brokers() -> None:
    current = topic(*[(1, 2, 3), (2, 3, 1), (3, 1, 2)] * 4)

    after = planned(current, brokers(4, 5, 6))

    assert Counter(replicas[0] for replicas in after) == {4: 4, 5: 4, 6: 4}
    assert Counter(each for replicas in after for each in replicas) == {4: 12, 5: 12, 6: 12}


def test_a_free_place_goes_to_another_rack_first() -> None:
    racks: dict[int, str | None] = {1: "a", 2: "b", 4: "a", 5: "c", 6: "b"}

    assert planned(topic((1, 2, 3)), racks) == [(1, 2, 5)]


def test_what_others_hold_is_counted() -> None:
    assert planned(topic((1, 9)), brokers(1, 2, 3), elsewhere=[(2, 1), (2, 1)]) == [(1, 3)]


def test_keepers_keep_and_get_nothing() -> None:
    plan = planned(topic((1, 2, 9), (1, 3, 9)), brokers(1, 3, 4), keepers={2: None})

    assert plan == [(1, 2, 4), (1, 3, 4)]


@pytest.mark.parametrize(("factor", "after"), [(2, (2, 3)), (1, (2,)), (4, (2, 3, 4, 5))])
def test_the_number_of_replicas_can_change(factor: int, after: Replicas) -> None:
    current = topic((2, 3, 9) if factor < 4 else (2, 3))

    assert planned(current, brokers(2, 3, 4, 5), replication_factor=factor) == [after]


def test_too_few_brokers_are_named_with_the_partition() -> None:
    plan = plan_reassignment(topic((1, 2), (1, 2, 3)), brokers=brokers(1, 2))

    assert plan == TooFewBrokers(TopicPartition("t", 1), 3, 2)


@given(
    st.lists(
        st.lists(st.integers(1, 9), min_size=1, max_size=3, unique=True).map(tuple),
        min_size=1,
        max_size=20,
    ),
    st.sets(st.integers(1, 9), min_size=3),
)
def test_any_plan_is_sound(current: list[Replicas], allowed: set[int]) -> None:
    for before, after in zip(current, planned(topic(*current), brokers(*allowed)), strict=True):
        assert len(set(after)) == len(after) == len(before)
        assert set(after) <= allowed
        assert set(before) & allowed <= set(after), "no needless move"
