"""Each invariant of a cluster condemns a planted violation, and a healthy life breaks none."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.judge.cluster.stage import NODES, Facts, P, batch
from tidelog.judge import anomalies
from tidelog.judge.anomalies import AnomalyKind
from tidelog.judge.cluster.facts import METADATA, ObservedBatch, ObservedBroker, ObservedProducer

# Size: a table of violations and a table of innocent histories that belong side by side.
SOME = frozenset


def cut_below_what_is_shared(facts: Facts) -> None:
    facts.replicated(2)
    facts.append(2, batch(2))
    facts.checker.on_follower_truncated(P, 2, leader_epoch=0, end_offset=1)


def cut_to_what_is_shared(facts: Facts) -> None:
    facts.replicated(2)
    facts.append(2, batch(2))
    facts.checker.on_follower_truncated(P, 2, leader_epoch=0, end_offset=2)
    facts.append(2, cut_to=2)


def synced_before_its_disk(facts: Facts) -> None:
    facts.checker.on_synced(P, 1, synced_end_offset=7, recovery_point=5, durable_end_offset=6)


def recovered_from_beyond_its_disk(facts: Facts) -> None:
    facts.checker.on_synced(P, 1, synced_end_offset=5, recovery_point=7, durable_end_offset=6)


def synced_and_durable(facts: Facts) -> None:
    facts.checker.on_synced(P, 1, synced_end_offset=6, recovery_point=5, durable_end_offset=6)


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
    facts.checker.on_unclean_election_requested(P)
    facts.checker.on_unclean_election_answered(P)
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


def old_leader_commits_after_a_clean_election(facts: Facts) -> None:
    """Without its successor, which it has to wait for."""
    facts.elect(2, 1)
    facts.append(1, batch(0))
    facts.commit(1, 1)


def unclean_leader_drops_what_it_held(facts: Facts) -> None:
    """An unclean election excuses what the winner did not hold, and nothing else."""
    old_leader_commits_after_an_unclean_election(facts)
    facts.append(3, cut_to=1)


def unclean_leader_drops_what_it_committed(facts: Facts) -> None:
    old_leader_commits_after_an_unclean_election(facts)
    facts.append(3, batch(2, 1))
    facts.commit(3, 3)
    facts.append(3, cut_to=2)


def candidate_lacks_records(facts: Facts) -> None:
    for node in (1, 2):
        facts.append(node, batch(0))
    facts.replica(1, isr=SOME({1, 2}), maximal_isr=SOME({1, 2}))
    facts.commit(1, 1)


def eligible_lacks_records(facts: Facts) -> None:
    facts.replicated()
    facts.metadata(isr=SOME({1}), eligible=SOME({2}))
    facts.append(2, cut_to=0)


def proposed_lacks_records(facts: Facts) -> None:
    """A leader lets in whoever reaches its high watermark; its predecessor had committed more."""
    facts.metadata(isr=SOME({1, 2}))
    facts.replica(1, isr=SOME({1, 2}), maximal_isr=SOME({1, 2}))
    for node in (1, 2):
        facts.append(node, batch(0))
    facts.commit(1, 1)
    facts.elect(2, 1)
    facts.replica(2, maximal_isr=SOME(NODES), fetched_by=((2, 12), (3, 13)))


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
    facts.checker.on_broker(ObservedBroker(broker_id=3, broker_epoch=33, is_fenced=False))
    facts.metadata(isr=SOME(NODES))


def vote_forgotten(facts: Facts) -> None:
    facts.restart(2)
    facts.member(2, voted_for=None)


def stranger_in_sync(facts: Facts) -> None:
    facts.metadata(isr=SOME({1, 2, 9}))


def leader_out_of_sync(facts: Facts) -> None:
    facts.metadata(isr=SOME({2, 3}))


def fenced_in_sync(facts: Facts) -> None:
    facts.checker.on_broker(ObservedBroker(broker_id=3, broker_epoch=13, is_fenced=True))


def eligible_in_sync(facts: Facts) -> None:
    facts.metadata(isr=SOME({1}), eligible=SOME({1, 2}))


def eligible_above_minimum(facts: Facts) -> None:
    facts.metadata(isr=SOME({1, 2}), eligible=SOME({3}))


def nobody_to_recover(facts: Facts) -> None:
    facts.metadata(isr=SOME(()), leader=None, leader_epoch=1)


def nobody_to_recover_but_a_stranger(facts: Facts) -> None:
    facts.metadata(replicas=(2, 3), isr=SOME(()), leader=None, leader_epoch=1)
    facts.metadata(last_known_leaders=(1,))


def partition_epoch_stands(facts: Facts) -> None:
    facts.metadata(isr=SOME({1, 2}), partition_epoch=5)
    facts.metadata(leader=2, partition_epoch=6)


def broker_epoch_back(facts: Facts) -> None:
    facts.checker.on_broker(ObservedBroker(broker_id=1, broker_epoch=3, is_fenced=False))


def two_stories(facts: Facts) -> None:
    facts.checker.on_image_differs(facts.incarnations[2], "believes in another in-sync set")


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
    facts.append(2, ObservedBatch(0, 1, 0, 7, 500, 0, 1), ObservedBatch(1, 2, 0, 8, 500, 0, 2))
    facts.append(2, cut_to=1)
    facts.checker.on_producers(P, 2, [ObservedProducer(500, 0, 2, 2)])


PLANTED: list[tuple[AnomalyKind, Callable[[Facts], None]]] = [
    (anomalies.ONE_LEADER, two_leaders),
    (anomalies.ONE_LEADER, leadership_resumed),
    (anomalies.ONE_LEADER, two_names),
    (anomalies.ELECTION_ALLOWED, unclean_leader),
    (anomalies.ELECTION_ALLOWED, unclean_leader_after_a_request_was_answered),
    (anomalies.LEADER_COMPLETENESS, fenced_leader_lacks_records),
    (anomalies.LEADER_COMPLETENESS, leader_holds_other_records),
    (anomalies.LEADER_COMPLETENESS, old_leader_commits_after_a_clean_election),
    (anomalies.LEADER_COMPLETENESS, unclean_leader_drops_what_it_held),
    (anomalies.LEADER_COMPLETENESS, unclean_leader_drops_what_it_committed),
    (anomalies.CANDIDATE_COMPLETENESS, candidate_lacks_records),
    (anomalies.CANDIDATE_COMPLETENESS, eligible_lacks_records),
    (anomalies.CANDIDATE_COMPLETENESS, proposed_lacks_records),
    (anomalies.NO_COMMITTED_LOST, committed_lost_everywhere),
    (anomalies.LOG_MATCHING, other_bytes),
    (anomalies.LOG_MATCHING, other_prefix),
    (anomalies.LOG_MATCHING, metadata_differs),
    (anomalies.BEHIND_MAXIMAL_ISR, ahead_of_follower),
    (anomalies.BEHIND_MAXIMAL_ISR, unsynced_counts),
    (anomalies.MINIMUM_IN_SYNC, below_minimum),
    (anomalies.HIGH_WATERMARK_FORWARD, mark_goes_back),
    (anomalies.QUORUM_SUPERSET, not_waited_for),
    (anomalies.JOINED_AS_ITSELF, former_self_joins),
    (anomalies.ISR_ARE_REPLICAS, stranger_in_sync),
    (anomalies.LEADER_IN_SYNC, leader_out_of_sync),
    (anomalies.NO_FENCED_IN_SYNC, fenced_in_sync),
    (anomalies.ELIGIBLE_ARE_SOUND, eligible_in_sync),
    (anomalies.ELIGIBLE_ARE_SOUND, eligible_above_minimum),
    (anomalies.LAST_KNOWN_LEADER, nobody_to_recover),
    (anomalies.LAST_KNOWN_LEADER, nobody_to_recover_but_a_stranger),
    (anomalies.EPOCHS_GROW, partition_epoch_stands),
    (anomalies.EPOCHS_GROW, broker_epoch_back),
    (anomalies.METADATA_AGREES, two_stories),
    (anomalies.METADATA_COMMITTED, applied_early),
    (anomalies.QUORUM_ELECTION_SAFETY, two_quorum_leaders),
    (anomalies.QUORUM_ELECTION_SAFETY, quorum_leader_resumes),
    (anomalies.ONE_VOTE, two_votes),
    (anomalies.ONE_VOTE, vote_forgotten),
    (anomalies.QUORUM_EPOCH_FORWARD, quorum_epoch_forgotten),
    (anomalies.QUORUM_LEADER_COMPLETENESS, quorum_leader_lacks),
    (anomalies.QUORUM_MAJORITY, minority_commits),
    (anomalies.PRODUCER_STATE, cut_producer_remembered),
    (anomalies.CUT_TOO_DEEP, cut_below_what_is_shared),
    (anomalies.SYNCED_IS_DURABLE, synced_before_its_disk),
    (anomalies.SYNCED_IS_DURABLE, recovered_from_beyond_its_disk),
]


@pytest.mark.parametrize(
    ("kind", "plant"), [pytest.param(k, p, id=f"{k.name}: {p.__name__}") for k, p in PLANTED]
)
def test_a_planted_violation_is_found_by_its_invariant(
    kind: AnomalyKind, plant: Callable[[Facts], None]
) -> None:
    facts = Facts()
    assert facts.found() == set()

    plant(facts)

    assert kind.name in facts.found()


@pytest.mark.parametrize(
    ("kind", "plant"), [pytest.param(k, p, id=f"{k.name}: {p.__name__}") for k, p in PLANTED]
)
def test_looking_at_what_was_touched_finds_as_much_as_looking_at_everything(
    kind: AnomalyKind, plant: Callable[[Facts], None]
) -> None:
    step, everything = Facts(), Facts()

    plant(step)
    plant(everything)
    everything.checker.check_all()

    assert step.found() == {anomaly.name for anomaly in everything.checker.anomalies}


def a_clean_failover(facts: Facts) -> None:
    facts.replicated(2)
    facts.append(1, batch(2))
    facts.checker.on_down(1, floors=None)
    facts.elect(2, 1, isr=SOME({2, 3}))
    for node in (2, 3):
        facts.append(node, batch(2, 1, by="b"))
    facts.commit(2, 3)


def a_rejoining_leader_cuts_its_tail(facts: Facts) -> None:
    a_clean_failover(facts)
    facts.restart(1)
    facts.append(1, batch(2, 1, by="b"), cut_to=2)
    facts.checker.on_registered(1, 21)
    facts.checker.on_broker(ObservedBroker(broker_id=1, broker_epoch=21, is_fenced=False))
    facts.replica(2, maximal_isr=SOME(NODES))
    facts.metadata(isr=SOME(NODES))


def an_empty_process_that_another_one_is_proposed_for(facts: Facts) -> None:
    """The controller refuses: 3 has lost its disk and registered anew since it fetched."""
    facts.replicated()
    facts.metadata(isr=SOME({1, 2}))
    facts.replica(1, isr=SOME({1, 2}), maximal_isr=SOME(NODES), fetched_by=((1, 11), (3, 13)))
    facts.checker.on_down(3, floors={P: 0}, because="wiped")
    facts.restart(3)
    facts.append(3, cut_to=0)
    facts.checker.on_registered(3, 23)
    facts.checker.on_broker(ObservedBroker(broker_id=3, broker_epoch=23, is_fenced=False))


def an_allowed_unclean_election(facts: Facts) -> None:
    facts.replicated(2)
    facts.append(3, cut_to=1)
    facts.metadata(isr=SOME({1, 2}), allows_unclean=True)
    facts.checker.on_down(1, floors=None)
    facts.checker.on_down(2, floors=None)
    facts.elect(3, 1, isr=SOME({3}))


def an_unclean_election_that_an_administrator_requested(facts: Facts) -> None:
    """Seed 192132 of `replication`: ElectLeaders does not ask for the topic's setting."""
    facts.checker.on_unclean_election_requested(P)
    facts.replicated(2)
    facts.append(3, cut_to=1)
    facts.metadata(isr=SOME({1, 2}))
    facts.checker.on_down(1, floors=None)
    facts.checker.on_down(2, floors=None)
    facts.elect(3, 1, isr=SOME({3}))


