"""Ranges of a real cluster: whole, in pieces, and while their leader is killed."""

from __future__ import annotations

import pytest

import tidelog
from tests.process.cluster import UNHURRIED
from tidelog.client.admin.offsets import delete_records
from tidelog.client.admin.topics import create_topic
from tidelog.client.ranges.errors import Loss, RangeLost
from tidelog.client.shells.blocking_clients import Admin, Producer
from tidelog.client.shells.range_reader import RangeClient
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.record_batch import batches
from tidelog.core.wire.records import iterate

TOPIC = "orders"
P0 = TopicPartition(TOPIC, 0)
RECORDS = 3_000


def write(servers: str) -> None:
    with Admin({"bootstrap.servers": servers}) as admin:
        made = create_topic(TOPIC, partitions=1, replication_factor=3)
        assert admin.ask(made).error == 0
    with Producer({"bootstrap.servers": servers, "batch.size": 16_384}) as producer:
        for number in range(RECORDS):
            producer.send(TOPIC, b"%d" % number * 100, partition=0)


def offsets(records: memoryview) -> list[int]:
    return [record.offset for at, _ in batches(records) for record in iterate(records, at)]


def test_a_range_outlives_its_leader_and_tells_what_is_deleted() -> None:
    with tidelog.Cluster(brokers=3, settings=dict(UNHURRIED), faults=False) as cluster:
        servers = cluster.bootstrap_servers
        write(servers)
        settings: dict[str, str | int]
        settings = {"bootstrap.servers": servers, "max.partition.fetch.bytes": 65_536}
        with RangeClient(settings) as client:
            found: list[int] = []
            pieces = client.read(P0, start_offset=0, end_offset=RECORDS)
            found += offsets(next(pieces).records)
            leader = cluster.leader(TOPIC, 0)
            assert leader is not None
            cluster.kill(leader)
            count = 1
            for piece in pieces:
                found += offsets(piece.records)
                count += 1
            assert found == list(range(RECORDS)), "each once, in order"
            assert count > 3, "a range of many pieces"

            with Admin({"bootstrap.servers": servers}) as admin:
                admin.ask(delete_records(P0, before_offset=500))
            with pytest.raises(RangeLost) as lost:
                next(client.read(P0, start_offset=100, end_offset=700))
        assert (lost.value.kind, lost.value.log_start_offset) == (Loss.DELETED, 500)
        assert lost.value.high_watermark == RECORDS
