"""Each invariant of a cluster condemns a planted violation, and a healthy life breaks none."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.judge.cluster.stage import NODES, Facts, P, batch
from tidelog.judge.cluster import (
    completeness,
    epochs,
    high_watermark,
    in_sync_set,
    leadership,
    log_matching,
    metadata,
    producers,
    quorum,
)
from tidelog.judge.cluster.facts import METADATA, Batch, BrokerFacts, ProducerFacts

# Size: a table of violations and a table of innocent histories that belong side by side.
SOME = frozenset


def two_leaders(facts: Facts) -> None:
    facts.replica(2, is_leader=True)


def leadership_resumed(facts: Facts) -> None:
    facts.restart(1)
    facts.replica(1, is_leader=True)


def two_names(facts: Facts) -> None:
    facts.metadata(leader=2)


def unclean_leader(facts: Facts) -> None:
    facts.metadata(isr=SOME({1, 2}))
    facts.elect(3, 1, isr=SOME({3}))


def unclean_leader_after_a_request_was_answered(facts: Facts) -> None:
    """The request found a leader and elected nobody; nobody asked for the one after it."""
    facts.court.on_unclean_election_requested(P)
    facts.court.on_unclean_election_answered(P)
    unclean_leader(facts)


def fenced_leader_lacks_records(facts: Facts) -> None:
    facts.append(1, batch(0))
    facts.append(2, batch(0))
    facts.replica(1, isr=SOME({1, 2}), maximal_isr=SOME({1, 2}))
    facts.commit(1, 1)
    facts.elect(3, 1)


def leader_holds_other_records(facts: Facts) -> None:
    facts.replicated()
    facts.append(2, batch(0, 0, by="x"), cut_to=0)
    facts.elect(2, 1)


def candidate_lacks_records(facts: Facts) -> None:
    for node in (1, 2):
        facts.append(node, batch(0))
    facts.replica(1, isr=SOME({1, 2}), maximal_isr=SOME({1, 2}))
    facts.commit(1, 1)


def eligible_lacks_records(facts: Facts) -> None:
    facts.replicated()
    facts.metadata(isr=SOME({1}), eligible=SOME({2}))
    facts.append(2, cut_to=0)


def committed_lost_everywhere(facts: Facts) -> None:
    facts.replicated()
    for node in NODES:
        facts.append(node, cut_to=0)


def other_bytes(facts: Facts) -> None:
    facts.append(1, batch(0))
    facts.append(2, batch(0, by="b"))


def other_prefix(facts: Facts) -> None:
    facts.append(1, batch(0, 0), batch(1, 2))
    facts.append(2, batch(0, 1), batch(1, 2))


def ahead_of_follower(facts: Facts) -> None:
    for node in (1, 2):
        facts.append(node, batch(0))
    facts.commit(1, 1)


def unsynced_counts(facts: Facts) -> None:
    facts.replicated()
    facts.append(1, batch(1))
    facts.append(2, batch(1))
    facts.append(3, batch(1))
    facts.replica(3, held_end_offset=1)
    facts.commit(1, 2)


def below_minimum(facts: Facts) -> None:
    facts.metadata(isr=SOME({1}), eligible=SOME({2}))
    facts.replica(1, isr=SOME({1}), maximal_isr=SOME({1}))
    facts.append(1, batch(0))
    facts.commit(1, 1)


def mark_goes_back(facts: Facts) -> None:
    facts.replicated(2)
    facts.commit(1, 1)


def not_waited_for(facts: Facts) -> None:
    facts.metadata(isr=SOME({1, 2}))
    facts.replica(1, isr=SOME({1, 2}), maximal_isr=SOME({1, 2}))
    facts.metadata(isr=SOME(NODES))


def former_self_joins(facts: Facts) -> None:
    facts.metadata(isr=SOME({1, 2}))
    facts.replica(1, fetched_by=((2, 12), (3, 13)), maximal_isr=SOME(NODES))
    facts.court.on_broker(BrokerFacts(broker_id=3, broker_epoch=33, is_fenced=False))
    facts.metadata(isr=SOME(NODES))


def vote_forgotten(facts: Facts) -> None:
    facts.restart(2)
    facts.member(2, voted_for=None)


def stranger_in_sync(facts: Facts) -> None:
    facts.metadata(isr=SOME({1, 2, 9}))


def leader_out_of_sync(facts: Facts) -> None:
    facts.metadata(isr=SOME({2, 3}))


def fenced_in_sync(facts: Facts) -> None:
    facts.court.on_broker(BrokerFacts(broker_id=3, broker_epoch=13, is_fenced=True))


def eligible_in_sync(facts: Facts) -> None:
    facts.metadata(isr=SOME({1}), eligible=SOME({1, 2}))


def eligible_above_minimum(facts: Facts) -> None:
    facts.metadata(isr=SOME({1, 2}), eligible=SOME({3}))


def nobody_to_recover(facts: Facts) -> None:
    facts.metadata(isr=SOME(()), leader=None, leader_epoch=1)


def partition_epoch_stands(facts: Facts) -> None:
    facts.metadata(isr=SOME({1, 2}), partition_epoch=5)
    facts.metadata(leader=2, partition_epoch=6)


def broker_epoch_back(facts: Facts) -> None:
    facts.court.on_broker(BrokerFacts(broker_id=1, broker_epoch=3, is_fenced=False))


def two_stories(facts: Facts) -> None:
    facts.court.on_image_differs(facts.lives[2], "believes in another in-sync set")


def applied_early(facts: Facts) -> None:
    facts.write_metadata(1, batch(0, 1))
    facts.member(1, applied_end_offset=1)


def two_quorum_leaders(facts: Facts) -> None:
    facts.member(2, is_leader=True)


def quorum_leader_resumes(facts: Facts) -> None:
    facts.restart(1)
    facts.member(1, is_leader=True)


def two_votes(facts: Facts) -> None:
    facts.restart(2)
    facts.member(2, voted_for=3)


def quorum_epoch_forgotten(facts: Facts) -> None:
    facts.restart(2)
    facts.member(2, quorum_epoch=0, voted_for=None)


def quorum_leader_lacks(facts: Facts) -> None:
    for node in (1, 2):
        facts.write_metadata(node, batch(0, 1))
    facts.member(1, high_watermark=1)
    facts.member(3, quorum_epoch=2, is_leader=True, voted_for=3)


def minority_commits(facts: Facts) -> None:
    facts.write_metadata(1, batch(0, 1))
    facts.member(1, high_watermark=1)


def metadata_differs(facts: Facts) -> None:
    facts.write_metadata(1, batch(0, 1))
    facts.write_metadata(2, batch(0, 1, by="x"))


def cut_producer_remembered(facts: Facts) -> None:
    facts.append(2, Batch(0, 1, 0, 7, 500, 0, 1), Batch(1, 2, 0, 8, 500, 0, 2))
    facts.append(2, cut_to=1)
    facts.court.on_producers(P, 2, [ProducerFacts(500, 0, 2, 2)])


PLANTED: list[tuple[str, Callable[[Facts], None]]] = [
    (leadership.ONE_LEADER, two_leaders),
    (leadership.ONE_LEADER, leadership_resumed),
    (leadership.ONE_LEADER, two_names),
    (leadership.ALLOWED, unclean_leader),
    (leadership.ALLOWED, unclean_leader_after_a_request_was_answered),
    (completeness.LEADER, fenced_leader_lacks_records),
    (completeness.LEADER, leader_holds_other_records),
    (completeness.CANDIDATE, candidate_lacks_records),
    (completeness.CANDIDATE, eligible_lacks_records),
    (completeness.GLOBAL, committed_lost_everywhere),
    (log_matching.NAME, other_bytes),
    (log_matching.NAME, other_prefix),
    (log_matching.NAME, metadata_differs),
    (high_watermark.BEHIND_ISR, ahead_of_follower),
    (high_watermark.BEHIND_ISR, unsynced_counts),
    (high_watermark.MINIMUM, below_minimum),
    (high_watermark.OWN, mark_goes_back),
    (in_sync_set.SUPERSET, not_waited_for),
    (in_sync_set.JOINED, former_self_joins),
    (in_sync_set.SUBSET, stranger_in_sync),
    (in_sync_set.LEADER_IN_SYNC, leader_out_of_sync),
    (in_sync_set.NOT_FENCED, fenced_in_sync),
    (in_sync_set.ELIGIBLE, eligible_in_sync),
    (in_sync_set.ELIGIBLE, eligible_above_minimum),
    (in_sync_set.LAST_KNOWN, nobody_to_recover),
    (epochs.NAME, partition_epoch_stands),
    (epochs.NAME, broker_epoch_back),
    (metadata.AGREES, two_stories),
    (metadata.COMMITTED, applied_early),
    (quorum.SAFETY, two_quorum_leaders),
    (quorum.SAFETY, quorum_leader_resumes),
    (quorum.ONE_VOTE, two_votes),
    (quorum.ONE_VOTE, vote_forgotten),
    (quorum.FORWARD, quorum_epoch_forgotten),
    (quorum.COMPLETE, quorum_leader_lacks),
    (quorum.MAJORITY, minority_commits),
    (producers.NAME, cut_producer_remembered),
]


@pytest.mark.parametrize(
    ("name", "plant"), [pytest.param(n, p, id=f"{n}: {p.__name__}") for n, p in PLANTED]
)
def test_a_planted_violation_is_found_by_its_invariant(
    name: str, plant: Callable[[Facts], None]
) -> None:
    facts = Facts()
    assert facts.found() == set()

    plant(facts)

    assert name in facts.found()


@pytest.mark.parametrize(
    ("name", "plant"), [pytest.param(n, p, id=f"{n}: {p.__name__}") for n, p in PLANTED]
)
def test_looking_at_what_was_touched_finds_as_much_as_looking_at_everything(
    name: str, plant: Callable[[Facts], None]
) -> None:
    step, everything = Facts(), Facts()

    plant(step)
    plant(everything)
    everything.court.judge_all()

    assert step.found() == {anomaly.check for anomaly in everything.court.anomalies}


def a_clean_failover(facts: Facts) -> None:
    facts.replicated(2)
    facts.append(1, batch(2))
    facts.court.on_down(1, floors=None)
    facts.elect(2, 1, isr=SOME({2, 3}))
    for node in (2, 3):
        facts.append(node, batch(2, 1, by="b"))
    facts.commit(2, 3)


def a_rejoining_leader_cuts_its_tail(facts: Facts) -> None:
    a_clean_failover(facts)
    facts.restart(1)
    facts.append(1, batch(2, 1, by="b"), cut_to=2)
    facts.court.on_registered(1, 21)
    facts.court.on_broker(BrokerFacts(broker_id=1, broker_epoch=21, is_fenced=False))
    facts.replica(2, maximal_isr=SOME(NODES))
    facts.metadata(isr=SOME(NODES))


def an_allowed_unclean_election(facts: Facts) -> None:
    facts.replicated(2)
    facts.append(3, cut_to=1)
    facts.metadata(isr=SOME({1, 2}), allows_unclean=True)
    facts.court.on_down(1, floors=None)
    facts.court.on_down(2, floors=None)
    facts.elect(3, 1, isr=SOME({3}))


def an_unclean_election_that_an_administrator_requested(facts: Facts) -> None:
    """Seed 192132 of `replication`: ElectLeaders does not ask for the topic's setting."""
    facts.court.on_unclean_election_requested(P)
    facts.replicated(2)
    facts.append(3, cut_to=1)
    facts.metadata(isr=SOME({1, 2}))
    facts.court.on_down(1, floors=None)
    facts.court.on_down(2, floors=None)
    facts.elect(3, 1, isr=SOME({3}))


