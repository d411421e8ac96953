"""Produce: what is appended, when it is answered, and what is refused before the log sees it."""

from __future__ import annotations

import pytest

from tests.unit.core.metadata.given import state, topic, topic_id
from tests.unit.core.node.broker_clients import NUMBER, TOPIC, Client, SentRequest
from tests.unit.core.node.brokers import Brokers
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import api_00_produce as api
from tidelog.core.wire.messages.api_00_produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tidelog.core.wire.records import NewRecord, build

LAST = api.VERSIONS[-1]
RECORD = NewRecord(b"one", timestamp_ms=1_800_000_000_000)
BATCH = bytes(build([RECORD]))
ZSTD_BATCH = bytes(build([RECORD], compression=4))
TRANSACTIONAL_BATCH = bytes(
    build([RECORD], producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
)


def produce(
    client: Client,
    records: bytes | None = BATCH,
    *,
    version: int = LAST,
    acks: int = 1,
    number: int = NUMBER,
    index: int = 0,
    transactional_id: str | None = None,
) -> SentRequest:
    data = PartitionProduceData(index=index, records=records)
    of_topic = TopicProduceData(name=TOPIC, topic_id=topic_id(number), partition_data=[data])
    request = ProduceRequest(
        transactional_id=transactional_id, acks=acks, timeout_ms=1_000, topic_data=[of_topic]
    )
    return client.ask(request, version)


@pytest.fixture
def cluster() -> Brokers:
    return Brokers(1, 2)


@pytest.mark.parametrize("version", api.VERSIONS)
def test_a_batch_is_appended_and_its_offset_answered_in_every_version(
    cluster: Brokers, version: int
) -> None:
    client = cluster.client(1)
    first, second = (produce(client, version=version) for _ in range(2))

    assert [reply.code for reply in (first, second)] == [ErrorCode.NONE, ErrorCode.NONE]
    assert [reply.partition.base_offset for reply in (first, second)] == [0, 1]
    assert cluster.end(1) == 2


def test_acks_of_all_are_answered_when_every_in_sync_replica_has_the_batch(
    cluster: Brokers,
) -> None:
    cluster.held = {(1, 2)}
    reply = produce(cluster.client(1), acks=-1)
    cluster.run()
    assert not reply.is_answered

    cluster.held.clear()
    cluster.run()

    assert (reply.code, reply.partition.base_offset) == (ErrorCode.NONE, 0)


def test_acks_of_all_that_nobody_confirms_time_out_and_the_batch_stays(cluster: Brokers) -> None:
    cluster.held = {(1, 2)}
    reply = produce(cluster.client(1), acks=-1)

    cluster.pass_time(1_000)

    assert reply.code == ErrorCode.REQUEST_TIMED_OUT
    assert cluster.end(1) == 1


def test_acks_of_0_are_never_answered(cluster: Brokers) -> None:
    client = cluster.client(1)
    silent = produce(client, acks=0)
    assert cluster.end(1) == 1

    client.ask(silent.message, LAST)

    assert not silent.is_answered
    assert client.connection in cluster.outboxes[1].peers


def test_a_refusal_with_acks_of_0_closes_the_connection(cluster: Brokers) -> None:
    client = cluster.client(2)
    produce(client, acks=0)

    assert client.connection not in cluster.outboxes[2].peers


def test_with_too_few_in_sync_replicas_acks_of_all_are_refused_before_the_append() -> None:
    cluster = Brokers(1, 2, settings={"min.insync.replicas": "2"})
    cluster.set_isr(1)

    assert produce(cluster.client(1), acks=-1).code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert cluster.end(1) == 0
    assert produce(cluster.client(1), acks=1).code == ErrorCode.NONE


@pytest.mark.parametrize("acks", [-1, 1])
def test_a_leader_that_was_paused_takes_nothing_before_it_has_asked(
    cluster: Brokers, acks: int
) -> None:
    """Nor does it name a leader: it does not know who leads."""
    node, client = cluster.nodes[1], cluster.client(1)
    node.session_watch.on_paused(cluster.now_ms)

    reply = produce(client, acks=acks)

    assert reply.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert reply.partition.error_message == api.UNCONFIRMED
    assert reply.partition.current_leader.leader_id == -1
    assert cluster.end(1) == 0
    node.session_watch.is_confirmed = True
    assert produce(client).code == ErrorCode.NONE


def test_a_leader_that_was_paused_closes_the_connection_of_acks_0(cluster: Brokers) -> None:
    cluster.nodes[1].session_watch.on_paused(cluster.now_ms)
    client = cluster.client(1)

    produce(client, acks=0)

    assert client.connection not in cluster.outboxes[1].peers
    assert cluster.end(1) == 0


def test_who_asks_a_follower_hears_who_leads_and_where(cluster: Brokers) -> None:
    reply = produce(cluster.client(2))

    assert reply.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    leader = reply.partition.current_leader
    assert (leader.leader_id, leader.leader_epoch) == (1, 0)
    (endpoint,) = reply.answer.node_endpoints
    assert (endpoint.node_id, endpoint.port) == (1, 9092)
    assert cluster.end(2) == 0


@pytest.mark.parametrize("acks", [-2, 2, 7])
def test_acks_that_mean_nothing_are_refused(cluster: Brokers, acks: int) -> None:
    assert produce(cluster.client(1), acks=acks).code == ErrorCode.INVALID_REQUIRED_ACKS
    assert cluster.end(1) == 0


def test_topics_and_partitions_that_do_not_exist_are_refused(cluster: Brokers) -> None:
    client = cluster.client(1)

    assert produce(client, number=NUMBER + 1).code == ErrorCode.UNKNOWN_TOPIC_ID
    assert produce(client, index=1).code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_clients_do_not_write_to_internal_topics(cluster: Brokers) -> None:
    """Only coordinators do: a forged record would be loaded as a group's state."""
    cluster.apply(*topic("__consumer_offsets", 50, state(1, 2)))

    assert produce(cluster.client(1), number=50).code == ErrorCode.INVALID_TOPIC_EXCEPTION
    log = cluster.nodes[1].partitions.of_topic("__consumer_offsets")[0].log
    assert log.log_end_offset == 0


@pytest.mark.parametrize(
    ("records", "code"),
    [
        pytest.param(None, ErrorCode.INVALID_RECORD, id="no records"),
        pytest.param(BATCH + BATCH, ErrorCode.INVALID_RECORD, id="two batches"),
        pytest.param(BATCH[:-1] + b"\xff", ErrorCode.CORRUPT_MESSAGE, id="wrong checksum"),
        pytest.param(
            bytes(build([RECORD], producer_id=7, producer_epoch=0, base_sequence=0, control=True)),
            ErrorCode.INVALID_RECORD,
            id="a marker",
        ),
    ],
)
def test_anything_but_one_whole_batch_of_data_is_refused(
    cluster: Brokers, records: bytes | None, code: ErrorCode
) -> None:
    assert produce(cluster.client(1), records).code == code
    assert cluster.end(1) == 0


def test_zstd_needs_a_version_that_knows_it(cluster: Brokers) -> None:
    client = cluster.client(1)

    refused = produce(client, ZSTD_BATCH, version=api.ZSTD_FROM - 1)

    assert refused.code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert produce(client, ZSTD_BATCH, version=api.ZSTD_FROM).code == ErrorCode.NONE


@pytest.mark.parametrize(
    ("transactional_id", "code"),
    [
        (None, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        ("t", ErrorCode.NOT_ENOUGH_REPLICAS),
    ],
)
def test_a_transaction_that_nobody_coordinates_is_tried_again(
    cluster: Brokers, transactional_id: str | None, code: ErrorCode
) -> None:
    """There is no `__transaction_state` here, so there is nobody to ask."""
    reply = produce(cluster.client(1), TRANSACTIONAL_BATCH, transactional_id=transactional_id)

    assert reply.code == code
    assert cluster.end(1) == 0
