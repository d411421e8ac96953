"""Stories of a transactional producer that hold on any Kafka, in both transaction protocols."""

from __future__ import annotations

from typing import Any

import pytest

from tests.process.waiting import PATIENCE_S
from tidelog.client.admin.configs import ResourceKind, alter_configs
from tidelog.client.admin.topics import create_topic
from tidelog.client.consumer.fetched_records import ConsumerRecord
from tidelog.client.group.offset_requests import ConsumerGroupMetadata, OffsetAndMetadata
from tidelog.client.producer.transaction_errors import (
    IllegalTransactionState,
    ProducerFenced,
    TransactionAbortable,
)
from tidelog.client.shells.blocking_clients import Admin, Consumer, Producer, RecordRefused
from tidelog.client.shells.group_consumer import GroupConsumer
from tidelog.core.model.ids import TopicPartition

PARTITIONS = 2
MARKER_S = 0.1
"""A poll does not end for a marker, although the position moves past it."""


class TransactionStage:
    """One topic of a cluster, and producers of one transaction protocol."""

    def __init__(self, address: str, name: str, protocol: str) -> None:
        self.address = address
        self.topic = f"{name}-{protocol}"
        self.protocol = protocol
        self.create(self.topic)

    def create(self, topic: str) -> None:
        with Admin({"bootstrap.servers": self.address}) as admin:
            admin.ask(create_topic(topic, partitions=PARTITIONS, replication_factor=1))

    def producer(self, **more: Any) -> Producer:
        return Producer(
            {
                "bootstrap.servers": self.address,
                "transactional.id": f"{self.topic}-id",
                "tidelog.transaction.protocol": self.protocol,
                "max.block.ms": int(PATIENCE_S * 1_000),
                **{key.replace("_", "."): value for key, value in more.items()},
            }
        )

    def read(self, isolation: str = "read_committed", topic: str = "") -> list[ConsumerRecord]:
        """Everything that a reader gets now, by partition."""
        settings = {"bootstrap.servers": self.address, "isolation.level": isolation}
        names = [TopicPartition(topic or self.topic, index) for index in range(PARTITIONS)]
        records: list[ConsumerRecord] = []
        with Consumer({**settings, "auto.offset.reset": "earliest"}) as consumer:
            ends = consumer.end_offsets(names)
            for name in names:
                consumer.assign([name])
                consumer.seek(name, 0)
                while consumer.position(name) < ends[name]:
                    records += consumer.poll(MARKER_S)
        return records

    def values(self, isolation: str = "read_committed", topic: str = "") -> list[str]:
        return [(each.value or b"").decode() for each in self.read(isolation, topic)]


def commits_and_aborts(stage: TransactionStage) -> None:
    """What is committed is read, what is aborted is not, and both are in the log."""
    with stage.producer() as producer:
        with pytest.raises(IllegalTransactionState, match="init_transactions first"):
            producer.begin_transaction()
        producer.init_transactions()
        with pytest.raises(IllegalTransactionState, match="no transaction is open"):
            producer.send(stage.topic, b"outside")
        for values, commits in ((("a", "b"), True), (("c", "d"), False), (("e", "f"), True)):
            producer.begin_transaction()
            for index, value in enumerate(values):
                producer.send(stage.topic, value.encode(), partition=index)
            producer.commit_transaction() if commits else producer.abort_transaction()
        producer.begin_transaction()
        producer.commit_transaction()  # without any record there is nothing to be decided

    records = stage.read()
    assert [each.value for each in records] == [b"a", b"e", b"b", b"f"]
    producer_epochs = [each.producer_epoch for each in records[:2]]
    assert None not in producer_epochs
    is_classic = stage.protocol == "classic"
    assert (len(set(producer_epochs)) == 1) is is_classic, "version 2: an epoch per transaction"


def close_aborts(stage: TransactionStage) -> None:
    """A program that ends in the middle of a transaction has written nothing."""
    with stage.producer() as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(stage.topic, b"unfinished", partition=0).result(PATIENCE_S)

    assert stage.values() == []
    assert stage.values("read_uncommitted") == ["unfinished"]


def a_refused_record_spoils_its_transaction(stage: TransactionStage) -> None:
    """It can only be aborted, and the next one is as good as any."""
    with Admin({"bootstrap.servers": stage.address}) as admin:
        limit = {"max.message.bytes": "1000"}
        admin.ask(alter_configs(ResourceKind.TOPIC, stage.topic, limit))
    with stage.producer(linger_ms=0) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(stage.topic, b"small", partition=0).result(PATIENCE_S)
        too_large = producer.send(stage.topic, bytes(5_000), partition=0)
        with pytest.raises(RecordRefused, match="MESSAGE_TOO_LARGE"):
            too_large.result(PATIENCE_S)
        with pytest.raises(TransactionAbortable):
            producer.commit_transaction()
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send(stage.topic, b"good", partition=0)
        producer.commit_transaction()

    assert stage.values() == ["good"]


def fences(stage: TransactionStage) -> None:
    """The second producer of an id ends the first one's transaction, and its life."""
    with stage.producer() as first, stage.producer() as second:
        first.init_transactions()
        first.begin_transaction()
        first.send(stage.topic, b"old", partition=0).result(PATIENCE_S)
        second.init_transactions()
        second.begin_transaction()
        second.send(stage.topic, b"new", partition=0)
        second.commit_transaction()

        with pytest.raises(ProducerFenced):
            first.commit_transaction()
        with pytest.raises(ProducerFenced):
            first.begin_transaction()

    assert stage.values() == ["new"]


def consumes_transforms_and_produces(stage: TransactionStage) -> None:
    """Offsets and records count together, or not at all."""
    source = f"{stage.topic}-source"
    stage.create(source)
    with Producer({"bootstrap.servers": stage.address}) as plain:
        for number in range(6):
            plain.send(source, str(number).encode(), partition=0)
    settings: dict[str, str | bool] = {
        "bootstrap.servers": stage.address,
        "group.id": f"{stage.topic}-group",
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    with stage.producer() as producer:
        producer.init_transactions()
        for commits in (True, False, True):
            with GroupConsumer(settings, [source]) as consumer:
                taken = _poll(consumer, 2)
                producer.begin_transaction()
                for record in taken:
                    value = b"x" + (record.value or b"")
                    producer.send(stage.topic, value, partition=record.partition.index)
                offsets = {taken[-1].partition: OffsetAndMetadata(taken[-1].offset + 1)}
                producer.send_offsets_to_transaction(offsets, consumer.group_metadata)
                producer.commit_transaction() if commits else producer.abort_transaction()
        stranger = ConsumerGroupMetadata(f"{stage.topic}-group", 77, "nobody")
        producer.begin_transaction()
        with pytest.raises(TransactionAbortable, match=r"UNKNOWN_MEMBER_ID|ILLEGAL_GENERATION"):
            producer.send_offsets_to_transaction(offsets, stranger)
        producer.abort_transaction()

    assert stage.values() == ["x0", "x1", "x2", "x3"]


def _poll(consumer: GroupConsumer, count: int) -> list[ConsumerRecord]:
    taken: list[ConsumerRecord] = []
    while len(taken) < count:
        taken += consumer.poll(PATIENCE_S / 10, records_max=count - len(taken))
    return taken


STORIES = (
    commits_and_aborts,
    close_aborts,
    a_refused_record_spoils_its_transaction,
    fences,
    consumes_transforms_and_produces,
)
