"""The checker turns elections and lost tails into excuses, and looks no less closely in steps."""

from __future__ import annotations

from random import Random

import pytest

from tests.unit.judge.cluster.stage import NODES, Facts, P, batch
from tidelog.judge.anomalies import METADATA_COMMITTED, QUORUM_MAJORITY
from tidelog.judge.excuses import ElectionHeld, ElectionSource, TailLost


def elections(facts: Facts) -> list[ElectionHeld]:
    return [excuse for excuse in facts.checker.excuses() if isinstance(excuse, ElectionHeld)]


def tails(facts: Facts) -> list[TailLost]:
    return [excuse for excuse in facts.checker.excuses() if isinstance(excuse, TailLost)]


def test_an_election_tells_how_much_of_the_old_leaders_log_was_kept() -> None:
    facts = Facts()
    facts.replicated(2)
    facts.append(1, batch(2), batch(3))
    facts.append(2, batch(2))

    facts.elect(2, 1, isr=frozenset({2, 3}))

    first, second = elections(facts)
    assert (first.leader, first.election) == (1, ElectionSource.CLEAN)
    assert (second.leader, second.leader_epoch) == (2, 1)
    assert (second.election, second.kept_end_offset) == (ElectionSource.CLEAN, 3)


def test_a_winner_that_ends_before_its_predecessors_log_begins_has_kept_only_what_it_has() -> None:
    facts = Facts()
    facts.replicated(1)
    for offset in (1, 2):
        facts.append(1, batch(offset))
    facts.checker.on_log(P, 1, start_offset=3)

    facts.elect(2, 1, isr=frozenset({2, 3}))

    assert elections(facts)[-1].kept_end_offset == 1


def with_another_head() -> Facts:
    """After one record that all hold, node 2 has another history than its leader, which then
    deletes its own."""
    facts = Facts()
    facts.replicated(1)
    facts.metadata(isr=frozenset({1, 3}), allows_unclean=True)
    for offset in (1, 2):
        facts.append(1, batch(offset))
    for offset in (1, 2, 3):
        facts.append(2, batch(offset, by="x"))
    facts.checker.on_log(P, 1, start_offset=3)
    return facts


def test_a_deleted_head_is_compared_as_it_was() -> None:
    """Seed 165480412 of `replication`: readers were given what an unclean leader wrote and then
    deleted; the next one brought another past back."""
    facts = with_another_head()

    facts.elect(2, 1, isr=frozenset({2}))

    assert elections(facts)[-1].kept_end_offset == 1


def test_a_leader_that_began_after_a_deletion_has_its_predecessors_past() -> None:
    facts = with_another_head()
    facts.checker.on_log(P, 3, start_offset=3)
    facts.elect(3, 1, isr=frozenset({3}))

    facts.elect(2, 2, isr=frozenset({2}))

    assert [each.kept_end_offset for each in elections(facts)[-2:]] == [3, 1]


def test_a_deleted_head_that_both_held_is_kept() -> None:
    facts = Facts()
    facts.replicated(3)
    facts.checker.on_log(P, 1, start_offset=2)

    facts.elect(2, 1, isr=frozenset({2, 3}))

    assert elections(facts)[-1].kept_end_offset == 3


def test_a_leader_that_lost_power_is_compared_as_it_was() -> None:
    """Its new log was never synced, nor was the deletion of an old one: that comes back."""
    facts = Facts()
    facts.replicated(3)
    facts.checker.on_down(1, floors={P: 0}, because="power loss")
    facts.metadata(isr=frozenset(), leader=None, leader_epoch=1, last_known_leaders=(1,))
    facts.restart(1)
    facts.append(1, batch(0, by="x"), batch(1, by="x"), cut_to=0)

    facts.elect(1, 2, isr=frozenset({1}), last_known_leaders=())

    assert elections(facts)[-1].kept_end_offset == 0


def test_a_winner_has_kept_what_its_predecessor_lost_with_its_power() -> None:
    facts = Facts()
    facts.replicated(3)
    facts.checker.on_down(1, floors={P: 0}, because="power loss")
    facts.restart(1)
    facts.append(1, cut_to=1)

    facts.elect(2, 1, isr=frozenset({2, 3}))

    assert elections(facts)[-1].kept_end_offset == 3


def test_only_the_newest_leader_is_compared_as_it_was() -> None:
    """What an earlier one lost does not count: its successor's log is the one to keep."""
    facts = Facts()
    facts.replicated(3)
    facts.elect(2, 1, isr=frozenset({2, 3}))
    facts.checker.on_down(1, floors={P: 0}, because="power loss")
    facts.append(2, batch(3, 1))

    facts.elect(3, 2, isr=frozenset({3}))

    assert elections(facts)[-1].kept_end_offset == 3


