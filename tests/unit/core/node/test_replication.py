"""Records travel from leader to followers, and count when everyone in sync has them."""

from __future__ import annotations

import pytest

from tests.unit.core.node.brokers import Brokers
from tidelog.core.model.errors import ErrorCode


def test_followers_copy_what_the_leader_appends() -> None:
    cluster = Brokers(1, 2, 3)
    first = cluster.produce(1, "one")
    second = cluster.produce(1, "two")

    assert (first.code, first.partition.base_offset) == (ErrorCode.NONE, 0)
    assert (second.code, second.partition.base_offset) == (ErrorCode.NONE, 1)
    assert cluster.data(1) == cluster.data(2) == cluster.data(3)
    assert cluster.batches(3) == [(0, 0), (1, 0)]


def test_an_acknowledgement_waits_for_every_in_sync_replica_however_small_the_minimum() -> None:
    cluster = Brokers(1, 2, 3)
    cluster.held = {(1, 3)}
    asked = cluster.produce(1, "one")

    assert (cluster.end(2), cluster.end(3)) == (1, 0)
    assert not asked.is_answered
    assert cluster.high_watermark(1) == 0

    cluster.held.clear()
    cluster.run()
    assert asked.code == ErrorCode.NONE
    assert cluster.high_watermark(1) == 1


def test_acks_of_one_do_not_wait_for_anybody() -> None:
    cluster = Brokers(1, 2)
    cluster.held = {(1, 2)}
    asked = cluster.produce(1, "one", acks=1)

    assert asked.partition.base_offset == 0
    assert cluster.high_watermark(1) == 0


@pytest.mark.scenario("D3-O4")
def test_consumers_see_nothing_before_everyone_in_sync_has_it() -> None:
    cluster = Brokers(1, 2)
    cluster.held = {(1, 2)}
    cluster.produce(1, "one", acks=1)

    now = cluster.client(1).fetch(0)
    parked = cluster.client(1).fetch(0, wait_ms=500)
    assert now.values == []
    assert not parked.is_answered

    cluster.held.clear()
    cluster.run()
    assert parked.values == ["one"]


def test_a_follower_learns_the_high_watermark_when_its_fetch_has_waited_long_enough() -> None:
    cluster = Brokers(1, 2)
    cluster.produce(1, "one")
    assert (cluster.high_watermark(1), cluster.high_watermark(2)) == (1, 0)

    cluster.pass_time(500)
    assert cluster.high_watermark(2) == 1


def test_a_follower_that_is_asked_to_produce_names_the_leader_and_where_it_is() -> None:
    cluster = Brokers(1, 2)
    asked = cluster.produce(2, "one")

    assert asked.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    leader = asked.partition.current_leader
    assert (leader.leader_id, leader.leader_epoch) == (1, 0)
    assert [(n.node_id, n.host, n.port) for n in asked.answer.node_endpoints] == [
        (1, "host-1", 9092)
    ]


def test_a_follower_shows_its_own_end_to_whoever_debugs_it() -> None:
    cluster = Brokers(1, 2)
    cluster.held = {(1, 2)}
    cluster.produce(1, "one", acks=1)

    assert cluster.client(2).offset(replica_id=-2).partition.offset == 0
    assert cluster.client(1).offset(replica_id=-2).partition.offset == 1
    assert cluster.client(2).offset().code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_follower_fetches_all_its_partitions_with_one_request_at_a_time() -> None:
    cluster = Brokers(1, 2)
    frames: list[str] = []
    post = cluster.post

    def counted(source: int, target: int, kind: str, what: tuple[object, ...]) -> None:
        if (source, target) in {(1, 2), (2, 1)}:
            frames.append(kind)
        post(source, target, kind, what)

    cluster.post = counted  # type: ignore[method-assign]
    for number in range(5):
        cluster.produce(1, f"{number}")

    assert frames == ["answer", "frame"] * 5


def test_time_is_up_for_a_produce_request_that_a_follower_does_not_cover() -> None:
    cluster = Brokers(1, 2)
    cluster.held = {(1, 2)}
    asked = cluster.produce(1, "one", timeout_ms=1_000)

    cluster.pass_time(999)
    assert not asked.is_answered
    cluster.pass_time(1)
    assert asked.code == ErrorCode.REQUEST_TIMED_OUT


def test_deleted_records_are_answered_for_when_the_followers_have_deleted_them_too() -> None:
    cluster = Brokers(1, 2, 3)
    for number in range(4):
        cluster.produce(1, f"{number}")
    cluster.held = {(1, 3)}
    asked = cluster.client(1).delete_before(3)
    cluster.run()

    assert cluster.partition(1).log_start_offset == 3
    assert cluster.partition(2).log_start_offset == 3
    assert not asked.is_answered

    cluster.held.clear()
    cluster.run()
    assert (asked.code, asked.partition.low_watermark) == (ErrorCode.NONE, 3)


def test_a_deletion_that_a_follower_does_not_hear_of_times_out_though_the_leader_did_it() -> None:
    cluster = Brokers(1, 2)
    cluster.produce(1, "one")
    cluster.held = {(1, 2)}
    asked = cluster.client(1).delete_before(1, timeout_ms=700)
    cluster.pass_time(700)

    assert (asked.code, asked.partition.low_watermark) == (ErrorCode.REQUEST_TIMED_OUT, 0)
    assert cluster.partition(1).log_start_offset == 1


def test_a_deletion_does_not_wait_for_a_fenced_follower() -> None:
    cluster = Brokers(1, 2, 3)
    cluster.produce(1, "one")
    cluster.held = {(1, 3)}
    cluster.fence(3)
    asked = cluster.client(1).delete_before(1)
    cluster.run()

    assert (asked.code, asked.partition.low_watermark) == (ErrorCode.NONE, 1)
