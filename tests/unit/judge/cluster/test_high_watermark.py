"""A leader by an election that was not clean is given time to sync what it began with, no more."""

from __future__ import annotations

from tests.unit.judge.cluster.stage import Facts, P, batch
from tidelog.judge.anomalies import BEHIND_MAXIMAL_ISR
from tidelog.judge.cluster.facts import ObservedBroker

BOTH = frozenset({1, 2})


def the_last_known_leader_returns() -> Facts:
    """Broker 1 has all three records and knows of the sync of one; 2 knows the mark 2."""
    facts = Facts()
    facts.replicated(3)
    facts.replica(2, high_watermark=2)
    facts.metadata(isr=frozenset(), leader=None, leader_epoch=1, last_known_leaders=(1,))
    facts.restart(1)
    facts.checker.on_registered(1, 21)
    facts.checker.on_broker(ObservedBroker(broker_id=1, broker_epoch=21, is_fenced=False))
    facts.replica(1, high_watermark=1, held_end_offset=1)
    facts.elect(1, 2, isr=frozenset({1}), last_known_leaders=())
    return facts


def the_other_joins_and_leads(facts: Facts) -> None:
    facts.replica(1, maximal_isr=BOTH)
    facts.metadata(isr=BOTH)
    facts.replica(1, is_leader=False, leader_epoch=3)
    facts.elect(2, 3)


def test_the_next_leader_may_know_a_later_mark_than_the_returned_one_has_synced() -> None:
    facts = the_last_known_leader_returns()

    the_other_joins_and_leads(facts)

    assert facts.found() == set()
    assert facts.checker.model.unproven == {(P, 1): 3}


def test_it_is_proven_once_it_vouches_for_all_that_it_began_with() -> None:
    facts = the_last_known_leader_returns()
    facts.replica(1, held_end_offset=2)
    assert facts.checker.model.unproven == {(P, 1): 3}

    facts.replica(1, held_end_offset=3)

    assert facts.checker.model.unproven == {}


def test_a_log_that_was_cut_is_proven_by_what_is_left() -> None:
    facts = the_last_known_leader_returns()

    facts.append(1, cut_to=2)

    assert facts.checker.model.unproven == {}


def test_a_mark_beyond_what_it_began_with_is_a_violation() -> None:
    facts = the_last_known_leader_returns()
    the_other_joins_and_leads(facts)
    facts.append(2, batch(3, 3))
    facts.checker.on_log(P, 1, start_offset=0, appended=[batch(3, 3)])
    assert facts.found() == set()

    facts.commit(2, 4)

    assert facts.found() == {BEHIND_MAXIMAL_ISR.name}


def test_one_that_left_the_set_must_have_synced_before_it_joins_again() -> None:
    facts = the_last_known_leader_returns()
    the_other_joins_and_leads(facts)
    facts.metadata(isr=frozenset({2}), eligible=frozenset({1}))
    facts.replica(2, isr=frozenset({2}), maximal_isr=BOTH)
    assert facts.found() == set()

    facts.metadata(isr=BOTH, eligible=frozenset())

    assert facts.found() == {BEHIND_MAXIMAL_ISR.name}


def test_after_a_restart_nothing_is_owed_any_more() -> None:
    facts = the_last_known_leader_returns()

    facts.restart(1)

    assert facts.checker.model.unproven == {}


def test_a_leader_by_a_clean_election_has_no_such_time() -> None:
    facts = Facts()
    facts.replicated(3)
    facts.replica(2, high_watermark=2, held_end_offset=1)
    facts.replica(1, is_leader=False, leader_epoch=1)

    facts.elect(2, 1)

    assert facts.found() == {BEHIND_MAXIMAL_ISR.name}


def test_it_counts_from_where_it_hears_of_its_election() -> None:
    """As a follower it fetched on from a leader that had not heard either."""
    facts = Facts()
    facts.replicated(3)
    facts.metadata(isr=BOTH, allows_unclean=True)
    facts.metadata(leader=3, leader_epoch=1, isr=frozenset({3}))
    facts.append(3, batch(3))
    facts.replica(3, high_watermark=4, held_end_offset=3)
    lone = frozenset({3})
    facts.replica(3, is_leader=True, leader_epoch=1, isr=lone, maximal_isr=lone)

    assert facts.checker.model.unproven == {(P, 3): 4}
    assert facts.found() == set()
