"""Another leader: it changes no byte of its own log, and the others adapt theirs to it."""

from __future__ import annotations

import pytest

from tests.unit.core.node.brokers import Brokers
from tidelog.core.model.errors import ErrorCode
from tidelog.core.replication.events import BecameLeader, FollowerTruncated


def values(cluster: Brokers, broker_id: int) -> list[str]:
    """All that is committed, as a consumer reads it."""
    return cluster.client(broker_id).fetch(0).values


def diverged() -> Brokers:
    """Document 2: A has M1 M2 M3, B has M1 M2, C has M1; then A dies and B leads."""
    cluster = Brokers(1, 2, 3)
    cluster.produce(1, "M1")
    cluster.held = {(1, 3)}
    cluster.produce(1, "M2", acks=1)
    cluster.held = {(1, 2), (1, 3)}
    cluster.produce(1, "M3", acks=1)
    assert [cluster.end(broker_id) for broker_id in (1, 2, 3)] == [3, 2, 1]
    assert cluster.high_watermark(1) == 1
    cluster.kill(1)
    cluster.held.clear()
    cluster.elect(2, (2, 3))
    return cluster


@pytest.mark.scenario("D2-S5")
def test_a_new_leader_changes_no_byte_and_records_where_its_leader_epoch_begins() -> None:
    cluster = Brokers(1, 2, 3)
    cluster.produce(1, "M1")
    before = cluster.data(2)
    cluster.kill(1)
    cluster.elect(2, (2, 3))

    assert cluster.data(2) == before
    assert cluster.epochs(2) == [(0, 0), (1, 1)]
    (became,) = cluster.traces[2].of(BecameLeader)
    assert (became.leader_epoch, became.start_offset) == (1, 1)


@pytest.mark.scenario("D2-C2")
@pytest.mark.scenario("D2-T3")
def test_a_returning_leader_drops_what_its_successor_never_had() -> None:
    cluster = diverged()
    cluster.run()
    assert cluster.produce(2, "M4").partition.base_offset == 2

    cluster.start(1)
    cluster.run()
    assert cluster.data(1) == cluster.data(2) == cluster.data(3)
    assert cluster.batches(1) == [(0, 0), (1, 0), (2, 1)]
    assert cluster.epochs(1) == cluster.epochs(2) == cluster.epochs(3) == [(0, 0), (1, 2)]
    assert cluster.partition(2).isr == (2, 3, 1)
    (cut,) = cluster.traces[1].of(FollowerTruncated)
    assert (cut.from_end_offset, cut.to_end_offset, cut.dropped) == (3, 2, ((2, 3, 0),))


@pytest.mark.scenario("D3-U7")
def test_a_log_is_cut_by_leader_epochs_and_not_by_the_high_watermark() -> None:
    cluster = Brokers(1, 2)
    for number in range(5):
        cluster.produce(1, f"{number}")
    cluster.held = {(1, 2)}
    cluster.produce(1, "only here", acks=1)
    cluster.kill(1)
    cluster.held.clear()
    cluster.elect(2, (2,))
    cluster.start(1)
    assert cluster.high_watermark(1) == 0  # no checkpoint was written: it knows nothing
    cluster.run()

    (cut,) = cluster.traces[1].of(FollowerTruncated)
    assert cut.to_end_offset == 5


@pytest.mark.scenario("X-1")
def test_a_restarted_follower_keeps_what_it_has_and_may_lead_with_it() -> None:
    cluster = Brokers(1, 2)
    cluster.produce(1, "m1")
    assert cluster.produce(1, "m2").code == ErrorCode.NONE
    assert cluster.high_watermark(2) < 2
    cluster.kill(2)
    cluster.start(2)
    assert cluster.end(2) == 2
    cluster.kill(1)
    cluster.elect(2, (2,))
    cluster.run()

    assert values(cluster, 2) == ["m1", "m2"]


@pytest.mark.scenario("X-3")
def test_leaders_in_quick_succession_with_records_that_the_other_never_saw() -> None:
    """KIP-279: B asks for leader epoch 1, of which A has never heard."""
    cluster = Brokers(1, 2)
    cluster.produce(1, "both")
    cluster.held = {(1, 2), (2, 1)}
    cluster.produce(1, "A in epoch 0", acks=1)
    cluster.elect(2, (2,), to=(2,))
    second = cluster.records[-1]
    for number in range(3):
        cluster.produce(2, f"B in epoch 1, {number}", acks=1)
    cluster.tell(1, second)
    third = cluster.elect(1, (1,))
    assert third.leader == 1
    cluster.produce(1, "A in epoch 2", acks=1)
    cluster.held.clear()
    cluster.pass_time(2_000)

    assert cluster.data(1) == cluster.data(2)
    assert cluster.batches(2) == [(0, 0), (1, 0), (2, 2)]
    assert cluster.epochs(1) == cluster.epochs(2) == [(0, 0), (2, 2)]


