"""The replicas of a moving partition: what comes, what goes, and when it is over."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.core.controller.reassignment_replicas import ReassignmentReplicas

SETTLED = ReassignmentReplicas((1, 2, 3), (), ())
Ids = tuple[int, ...]


@pytest.mark.parametrize(
    ("target", "replicas", "adding", "removing"),
    [
        ((4, 5, 6), (4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3)),
        ((2, 4, 1), (2, 4, 1, 3), (4,), (3,)),
        ((3, 2, 1), (3, 2, 1), (), ()),
        ((1, 2, 3, 4), (1, 2, 3, 4), (4,), ()),
        ((2,), (2, 1, 3), (), (1, 3)),
    ],
)
def test_the_target_comes_first_and_those_that_go_stay_for_now(
    target: Ids, replicas: Ids, adding: Ids, removing: Ids
) -> None:
    assert SETTLED.toward(target) == (replicas, adding, removing)


@pytest.mark.scenario("X-40")
@pytest.mark.parametrize(
    ("target", "isr", "replicas_after", "isr_after"),
    [
        ((4, 5, 6), (1, 2, 3, 4, 5), None, None),
        ((4, 5, 6), (1, 4, 5, 6), (4, 5, 6), (4, 5, 6)),
        ((1, 2, 4), (1, 4), (1, 2, 4), (1, 4)),
        ((1, 2, 3, 4), (1, 2, 3), None, None),
        # The factor shrinks: all that stay must be in sync.
        ((2, 3), (1, 2), None, None),
        ((2, 3), (1, 2, 3), (2, 3), (2, 3)),
        # Nobody that stays is in sync.
        ((2, 3, 1), (), None, None),
        ((2,), (1, 3), None, None),
    ],
)
def test_it_is_over_when_all_that_come_are_in_sync(
    target: Ids, isr: Ids, replicas_after: Ids | None, isr_after: Ids | None
) -> None:
    completed = SETTLED.toward(target).completed(isr)

    expected = None if replicas_after is None else (replicas_after, isr_after)
    assert completed == expected


def test_a_new_target_over_a_running_one_gives_up_what_was_on_its_way() -> None:
    """4 and 6 came for the first target; 6 is not wanted any more, and goes at either end."""
    moving = SETTLED.toward((4, 5, 6)).toward((4, 5, 7))

    expected = ReassignmentReplicas((4, 5, 7, 1, 2, 3, 6), (4, 5, 6, 7), (1, 2, 3, 6))
    assert moving == expected
    assert moving.original == (1, 2, 3)
    assert moving.completed((1, 4, 5, 6)) is None
    assert moving.completed((1, 4, 5, 6, 7)) == ((4, 5, 7), (4, 5, 7))


def test_going_back_by_a_new_target_ends_at_once() -> None:
    moving = SETTLED.toward((4, 5, 6)).toward((1, 2, 3))

    assert moving.completed((1, 2, 3, 4)) == ((1, 2, 3), (1, 2, 3))


ASSIGNMENTS = st.lists(st.integers(1, 7), min_size=1, max_size=5, unique=True).map(tuple)


@given(ASSIGNMENTS, st.lists(ASSIGNMENTS, min_size=1, max_size=5))
def test_however_often_the_target_changes_both_ends_are_known(
    first: Ids, targets: list[Ids]
) -> None:
    moving = ReassignmentReplicas(first, (), ())
    for target in targets:
        moving = moving.toward(target)
        assert len(set(moving.replicas)) == len(moving.replicas)
        assert moving.target == target
        assert set(moving.original) == set(first)
        completed = moving.completed(moving.replicas)
        assert completed is None or completed == (target, target)
        assert (completed is None) == (not moving.is_in_progress)