def an_unclean_leader_with_an_unsynced_tail(facts: Facts) -> None:
    facts.replicated(2)
    facts.metadata(isr=SOME({1, 2}), allows_unclean=True)
    facts.replica(3, high_watermark=2, held_end_offset=1)
    facts.elect(3, 1, isr=SOME({3}))


def a_power_loss_of_the_minimum(facts: Facts) -> None:
    facts.replicated(2)
    for node in NODES:
        facts.court.on_down(node, floors={P: 1}, because="power loss")
    for node in NODES:
        facts.restart(node)
        facts.append(node, cut_to=1)
        facts.court.on_registered(node, 20 + node)


def a_loss_of_what_a_lower_minimum_committed(facts: Facts) -> None:
    facts.court.on_settings(P, minimum=1, allows_unclean=False)
    facts.metadata(isr=SOME({1}), minimum=1)
    facts.replica(1, isr=SOME({1}), maximal_isr=SOME({1}), minimum=1)
    facts.append(1, batch(0), batch(1))
    facts.commit(1, 2)
    facts.court.on_settings(P, minimum=2, allows_unclean=False)
    facts.court.on_down(1, floors={P: 0}, because="power loss")
    facts.restart(1)
    facts.append(1, cut_to=0)


def a_restarted_candidate_before_it_registers(facts: Facts) -> None:
    facts.replicated(2)
    facts.court.on_down(3, floors={P: 1}, because="power loss")
    facts.restart(3)
    facts.append(3, cut_to=1)


def a_second_vote_in_a_later_epoch(facts: Facts) -> None:
    facts.restart(2)
    facts.member(2, quorum_epoch=2, voted_for=3)


INNOCENT = [
    a_clean_failover,
    a_rejoining_leader_cuts_its_tail,
    an_allowed_unclean_election,
    an_unclean_election_that_an_administrator_requested,
    an_unclean_leader_with_an_unsynced_tail,
    a_power_loss_of_the_minimum,
    a_loss_of_what_a_lower_minimum_committed,
    a_restarted_candidate_before_it_registers,
    a_second_vote_in_a_later_epoch,
]


@pytest.mark.parametrize("live", INNOCENT)
def test_an_innocent_life_breaks_no_invariant(live: Callable[[Facts], None]) -> None:
    facts = Facts()

    live(facts)
    facts.court.judge_all()

    assert facts.found() == set()


def test_the_metadata_log_is_judged_like_any_log() -> None:
    facts = Facts()
    for node in NODES:
        facts.write_metadata(node, batch(0, 1))
    facts.member(1, high_watermark=1, applied_end_offset=1)

    assert facts.court.picture.committed_log(METADATA).end_offset == 1
    assert facts.found() == set()
