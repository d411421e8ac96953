"""One partition's next state: who stays eligible, and what one record changes together."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.unit.core.controller.cluster import KEY, roles, state
from tidelog.core.controller.election import Election, ElectionRules
from tidelog.core.controller.partition_change import PartitionTarget, decide_change
from tidelog.core.metadata.cluster import PartitionState, partition_after


def after(
    before: PartitionState,
    request: PartitionTarget,
    *,
    alive: Sequence[int] = (1, 2, 3),
    minimum: int = 2,
    keeps_eligible: bool = True,
) -> PartitionState:
    rules = ElectionRules(
        is_acceptable=lambda replica: replica in alive,
        min_insync_replicas=minimum,
        keeps_eligible=keeps_eligible,
    )
    decision = decide_change(KEY, before, request, rules)
    assert decision is not None
    changed = partition_after(before, decision.record)
    changed.check()
    return changed


def test_nothing_is_written_when_nothing_would_change() -> None:
    rules = ElectionRules(is_acceptable=lambda _: True, min_insync_replicas=2, keeps_eligible=True)

    assert decide_change(KEY, state(1, 2, 3), PartitionTarget(isr=(1, 2, 3)), rules) is None


def test_a_shrink_above_the_minimum_leaves_nobody_eligible_and_the_leader_epoch_as_it_is() -> None:
    changed = after(state(1, 2, 3), PartitionTarget(isr=(1, 3)))

    assert roles(changed) == (1, (1, 3), (), ())
    assert (changed.leader_epoch, changed.partition_epoch) == (0, 1)


@pytest.mark.scenario("X-6")
def test_whoever_leaves_below_the_minimum_stays_eligible() -> None:
    changed = after(state(1, 2, 3, isr=(1, 2)), PartitionTarget(isr=(1,)))

    assert roles(changed) == (1, (1,), (2,), ())


def test_eligibility_ends_when_the_minimum_is_reached_again() -> None:
    changed = after(state(1, 2, 3, isr=(1,), eligible=(2,)), PartitionTarget(isr=(1, 3)))

    assert roles(changed) == (1, (1, 3), (), ())


def test_the_last_in_sync_stays_eligible_and_is_remembered_as_leader() -> None:
    changed = after(state(1, 2, 3, isr=(1,), eligible=(2,)), PartitionTarget(isr=()), alive=(3,))

    assert roles(changed) == (None, (), (1, 2), (1,))
    assert changed.leader_epoch == 1


def test_the_leader_of_yore_is_remembered_only_once() -> None:
    offline = state(1, 2, 3, isr=(), leader=None, eligible=(1, 2), last_known=(1,))

    assert roles(after(offline, PartitionTarget(lost=2), alive=())) == (None, (), (1,), (1,))


def test_an_eligible_replica_comes_back_alone_and_the_others_stay_eligible() -> None:
    offline = state(1, 2, 3, isr=(), leader=None, eligible=(1, 2), last_known=(1,))

    changed = after(offline, PartitionTarget(), alive=(2,))

    assert roles(changed) == (2, (2,), (1,), ())
    assert not changed.leader_is_recovering


def test_an_eligible_replica_that_is_enough_alone_leaves_nobody_eligible() -> None:
    """The minimum was lowered while nobody led: from now on it commits without the others."""
    offline = state(1, 2, 3, isr=(), leader=None, eligible=(1, 2), last_known=(1,))

    changed = after(offline, PartitionTarget(), alive=(2,), minimum=1)

    assert roles(changed) == (2, (2,), (), ())


@pytest.mark.scenario("X-7")
def test_who_ended_uncleanly_is_neither_in_sync_nor_eligible() -> None:
    changed = after(state(1, 2, 3, isr=(1, 2)), PartitionTarget(isr=(2,), lost=1), alive=(2, 3))

    assert roles(changed) == (2, (2,), (), ())


def test_the_last_known_leader_leads_alone_and_recovers() -> None:
    offline = state(1, 2, 3, isr=(), leader=None, last_known=(2,))

    changed = after(offline, PartitionTarget(), alive=(1, 2, 3))

    assert roles(changed) == (2, (2,), (), ())
    assert changed.leader_is_recovering
    assert changed.leader_epoch == 1


@pytest.mark.scenario("D3-C7b")
def test_an_unclean_leader_is_alone_in_sync_and_nobody_is_eligible() -> None:
    request = PartitionTarget(isr=(), election=Election.UNCLEAN)

    changed = after(state(1, 2, 3, isr=(1, 2)), request, alive=(3,))

    assert roles(changed) == (3, (3,), (), ())
    assert changed.leader_is_recovering


def test_an_unclean_leader_that_was_eligible_still_recovers() -> None:
    """One in sync is dead but not removed: what it alone has is lost."""
    request = PartitionTarget(election=Election.UNCLEAN)

    changed = after(state(1, 2, 3, isr=(1,), eligible=(2,)), request, alive=(2,))

    assert roles(changed) == (2, (2,), (), ())
    assert changed.leader_is_recovering


def test_without_eligible_replicas_the_last_one_in_sync_stays_there() -> None:
    changed = after(
        state(1, 2, 3, isr=(1,)), PartitionTarget(isr=()), alive=(2, 3), keeps_eligible=False
    )

    assert roles(changed) == (None, (1,), (), ())


def test_a_recovered_leader_says_so_when_it_lets_somebody_in() -> None:
    before = state(1, 2, 3, isr=(1,), recovering=True)

    changed = after(before, PartitionTarget(isr=(1, 2), leader_is_recovering=False))

    assert not changed.leader_is_recovering
