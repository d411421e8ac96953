"""Reading from a follower in the reader's rack (KIP-392)."""

from __future__ import annotations

import pytest

from tests.unit.core.node.brokers import Brokers
from tidelog.core.model.errors import ErrorCode

SELECTOR = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
RACKS = {1: "a", 2: "b", 3: "b"}


@pytest.fixture
def cluster() -> Brokers:
    cluster = Brokers(1, 2, 3, settings=SELECTOR, racks=RACKS)
    cluster.produce(1, "one")
    return cluster


@pytest.mark.scenario("D5-R11")
def test_a_reader_is_sent_to_the_follower_in_its_rack(cluster: Brokers) -> None:
    sent = cluster.client(1).fetch(0, rack="b")
    assert sent.values == []
    assert sent.partition.preferred_read_replica == 2
    assert cluster.client(2).fetch(0, rack="b").values == ["one"]


@pytest.mark.parametrize("rack", ["", "a", "elsewhere"])
def test_a_reader_without_a_follower_in_its_rack_reads_from_the_leader(
    cluster: Brokers, rack: str
) -> None:
    asked = cluster.client(1).fetch(0, rack=rack)
    assert asked.values == ["one"]
    assert asked.partition.preferred_read_replica == -1


def test_without_the_selector_everybody_reads_from_the_leader() -> None:
    cluster = Brokers(1, 2, racks={1: "a", 2: "b"})
    cluster.produce(1, "one")
    assert cluster.client(1).fetch(0, rack="b").values == ["one"]


def test_a_follower_that_left_the_set_or_is_fenced_is_not_named(cluster: Brokers) -> None:
    cluster.fence(2)
    assert cluster.client(1).fetch(0, rack="b").partition.preferred_read_replica == 3
    cluster.grants_proposals = False
    cluster.set_isr(1, 2)
    assert cluster.client(1).fetch(0, rack="b").partition.preferred_read_replica == -1


def test_a_follower_that_has_not_come_so_far_is_not_named(cluster: Brokers) -> None:
    cluster.held = {(1, 2), (1, 3)}
    cluster.produce(1, "two", acks=1)
    assert cluster.client(1).fetch(1, rack="b").partition.preferred_read_replica == 2
    assert cluster.client(1).fetch(2, rack="b").partition.preferred_read_replica == -1


@pytest.mark.scenario("D5-R11")
def test_a_reader_at_a_follower_sees_what_is_committed_as_soon_as_the_follower_knows(
    cluster: Brokers,
) -> None:
    waiting = cluster.client(2).fetch(1, rack="b", wait_ms=500)
    cluster.produce(1, "two")
    assert waiting.values == ["two"]

    cluster.held = {(1, 3)}
    cluster.produce(1, "three", acks=1)
    assert cluster.end(2) == 3
    assert cluster.client(2).fetch(2, rack="b").values == []


def test_a_reader_beyond_the_followers_end_is_sent_back(cluster: Brokers) -> None:
    asked = cluster.client(2).fetch(5, rack="b")
    assert asked.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_reader_that_cannot_be_sent_to_followers_may_not_read_there(cluster: Brokers) -> None:
    assert cluster.client(2).fetch(0, version=10).code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert cluster.client(2).fetch(0, version=11).code == ErrorCode.NONE