@pytest.mark.scenario("D1-V2")
@pytest.mark.scenario("D1-V3")
def test_a_retried_batch_is_recognised_by_the_new_leader() -> None:
    cluster = Brokers(1, 2, 3)
    first = cluster.produce(1, "100", producer_id=1234, sequence=0)
    assert first.code == ErrorCode.NONE
    cluster.kill(1)
    cluster.elect(2, (2, 3))
    cluster.run()

    again = cluster.produce(2, "100", producer_id=1234, sequence=0)
    assert (again.code, again.partition.base_offset) == (ErrorCode.NONE, 0)
    assert cluster.end(2) == 1

    after = cluster.produce(2, "110", producer_id=1234, sequence=1)
    assert (after.code, after.partition.base_offset) == (ErrorCode.NONE, 1)


def test_a_cut_takes_the_producers_state_with_it() -> None:
    cluster = Brokers(1, 2)
    cluster.held = {(1, 2)}
    cluster.produce(1, "lost", acks=1, producer_id=9, sequence=0)
    cluster.kill(1)
    cluster.held.clear()
    cluster.elect(2, (2,))
    cluster.start(1)
    cluster.run()
    assert cluster.end(1) == 0

    cluster.elect(1, (1, 2))
    cluster.run()
    again = cluster.produce(1, "lost", producer_id=9, sequence=0)
    assert (again.code, again.partition.base_offset) == (ErrorCode.NONE, 0)
    assert cluster.batches(1) == [(0, 2)]


def test_what_waits_at_a_leader_that_is_no_longer_one_is_sent_to_the_new_one() -> None:
    cluster = Brokers(1, 2, 3)
    cluster.held = {(1, 2), (1, 3)}
    produced = cluster.client(1).produce("one")
    fetched = cluster.client(1).fetch(0, wait_ms=500, leader_epoch=0)
    cluster.held.clear()
    cluster.elect(2, (2, 3, 1))

    assert produced.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert fetched.code == ErrorCode.FENCED_LEADER_EPOCH
    for asked in (produced, fetched):
        leader = asked.partition.current_leader
        assert (leader.leader_id, leader.leader_epoch) == (2, 1)
        assert [node.host for node in asked.answer.node_endpoints] == ["host-2"]


@pytest.mark.scenario("D3-T11")
@pytest.mark.scenario("X-4")
def test_stale_and_future_leader_epochs_are_told_apart() -> None:
    cluster = Brokers(1, 2)
    cluster.elect(2, (2, 1), to=(2,))

    stale = cluster.client(2).fetch(0, leader_epoch=0)
    future = cluster.client(1).fetch(0, leader_epoch=1)
    assert stale.code == ErrorCode.FENCED_LEADER_EPOCH
    assert future.code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert stale.partition.current_leader.leader_id == 2


def test_the_latest_offset_is_not_available_before_the_leader_epoch_is_reached() -> None:
    cluster = Brokers(1, 2, 3)
    cluster.produce(1, "one")
    cluster.pass_time(500)
    cluster.produce(1, "two")
    assert cluster.high_watermark(2) == 1
    cluster.kill(1)
    cluster.held = {(3, 2)}
    cluster.elect(2, (2, 3))
    assert cluster.client(2).offset().code == ErrorCode.OFFSET_NOT_AVAILABLE
    assert cluster.client(2).fetch(1).values == []

    cluster.held.clear()
    cluster.run()
    assert cluster.client(2).offset().partition.offset == 2


@pytest.mark.scenario("D3-C7b")
def test_after_an_unclean_election_a_follower_drops_even_what_was_committed() -> None:
    cluster = Brokers(1, 2)
    cluster.produce(1, "one")
    cluster.kill(2)
    cluster.fence(2)
    cluster.set_isr(1)
    for number in range(3):
        cluster.produce(1, f"{number}")
    assert cluster.high_watermark(1) == 4
    cluster.start(2)
    cluster.elect(2, (2,))
    cluster.run()

    (cut,) = cluster.traces[1].of(FollowerTruncated)
    assert (cut.to_end_offset, cut.high_watermark) == (1, 4)
    assert cluster.high_watermark(1) <= 1


def test_without_a_leader_nobody_is_asked_and_nothing_is_taken() -> None:
    cluster = Brokers(1, 2)
    cluster.produce(1, "one")
    cluster.elect(None, (1,))
    asked = cluster.produce(1, "two")

    assert asked.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert asked.partition.current_leader.leader_id == -1
    assert cluster.nodes[2].fetcher_links.leaders() == []


def test_a_leader_epoch_without_records_leaves_no_trace_in_the_next_one() -> None:
    cluster = Brokers(1, 2)
    cluster.produce(1, "one")
    cluster.elect(2, (2, 1))
    cluster.run()
    cluster.elect(1, (1, 2))
    cluster.run()
    cluster.produce(1, "two")

    assert cluster.epochs(1) == cluster.epochs(2) == [(0, 0), (2, 1)]
    assert cluster.data(1) == cluster.data(2)
