"""The in-sync set between proposal and decision: what counts is never too small."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.core.replication.in_sync import InSync, Proposal


def in_sync(*committed: int) -> InSync:
    return InSync(committed=committed, leader_epoch=4, partition_epoch=9)


@pytest.mark.scenario("X-11")
def test_a_proposed_member_counts_at_once() -> None:
    state = in_sync(1, 2)
    proposal = state.propose((1, 2, 3))
    assert proposal == Proposal((1, 2, 3), leader_epoch=4, partition_epoch=9)
    assert state.maximal == {1, 2, 3}
    assert state.committed == (1, 2)


@pytest.mark.scenario("X-12")
def test_a_member_that_is_to_leave_counts_until_that_is_decided() -> None:
    state = in_sync(1, 2, 3)
    state.propose((1,))
    assert state.maximal == {1, 2, 3}

    assert state.commit((1,), partition_epoch=10)
    assert state.maximal == {1}
    assert state.pending is None


def test_what_the_controller_decided_otherwise_voids_the_proposal() -> None:
    state = in_sync(1, 2, 3)
    state.propose((1, 2))
    assert state.commit((1, 3), partition_epoch=10)
    assert (state.committed, state.pending) == ((1, 3), None)


def test_the_same_state_again_decides_as_well() -> None:
    state = in_sync(1, 2)
    state.propose((1, 2, 3))
    assert state.commit((1, 2), partition_epoch=9)
    assert (state.maximal, state.pending) == (frozenset({1, 2}), None)


def test_old_news_change_nothing() -> None:
    state = in_sync(1, 2)
    proposal = state.propose((1,))
    assert not state.commit((1, 2, 3), partition_epoch=8)
    assert state.pending is proposal
    assert state.partition_epoch == 9


def test_a_proposal_that_was_surely_not_applied_is_withdrawn() -> None:
    state = in_sync(1)
    state.propose((1, 2))
    state.withdraw()
    assert (state.maximal, state.pending) == (frozenset({1}), None)


def test_one_proposal_at_a_time() -> None:
    state = in_sync(1, 2)
    state.propose((1,))
    with pytest.raises(AssertionError, match="one proposal"):
        state.propose((1, 2, 3))


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["propose", "commit", "withdraw"]),
        st.sets(st.integers(1, 4)).map(lambda members: tuple(sorted(members | {1}))),
        st.integers(-1, 2),
    )
)


@given(STEPS)
def test_whatever_happens_the_maximal_set_holds_the_committed_one(
    steps: list[tuple[str, tuple[int, ...], int]],
) -> None:
    state = in_sync(1, 2)
    for step, isr, later in steps:
        before = state.partition_epoch
        if step == "propose" and state.pending is None and set(isr) != set(state.committed):
            state.propose(isr)
        elif step == "commit":
            state.commit(isr, partition_epoch=state.partition_epoch + later)
        elif step == "withdraw" and state.pending is not None:
            state.withdraw()
        assert state.partition_epoch >= before
        state.check()