def test_an_old_leader_that_has_not_heard_may_still_answer() -> None:
    facts = Facts()
    facts.now_us = 5
    facts.elect(2, 1, isr=frozenset({2, 3}))
    facts.now_us = 9
    facts.replica(1, is_leader=False, leader_epoch=1)

    assert elections(facts)[-1].at_us == 5
    assert elections(facts)[-1].believed_until_us == 9


def test_the_return_of_the_last_known_leader_is_told_from_an_unclean_election() -> None:
    facts = Facts()
    facts.metadata(
        isr=frozenset(), leader=None, leader_epoch=1, last_known_leaders=(1,), allows_unclean=True
    )
    facts.elect(1, 2, isr=frozenset({1}), last_known_leaders=())
    facts.metadata(isr=frozenset(), leader=None, leader_epoch=3, last_known_leaders=(1,))
    facts.elect(2, 4, isr=frozenset({2}), last_known_leaders=())

    assert [each.election for each in elections(facts)] == [
        ElectionSource.CLEAN,
        ElectionSource.LAST_KNOWN,
        ElectionSource.UNCLEAN,
    ]


@pytest.mark.parametrize(("holders", "found"), [((1, 2), set()), ((1,), {QUORUM_MAJORITY.name})])
def test_a_quorum_leader_may_commit_and_hear_of_a_later_epoch_in_one_step(
    holders: tuple[int, ...], found: set[str]
) -> None:
    """It was paused, and finds a fetch and a request for its vote when it wakes."""
    facts = Facts()
    for node in holders:
        facts.write_metadata(node, batch(0, 1))

    facts.member(
        1, is_leader=False, quorum_epoch=2, voted_for=3, high_watermark=1, applied_end_offset=1
    )

    assert facts.found() == found


def test_one_that_did_not_lead_commits_nothing() -> None:
    facts = Facts()
    for node in (1, 2):
        facts.write_metadata(node, batch(0, 1))

    facts.member(2, quorum_epoch=2, voted_for=3, high_watermark=1, applied_end_offset=1)

    assert facts.found() == {METADATA_COMMITTED.name}


def test_a_power_loss_is_an_excuse_with_a_floor() -> None:
    facts = Facts()
    facts.now_us = 7

    facts.checker.on_down(2, floors={P: 3}, because="power loss")

    assert facts.checker.excuses()[-1] == TailLost(
        at_us=7, partition=P, broker_id=2, floor_offset=3, because="power loss"
    )


def test_a_lost_tail_is_an_excuse_until_the_replica_has_everything_again() -> None:
    facts = Facts()
    facts.replicated(2)
    facts.checker.on_down(3, floors={P: 1}, because="power loss")
    facts.restart(3)
    facts.append(3, cut_to=1)
    facts.checker.check_step()
    (lost,) = tails(facts)
    assert lost.until_us is None

    facts.now_us = 9
    facts.append(3, batch(1))
    facts.checker.check_step()

    (lost,) = tails(facts)
    assert lost.until_us == 9


def test_after_an_unclean_election_the_lost_part_is_no_longer_asked_for() -> None:
    facts = Facts()
    facts.replicated(3)
    facts.append(3, cut_to=1)
    facts.metadata(isr=frozenset({1, 2}), allows_unclean=True)
    facts.elect(3, 1, isr=frozenset({3}))

    assert facts.checker.model.committed_log(P).end_offset == 1
    assert facts.found() == set()


def random_step(facts: Facts, random: Random) -> None:
    """Something that may happen, right or wrong."""
    node = random.choice(NODES)
    log_copy = facts.checker.model.log_copy(P, node)
    what = random.choice(("append", "append", "append", "cut", "commit", "isr", "elect", "fence"))
    if what == "append":
        by = random.choice("aaaaaaaaab")
        facts.append(node, batch(log_copy.end_offset, facts.partition.leader_epoch, by=by))
    elif what == "cut":
        facts.append(node, cut_to=random.randint(0, log_copy.end_offset))
    elif what == "commit":
        facts.commit(node, min(log_copy.end_offset, facts.replicas[node].high_watermark + 1))
    elif what == "isr":
        isr = frozenset(random.sample(NODES, random.randint(1, 3)))
        facts.metadata(isr=isr, eligible=frozenset(random.sample(NODES, random.randint(0, 1))))
    elif what == "elect":
        facts.elect(node, facts.partition.leader_epoch + random.randint(0, 1))
    else:
        facts.restart(node)


@pytest.mark.parametrize("seed", range(40))
def test_steps_and_full_checks_agree_on_random_lives(seed: int) -> None:
    step, everything = Facts(), Facts()
    for facts in (step, everything):
        random = Random(seed)
        for _ in range(30):
            random_step(facts, random)
            if facts is step:
                facts.checker.check_step()
            else:
                facts.checker.check_all()

    expected = [(a.name, a.text) for a in everything.checker.anomalies]
    assert [(a.name, a.text) for a in step.checker.anomalies] == expected
    assert expected, "a life that breaks nothing shows nothing"
