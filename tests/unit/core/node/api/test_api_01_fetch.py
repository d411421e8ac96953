"""Fetch: what clients read and when, what is refused, and how the metadata log is fetched."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.core.metadata.given import topic_id
from tests.unit.core.node.broker_clients import NUMBER, TOPIC, Client, SentRequest
from tests.unit.core.node.brokers import Brokers
from tests.unit.core.node.quorums import QuorumCluster
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import METADATA_TOPIC_ID
from tidelog.core.node.api import api_01_fetch as api
from tidelog.core.wire.messages.api_01_fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)


@pytest.fixture
def cluster() -> Brokers:
    """Broker 1 leads, and two records are committed."""
    cluster = Brokers(1, 2)
    cluster.produce(1, "one")
    cluster.produce(1, "two")
    return cluster


def read(client: Client, *, version: int, number: int = NUMBER, **more: Any) -> SentRequest:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000_000)
    topic = FetchTopic(topic=TOPIC, topic_id=topic_id(number), partitions=[partition])
    return client.ask(FetchRequest(topics=[topic], **more), version)


@pytest.mark.parametrize("version", api.VERSIONS)
def test_committed_records_are_read_in_every_version(cluster: Brokers, version: int) -> None:
    reply = read(cluster.client(1), version=version)

    assert reply.values == ["one", "two"]
    assert (reply.code, reply.partition.high_watermark) == (ErrorCode.NONE, 2)


@pytest.mark.scenario("D3-R2")
@pytest.mark.parametrize(
    ("claimed", "error", "diverges"),
    [
        ({"current_leader_epoch": 0, "fetch_offset": 1}, ErrorCode.FENCED_LEADER_EPOCH, False),
        ({"current_leader_epoch": 2, "fetch_offset": 1}, ErrorCode.UNKNOWN_LEADER_EPOCH, False),
        (
            {"current_leader_epoch": 1, "fetch_offset": 7, "last_fetched_epoch": 0},
            ErrorCode.NONE,
            True,
        ),
    ],
)
def test_a_followers_fetch_counts_only_after_its_epochs_were_compared(
    cluster: Brokers, claimed: dict[str, Any], error: ErrorCode, diverges: bool
) -> None:
    """Whatever it says to hold is of another history: nothing of it moves the high watermark."""
    cluster.elect(1, (1, 2))
    cluster.run()
    cluster.produce(1, "three")
    leadership = cluster.partition(1).leadership
    assert leadership is not None
    known = leadership.followers[2].log_end_offset
    assert known == 3

    partition = FetchPartition(partition=0, partition_max_bytes=1_000_000, **claimed)
    topic = FetchTopic(topic_id=topic_id(NUMBER), partitions=[partition])
    state = ReplicaState(replica_id=2, replica_epoch=-1)
    client = cluster.client(1)
    cluster.nodes[1].connections.open[client.connection].is_member = True
    reply = client.ask(FetchRequest(replica_state=state, topics=[topic]), 16)

    assert reply.code == error
    assert (reply.partition.diverging_epoch.epoch >= 0) == diverges
    assert not reply.values
    assert leadership.followers[2].log_end_offset == known, "it was counted"
    assert cluster.high_watermark(1) == 3


def test_a_reader_that_may_wait_is_answered_by_the_next_record(cluster: Brokers) -> None:
    reply = cluster.client(1).fetch(2, wait_ms=500)
    assert not reply.is_answered

    cluster.produce(1, "three")

    assert reply.values == ["three"]


def test_a_reader_that_waits_in_vain_is_answered_with_nothing(cluster: Brokers) -> None:
    reply = cluster.client(1).fetch(2, wait_ms=500)

    cluster.pass_time(500)

    assert reply.is_answered
    assert reply.values == []


@pytest.mark.parametrize(
    ("offset", "leader_epoch", "code"),
    [
        (3, -1, ErrorCode.OFFSET_OUT_OF_RANGE),
        (-1, -1, ErrorCode.OFFSET_OUT_OF_RANGE),
        (0, 1, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_a_refusal_does_not_wait(
    cluster: Brokers, offset: int, leader_epoch: int, code: ErrorCode
) -> None:
    reply = cluster.client(1).fetch(offset, leader_epoch=leader_epoch, wait_ms=500)

    assert reply.code == code
    assert reply.values == []


def test_who_knows_an_old_leader_epoch_is_fenced(cluster: Brokers) -> None:
    cluster.elect(1, [1, 2])
    cluster.run()

    assert cluster.client(1).fetch(0, leader_epoch=0).code == ErrorCode.FENCED_LEADER_EPOCH


def test_a_follower_serves_only_versions_that_may_read_from_one(cluster: Brokers) -> None:
    cluster.pass_time(500)

    assert read(cluster.client(2), version=10).code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert read(cluster.client(2), version=11).values == ["one", "two"]


def test_a_topic_id_that_nobody_knows_is_refused(cluster: Brokers) -> None:
    reply = read(cluster.client(1), version=api.VERSIONS[-1], number=NUMBER + 1)

    assert reply.code == ErrorCode.UNKNOWN_TOPIC_ID


def test_an_isolation_level_that_does_not_exist_is_refused_as_a_whole(cluster: Brokers) -> None:
    """Kafka stumbles over it; before version 7 there is no error code for the whole answer."""
    new = read(cluster.client(1), version=7, isolation_level=2)
    assert (new.answer.error_code, new.answer.responses) == (ErrorCode.UNKNOWN_SERVER_ERROR, [])

    old = read(cluster.client(1), version=6, isolation_level=2)
    assert old.code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_session_that_nobody_knows_is_refused(cluster: Brokers) -> None:
    reply = read(cluster.client(1), version=7, session_id=77, session_epoch=1)

    assert reply.answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


# The metadata log has its own rules


def fetched(
    quorum: QuorumCluster, node_id: int, *, offset: int, newest: int, quorum_epoch: int = 1
) -> PartitionData:
    partition = FetchPartition(
        partition=0,
        current_leader_epoch=quorum_epoch,
        fetch_offset=offset,
        last_fetched_epoch=newest,
        partition_max_bytes=2**20,
        high_watermark=-1,
    )
    question = FetchRequest(
        replica_state=ReplicaState(replica_id=9),
        topics=[FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[partition])],
    )
    return quorum.ask(node_id, question, FetchResponse).responses[0].partitions[0]


def test_a_fetch_is_answered_by_the_leader_of_that_epoch_alone(quorum: QuorumCluster) -> None:
    assert fetched(quorum, 1, offset=0, newest=0).records
    follower = fetched(quorum, 2, offset=0, newest=0)
    assert follower.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (follower.current_leader.leader_id, follower.current_leader.leader_epoch) == (1, 1)
    past = fetched(quorum, 1, offset=0, newest=0, quorum_epoch=0)
    assert past.error_code == ErrorCode.FENCED_LEADER_EPOCH
    future = fetched(quorum, 1, offset=0, newest=0, quorum_epoch=2)
    assert future.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert fetched(quorum, 1, offset=0, newest=2).error_code == ErrorCode.INVALID_REQUEST
    assert fetched(quorum, 1, offset=-1, newest=0).error_code == ErrorCode.INVALID_REQUEST


def test_a_log_that_went_its_own_way_is_told_where_to_cut(quorum: QuorumCluster) -> None:
    end_offset = quorum.node(1).metadata.log.log_end_offset

    result = fetched(quorum, 1, offset=end_offset + 7, newest=1)

    assert (result.diverging_epoch.epoch, result.diverging_epoch.end_offset) == (1, end_offset)
    assert not result.records
    leadership = quorum.node(1).quorum.machine.leadership
    assert leadership is not None and 9 not in leadership.observers, "it acknowledged nothing"


def test_whoever_is_before_the_log_is_sent_to_the_snapshot(quorum: QuorumCluster) -> None:
    newest = quorum.take_snapshot()

    answer = fetched(quorum, 1, offset=0, newest=0)

    assert answer.snapshot_id.end_offset == newest.end_offset
