"""Who is in sync: slow followers leave, those who caught up return, and the minimum is kept."""

from __future__ import annotations

import pytest

from tests.unit.core.metadata.given import state
from tests.unit.core.node.brokers import LAG_MS, Brokers
from tidelog.core.model.errors import ErrorCode
from tidelog.core.replication.events import IsrCommitted, IsrProposed, IsrRefused


def isr(cluster: Brokers, broker_id: int = 1) -> tuple[int, ...]:
    return cluster.partition(broker_id).isr


@pytest.mark.scenario("X-39")
def test_a_slow_follower_leaves_the_set_and_what_waited_for_it_is_acknowledged() -> None:
    cluster = Brokers(1, 2, 3)
    cluster.held = {(1, 3)}
    asked = cluster.produce(1, "one", timeout_ms=60_000)

    cluster.pass_time(LAG_MS)
    assert isr(cluster) == (1, 2, 3)
    assert not asked.is_answered

    cluster.pass_time(LAG_MS // 2)
    assert isr(cluster) == isr(cluster, 2) == (1, 2)
    assert asked.code == ErrorCode.NONE


@pytest.mark.scenario("X-39")
def test_a_follower_that_has_caught_up_returns_to_the_set() -> None:
    cluster = Brokers(1, 2, 3)
    cluster.held = {(1, 3)}
    cluster.produce(1, "one")
    cluster.pass_time(2 * LAG_MS)
    assert isr(cluster) == (1, 2)

    cluster.held.clear()
    cluster.run()
    assert isr(cluster) == (1, 2, 3)
    assert cluster.data(3) == cluster.data(1)


def test_a_follower_of_a_quiet_partition_stays_in_the_set_when_a_record_comes() -> None:
    """It fetches all the time, without mentioning the partition in which nothing moves."""
    cluster = Brokers(1, 2)
    cluster.produce(1, "one")
    cluster.pass_time(4 * LAG_MS)
    before = cluster.now_ms
    cluster.held = {(1, 2)}
    cluster.produce(1, "two", acks=1)
    cluster.pass_time(LAG_MS // 2 + 1)

    assert isr(cluster) == (1, 2)
    cluster.pass_time(LAG_MS)
    assert isr(cluster) == (1,)
    assert cluster.now_ms - before <= 2 * LAG_MS


def test_a_dead_follower_of_a_quiet_partition_leaves_the_set_once_there_is_a_record() -> None:
    cluster = Brokers(1, 2)
    cluster.produce(1, "one")
    cluster.kill(2)
    cluster.pass_time(4 * LAG_MS)
    assert isr(cluster) == (1, 2)

    cluster.produce(1, "two", acks=1)
    cluster.pass_time(LAG_MS // 2)
    assert isr(cluster) == (1,)


def test_a_busy_follower_that_is_never_quite_at_the_end_stays_in_the_set() -> None:
    cluster = Brokers(1, 2)
    for number in range(40):
        cluster.held = {(1, 2)}
        cluster.produce(1, f"{number}", acks=1)
        cluster.held.clear()
        cluster.pass_time(LAG_MS // 4)
        assert isr(cluster) == (1, 2)


@pytest.mark.scenario("X-13")
def test_below_the_minimum_nothing_becomes_visible_whatever_the_acks() -> None:
    cluster = Brokers(1, 2, 3)
    cluster.configure("min.insync.replicas", "2")
    cluster.produce(1, "before")
    cluster.pass_time(500)
    cluster.kill(2)
    cluster.kill(3)
    cluster.fence(3)
    parked = cluster.produce(1, "parked", timeout_ms=5_000)
    cluster.set_isr(1)
    cluster.run()

    refused = cluster.produce(1, "refused")
    taken = cluster.produce(1, "taken", acks=1)
    assert refused.code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert (taken.code, taken.partition.base_offset) == (ErrorCode.NONE, 2)
    assert cluster.client(1).fetch(0).values == ["before"]

    cluster.pass_time(5_000)
    assert parked.code == ErrorCode.REQUEST_TIMED_OUT

    cluster.start(2)
    cluster.run()
    assert isr(cluster) == (1, 2)
    assert cluster.client(1).fetch(0).values == ["before", "parked", "taken"]
    assert cluster.produce(1, "after").code == ErrorCode.NONE


def test_one_replica_is_enough_for_a_topic_that_has_only_one() -> None:
    cluster = Brokers(1)
    cluster.configure("min.insync.replicas", "2")
    assert cluster.produce(1, "one").code == ErrorCode.NONE


def test_a_minimum_that_is_changed_while_brokers_run_counts_at_once() -> None:
    cluster = Brokers(1, 2, 3, partition=state(1, 2, 3, isr=(1,)), grants_proposals=False)
    cluster.configure("min.insync.replicas", "2")
    assert cluster.produce(1, "one").code == ErrorCode.NOT_ENOUGH_REPLICAS

    cluster.configure("min.insync.replicas", "1")
    assert cluster.produce(1, "one").code == ErrorCode.NONE


@pytest.mark.scenario("X-12")
def test_until_a_shrinking_is_committed_everyone_is_waited_for() -> None:
    cluster = Brokers(1, 2, 3)
    cluster.grants_proposals = False
    cluster.held = {(1, 3)}
    asked = cluster.produce(1, "one", timeout_ms=60_000)
    cluster.pass_time(2 * LAG_MS)

    assert cluster.traces[1].of(IsrProposed)[-1].isr == (1, 2)
    assert cluster.high_watermark(1) == 0
    assert not asked.is_answered

    cluster.answer_wish()
    cluster.run()
    assert asked.code == ErrorCode.NONE


def test_whoever_left_the_set_is_waited_for_until_the_metadata_says_so_too() -> None:
    """The answer comes first; what the controller knew when it gave it is in the metadata.

    The minimum is 2 by then, so the follower that left is still eligible. A leader that commits
    alone until it hears of the minimum would lose that to an election of the follower.
    """
    cluster = Brokers(1, 2)
    cluster.grants_proposals = False
    cluster.held = {(1, 2)}
    asked = cluster.produce(1, "one", timeout_ms=60_000)
    cluster.pass_time(2 * LAG_MS)
    assert cluster.traces[1].of(IsrProposed)[-1].isr == (1,)
    cluster.configure("min.insync.replicas", "2")

    cluster.answer_wish()
    assert (isr(cluster), cluster.high_watermark(1)) == ((1, 2), 0)

    cluster.run()
    assert (isr(cluster), cluster.high_watermark(1)) == ((1,), 0)
    assert not asked.is_answered


@pytest.mark.scenario("X-11")
def test_a_proposed_member_counts_before_it_is_committed() -> None:
    cluster = Brokers(1, 2, partition=state(1, 2, isr=(1,)), grants_proposals=False)
    (proposed,) = cluster.traces[1].of(IsrProposed)
    assert proposed.isr == (1, 2)

    cluster.held = {(1, 2)}
    asked = cluster.produce(1, "one")
    assert isr(cluster) == (1,)
    assert not asked.is_answered

    cluster.held.clear()
    cluster.run()
    assert asked.code == ErrorCode.NONE


def test_an_answer_that_is_lost_is_asked_for_again_soon() -> None:
    cluster = Brokers(1, 2, partition=state(1, 2, isr=(1,)), grants_proposals=False)
    cluster.answer_wish(broken=True)
    assert not cluster.controller_requests

    cluster.pass_time(50)
    cluster.answer_wish()
    assert isr(cluster) == (1, 2)
    assert len(cluster.traces[1].of(IsrProposed)) == 1


@pytest.mark.scenario("X-10")
def test_a_replica_that_the_controller_does_not_let_in_is_not_waited_for() -> None:
    cluster = Brokers(1, 2, partition=state(1, 2, isr=(1,)), grants_proposals=False)
    cluster.answer_wish(ErrorCode.INELIGIBLE_REPLICA)

    assert cluster.traces[1].of(IsrRefused)[0].error == "INELIGIBLE_REPLICA"
    leadership = cluster.partition(1).leadership
    assert leadership is not None
    assert leadership.in_sync.pending is None
    assert leadership.in_sync.maximal == {1}


@pytest.mark.scenario("X-10")
@pytest.mark.parametrize("code", [ErrorCode.INVALID_UPDATE_VERSION, ErrorCode.FENCED_LEADER_EPOCH])
def test_a_leader_that_is_behind_keeps_the_larger_set_until_the_metadata_comes(
    code: ErrorCode,
) -> None:
    cluster = Brokers(1, 2, partition=state(1, 2, isr=(1,)), grants_proposals=False)
    cluster.answer_wish(code)
    cluster.pass_time(2 * LAG_MS)

    leadership = cluster.partition(1).leadership
    assert leadership is not None
    assert leadership.in_sync.maximal == {1, 2}
    assert not cluster.controller_requests

    cluster.set_isr(1, 2)
    assert leadership.in_sync.pending is None
    assert isr(cluster) == (1, 2)


def test_metadata_that_is_older_than_an_answer_changes_nothing() -> None:
    cluster = Brokers(1, 2, partition=state(1, 2, isr=(1,)))
    assert isr(cluster) == (1, 2)
    committed = cluster.traces[1].of(IsrCommitted)
    assert [(each.isr, each.partition_epoch) for each in committed] == [((1, 2), 1)]


@pytest.mark.scenario("X-9")
def test_the_former_self_of_a_restarted_broker_is_refused() -> None:
    cluster = Brokers(1, 2, partition=state(1, 2, isr=(1,)), grants_proposals=False)
    proposed = cluster.controller_requests[0].request.topics[0].partitions[0]
    assert [(m.broker_id, m.broker_epoch) for m in proposed.new_isr_with_epochs] == [(1, 1), (2, 2)]

    cluster.answer_wish(ErrorCode.INELIGIBLE_REPLICA)
    cluster.register(2, broker_epoch=77)
    cluster.produce(1, "one", acks=1)
    assert cluster.end(2) == 0  # it fetches with the broker epoch of its former self
    assert not cluster.controller_requests

    cluster.nodes[2].broker_lifecycle.broker_epoch = 77
    cluster.pass_time(1_000)
    proposed = cluster.controller_requests[0].request.topics[0].partitions[0]
    assert [(m.broker_id, m.broker_epoch) for m in proposed.new_isr_with_epochs] == [
        (1, 1),
        (2, 77),
    ]


@pytest.mark.scenario("X-10")
def test_a_fenced_follower_may_copy_but_not_join() -> None:
    cluster = Brokers(1, 2, partition=state(1, 2, isr=(1,)), grants_proposals=False)
    cluster.answer_wish(ErrorCode.INELIGIBLE_REPLICA)
    cluster.fence(2)
    assert cluster.produce(1, "one").code == ErrorCode.NONE

    assert cluster.data(2) == cluster.data(1)
    assert not cluster.controller_requests
    assert isr(cluster) == (1,)


def test_a_replica_that_was_not_let_in_asks_again_with_its_next_fetch_though_nothing_moves() -> (
    None
):
    cluster = Brokers(1, 2, partition=state(1, 2, isr=(1,)), grants_proposals=False)
    cluster.answer_wish(ErrorCode.INELIGIBLE_REPLICA)
    assert not cluster.controller_requests

    cluster.pass_time(500)
    cluster.answer_wish()
    assert isr(cluster) == (1, 2)


def test_a_follower_that_is_let_in_again_returns_to_the_set_of_a_quiet_partition() -> None:
    cluster = Brokers(1, 2)
    cluster.produce(1, "one")
    cluster.pass_time(1_000)
    cluster.fence(2)
    cluster.set_isr(1)
    cluster.pass_time(1_000)
    assert isr(cluster) == (1,)

    cluster.unfence(2)
    cluster.run()
    assert isr(cluster) == (1, 2)


def test_a_follower_with_another_broker_epoch_returns_to_the_set_of_a_quiet_partition() -> None:
    """It was unregistered while it lived, and registered again: its fetches go on, in one session,
    and mention nothing, because nothing moves."""
    cluster = Brokers(1, 2)
    cluster.produce(1, "one")
    cluster.pass_time(1_000)

    cluster.register(2, broker_epoch=77)
    cluster.set_isr(1)
    cluster.nodes[2].broker_lifecycle.broker_epoch = 77
    cluster.pass_time(1_000)

    assert isr(cluster) == (1, 2)