def old_leader_commits_after_an_unclean_election(facts: Facts) -> None:
    """Seed 282329519 of `replication`: nothing was lost at the election, but soon after it.

    1. 1 is alone in sync, and 3 has fetched all of it. 1 is about to stop: 3 is elected, uncleanly.
    2. The controller loses its power before 1 hears of it. 1 goes on and commits alone.
    3. 1 hears of 3 and drops what it wrote since.
    """
    facts.replicated(2)
    facts.metadata(isr=SOME({1}), minimum=1, allows_unclean=True)
    facts.replica(1, isr=SOME({1}), maximal_isr=SOME({1}), minimum=1)
    facts.elect(3, 1, isr=SOME({3}), minimum=1)
    facts.append(1, batch(2))
    facts.commit(1, 3)
    facts.checker.check_step()
    facts.replica(1, is_leader=False, leader_epoch=1)
    facts.append(1, cut_to=2)


def an_unclean_leader_with_an_unsynced_tail(facts: Facts) -> None:
    facts.replicated(2)
    facts.metadata(isr=SOME({1, 2}), allows_unclean=True)
    facts.replica(3, high_watermark=2, held_end_offset=1)
    facts.elect(3, 1, isr=SOME({3}))


def a_power_loss_of_the_minimum(facts: Facts) -> None:
    facts.replicated(2)
    for node in NODES:
        facts.checker.on_down(node, floors={P: 1}, because="power loss")
    for node in NODES:
        facts.restart(node)
        facts.append(node, cut_to=1)
        facts.checker.on_registered(node, 20 + node)


