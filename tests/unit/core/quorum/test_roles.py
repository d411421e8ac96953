"""Roles change by a table only, and observers never stand for election."""

from __future__ import annotations

import pytest

from tests.unit.core.quorum.given import quorum
from tidelog.core.model.errors import ErrorCode
from tidelog.core.quorum.roles import NEXT, Role, become


@pytest.mark.parametrize("old", Role)
def test_every_role_becomes_only_what_the_table_says(old: Role) -> None:
    for new in Role:
        if new in NEXT[old]:
            assert become(old, new) is new
        else:
            with pytest.raises(AssertionError, match="may not become"):
                become(old, new)


def test_nobody_becomes_a_leader_without_being_a_candidate() -> None:
    assert [role for role in Role if Role.LEADER in NEXT[role]] == [Role.CANDIDATE]


def test_an_observer_waits_for_ever_and_follows_whoever_leads() -> None:
    machine = quorum(9)

    assert machine.deadline_ms is None
    assert machine.wants_fetch
    machine.on_tick(1_000_000)
    assert (machine.role, machine.leader_id) == (Role.UNATTACHED, None)
    machine.on_fetch_answer(
        2, ErrorCode.NOT_LEADER_OR_FOLLOWER, leader_id=1, quorum_epoch=4, now_ms=5
    )
    assert (machine.role, machine.leader_id, machine.quorum_epoch) == (Role.FOLLOWER, 1, 4)
    machine.on_leader_dead(1, 10)
    machine.on_tick(1_000_000)
    assert machine.role is Role.FOLLOWER
    machine.check()
