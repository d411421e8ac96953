"""Elections: the order of the candidates, and who is never elected."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.unit.core.controller.cluster import state
from tidelog.core.controller.election import Elected, Election, ElectionRules, elect
from tidelog.core.controller.events import ElectionKind
from tidelog.core.metadata.cluster import PartitionState

ONLINE, PREFERRED, UNCLEAN = Election.ONLINE, Election.PREFERRED, Election.UNCLEAN


def held(
    before: PartitionState,
    *,
    alive: Sequence[int],
    election: Election = ONLINE,
    isr: Sequence[int] | None = None,
    keeps_eligible: bool = True,
) -> Elected:
    return elect(
        before,
        replicas=before.replicas,
        isr=before.isr if isr is None else tuple(isr),
        eligible=before.eligible_leader_replicas,
        election=election,
        rules=ElectionRules(
            is_acceptable=lambda replica: replica in alive,
            min_insync_replicas=2,
            keeps_eligible=keeps_eligible,
        ),
    )


@pytest.mark.scenario("D3-T10", "D5-B3")
def test_the_order_is_that_of_the_assignment_among_those_in_sync_and_alive() -> None:
    """Not the order of the in-sync set: replicas [1, 3, 2] elect 3 (N16)."""
    before = state(1, 3, 2, isr=(1, 2, 3))

    assert held(before, alive=[2, 3], isr=[2, 3]) == (3, ElectionKind.CLEAN)
    assert held(before, alive=[2], isr=[2, 3]) == (2, ElectionKind.CLEAN)


def test_a_leader_that_may_go_on_goes_on() -> None:
    before = state(1, 2, 3, leader=2)

    assert held(before, alive=[1, 2, 3]) == (2, ElectionKind.CLEAN)
    assert held(before, alive=[1, 2, 3], election=UNCLEAN) == (2, ElectionKind.CLEAN)


def test_a_preferred_election_gives_the_first_replica_its_place_back() -> None:
    before = state(1, 2, 3, leader=2)

    assert held(before, alive=[1, 2, 3], election=PREFERRED) == (1, ElectionKind.PREFERRED)
    assert held(before, alive=[2, 3], election=PREFERRED) == (2, ElectionKind.CLEAN)
    assert held(before, alive=[1, 3], isr=[3], election=PREFERRED) == (3, ElectionKind.CLEAN)


@pytest.mark.scenario("X-6")
def test_an_eligible_replica_leads_when_nobody_is_in_sync() -> None:
    before = state(1, 2, 3, isr=(1,), eligible=(2,))

    assert held(before, alive=[2, 3], isr=[]) == (2, ElectionKind.ELIGIBLE)
    assert held(before, alive=[2, 3]) == (None, None), "somebody is in sync, though dead"


def test_the_last_known_leader_is_taken_when_nobody_is_eligible() -> None:
    offline = state(1, 2, 3, isr=(), leader=None, last_known=(2,))

    assert held(offline, alive=[1, 2]) == (2, ElectionKind.LAST_KNOWN)
    assert held(offline, alive=[1, 2], keeps_eligible=False) == (None, None)


@pytest.mark.scenario("X-8")
def test_nobody_else_is_taken_while_the_last_known_leader_is_away() -> None:
    offline = state(1, 2, 3, isr=(), leader=None, last_known=(2,))

    assert held(offline, alive=[1, 3]) == (None, None)
    assert held(offline, alive=[1, 3], election=PREFERRED) == (None, None)


def test_the_last_known_leader_waits_while_somebody_is_eligible() -> None:
    offline = state(1, 2, 3, isr=(), leader=None, eligible=(3,), last_known=(2,))

    assert held(offline, alive=[2]) == (None, None)


@pytest.mark.scenario("D5-U1", "D5-U2")
def test_a_replica_that_lacks_records_leads_only_where_that_is_allowed() -> None:
    before = state(1, 2, 3, isr=(1, 2))

    assert held(before, alive=[3], isr=[]) == (None, None)
    assert held(before, alive=[3], isr=[], election=UNCLEAN) == (3, ElectionKind.UNCLEAN)
    assert held(before, alive=[], isr=[], election=UNCLEAN) == (None, None)


def test_an_unclean_election_asks_the_clean_candidates_first() -> None:
    before = state(3, 1, 2, isr=(1,), eligible=(2,))

    assert held(before, alive=[3, 2], isr=[], election=UNCLEAN) == (2, ElectionKind.ELIGIBLE)
    last = state(3, 1, 2, isr=(), leader=None, last_known=(1,))
    assert held(last, alive=[3, 1], election=UNCLEAN) == (1, ElectionKind.LAST_KNOWN)
