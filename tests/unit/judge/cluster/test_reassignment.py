"""Reassignments: what the judge condemns, and what it lets pass."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pytest

from tidelog.judge.cluster.facts import ObservedPartition
from tidelog.judge.cluster.reassignment import replicas_moved


def partition(
    *replicas: int,
    isr: Collection[int] = (1, 2),
    adding: Collection[int] = (),
    removing: Collection[int] = (),
    leader_epoch: int = 0,
) -> ObservedPartition:
    return ObservedPartition(
        partition="t-0",
        replicas=replicas,
        isr=frozenset(isr),
        eligible=frozenset(),
        last_known_leaders=(),
        leader=min(isr),
        leader_epoch=leader_epoch,
        partition_epoch=1,
        minimum=1,
        allows_unclean=False,
        adding=frozenset(adding),
        removing=frozenset(removing),
    )


SETTLED = partition(1, 2)
MOVING = partition(1, 3, 2, adding=(3,), removing=(2,))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(SETTLED, MOVING, id="begun"),
        pytest.param(MOVING, partition(1, 3, isr=(1, 3), leader_epoch=1), id="ended"),
        pytest.param(MOVING, partition(1, 2, leader_epoch=1), id="cancelled"),
        pytest.param(SETTLED, partition(2, 1), id="another order"),
        pytest.param(SETTLED, partition(1, isr=(1,), leader_epoch=1), id="fewer"),
        pytest.param(SETTLED, replace(SETTLED, isr=frozenset({1})), id="no move at all"),
    ],
)
def test_what_is_in_order_passes(before: ObservedPartition, after: ObservedPartition) -> None:
    assert list(replicas_moved(before, after)) == []


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        (SETTLED, partition(1, 2, 3), "not on its way"),
        (SETTLED, replace(MOVING, isr=frozenset({1, 2, 3})), "nothing yet"),
        (MOVING, partition(1, 3, isr=(1, 3)), "within a leader epoch"),
        (
            MOVING,
            partition(1, 3, isr=(1, 3), adding=(3,), leader_epoch=1),
            "before the end",
        ),
        (MOVING, partition(1, 3, isr=(1,), leader_epoch=1), "not in sync"),
        (MOVING, partition(1, 2, 3, leader_epoch=1), "not in sync"),
    ],
)
def test_a_step_that_was_skipped_is_condemned(
    before: ObservedPartition, after: ObservedPartition, what: str
) -> None:
    (found,) = replicas_moved(before, after)

    assert what in str(found.evidence["what"])