def a_loss_of_what_a_lower_minimum_committed(facts: Facts) -> None:
    facts.checker.on_settings(P, minimum=1, allows_unclean=False)
    facts.metadata(isr=SOME({1}), minimum=1)
    facts.replica(1, isr=SOME({1}), maximal_isr=SOME({1}), minimum=1)
    facts.append(1, batch(0), batch(1))
    facts.commit(1, 2)
    facts.checker.on_settings(P, minimum=2, allows_unclean=False)
    facts.checker.on_down(1, floors={P: 0}, because="power loss")
    facts.restart(1)
    facts.append(1, cut_to=0)


def a_restarted_candidate_before_it_registers(facts: Facts) -> None:
    facts.replicated(2)
    facts.checker.on_down(3, floors={P: 1}, because="power loss")
    facts.restart(3)
    facts.append(3, cut_to=1)


def a_second_vote_in_a_later_epoch(facts: Facts) -> None:
    facts.restart(2)
    facts.member(2, quorum_epoch=2, voted_for=3)


INNOCENT = [
    cut_to_what_is_shared,
    synced_and_durable,
    a_clean_failover,
    a_rejoining_leader_cuts_its_tail,
    an_empty_process_that_another_one_is_proposed_for,
    an_allowed_unclean_election,
    an_unclean_election_that_an_administrator_requested,
    old_leader_commits_after_an_unclean_election,
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
    facts.checker.check_all()

    assert facts.found() == set()


def test_the_metadata_log_is_judged_like_any_log() -> None:
    facts = Facts()
    for node in NODES:
        facts.write_metadata(node, batch(0, 1))
    facts.member(1, high_watermark=1, applied_end_offset=1)

    assert facts.checker.model.committed_log(METADATA).end_offset == 1
    assert facts.found() == set()
