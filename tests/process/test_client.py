"""Our own clients against a real broker: write, read, ask, and survive a kill."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from tests.process.fixtures import NewTopic, StartBroker
from tests.process.ports import free_port
from tests.process.waiting import PATIENCE_S
from tidelog.client.admin.cluster import describe_cluster
from tidelog.client.admin.configs import ResourceKind, alter_configs, describe_configs
from tidelog.client.admin.offsets import (
    delete_records,
    describe_producers,
    end_of_leader_epoch,
    high_watermark,
    log_end_offset,
)
from tidelog.client.admin.topics import (
    create_partitions,
    create_topic,
    delete_topic,
    describe_topic,
    list_topics,
)
from tidelog.client.producer.outcome import BUFFER_EXHAUSTED, SendOk, SendOutcome, SendUnknown
from tidelog.client.shells.blocking_clients import (
    Admin,
    Consumer,
    Producer,
    RecordRefused,
    RequestFailed,
)
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition


def read_all(bootstrap: str, partition: TopicPartition, count: int) -> list[str]:
    settings = {"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest"}
    values: list[str] = []
    with Consumer(settings) as consumer:
        consumer.assign([partition])
        while len(values) < count:
            records = consumer.poll(PATIENCE_S)
            assert records, f"{len(values)} of {count} within {PATIENCE_S:g} s"
            values += [(record.value or b"").decode() for record in records]
    return values


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_is_written_is_read(bootstrap: str, new_topic: NewTopic, compression: str) -> None:
    topic = new_topic()
    settings = {"bootstrap.servers": bootstrap, "compression.type": compression}
    with Producer(settings) as producer:
        sent = [producer.send(topic, f"{number}".encode()) for number in range(1_000)]

    assert [each.result().offset for each in sent] == list(range(1_000))
    expected = [str(number) for number in range(1_000)]
    assert read_all(bootstrap, TopicPartition(topic, 0), 1_000) == expected


def test_keys_headers_and_times_arrive(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=4)
    with Producer({"bootstrap.servers": bootstrap}) as producer:
        sent = producer.send(
            topic, None, key=b"abc", headers=[("h", b"1"), ("n", None)], timestamp_ms=12_345
        )
        assert sent.result(PATIENCE_S).timestamp_ms == 12_345
    partition = TopicPartition(topic, 479470107 % 4)
    with Consumer({"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest"}) as consumer:
        consumer.assign([partition])
        [record] = consumer.poll(PATIENCE_S)

    assert (record.key, record.value, record.timestamp_ms) == (b"abc", None, 12_345)
    assert record.headers == [("h", b"1"), ("n", None)]
    assert record.sequence == 0 and record.leader_epoch is not None


def test_positions_offsets_and_times(bootstrap: str, new_topic: NewTopic) -> None:
    partition = TopicPartition(new_topic(), 0)
    with Producer({"bootstrap.servers": bootstrap, "batch.size": 1}) as producer:
        for number in range(10):
            producer.send(partition.topic, b"x", timestamp_ms=1_000 * number)
    with Consumer({"bootstrap.servers": bootstrap}) as consumer:
        assert consumer.beginning_offsets([partition]) == {partition: 0}
        assert consumer.end_offsets([partition]) == {partition: 10}
        found = consumer.offsets_for_times({partition: 4_500})[partition]
        assert found is not None and (found.offset, found.timestamp_ms) == (5, 5_000)
        consumer.assign([partition])
        assert consumer.position(partition) == 10, "latest is the default"
        consumer.seek(partition, 7)
        assert [record.offset for record in consumer.poll(PATIENCE_S)] == [7, 8, 9]
        assert consumer.position(partition) == 10
        assert consumer.poll(0.0) == []


def test_an_admin_makes_describes_changes_and_deletes(bootstrap: str) -> None:
    with Admin({"bootstrap.servers": bootstrap}) as admin:
        made = admin.ask(create_topic("made", partitions=2, replication_factor=1))
        assert made.error == ErrorCode.NONE
        again = admin.ask(create_topic("made", partitions=2, replication_factor=1))
        assert again.error == ErrorCode.TOPIC_ALREADY_EXISTS and again.message
        assert admin.ask(create_partitions("made", total=3)).is_ok
        assert admin.ask(list_topics())["made"] == made.topic_id

        described = admin.ask(describe_topic("made"))
        broker_id = described.partitions[0].leader_id
        assert broker_id is not None and sorted(described.partitions) == [0, 1, 2]
        assert list(admin.ask(describe_cluster()).brokers) == [broker_id]

        changed = admin.ask(alter_configs(ResourceKind.TOPIC, "made", {"retention.ms": "5000"}))
        assert changed.is_ok
        configs = admin.ask(describe_configs(ResourceKind.TOPIC, "made", keys=["retention.ms"]))
        assert configs.configs["retention.ms"].value == "5000"

        assert admin.ask(delete_topic("made")).is_ok
        assert "made" not in admin.ask(list_topics())


def test_an_admin_sees_the_ends_of_a_partition(bootstrap: str, new_topic: NewTopic) -> None:
    partition = TopicPartition(new_topic(), 0)
    with Producer({"bootstrap.servers": bootstrap}) as producer:
        for _ in range(5):
            producer.send(partition.topic, b"x")
    with Admin({"bootstrap.servers": bootstrap}) as admin:
        assert admin.ask(high_watermark(partition)).offset == 5
        assert admin.ask(log_end_offset(partition, broker_id=1)).offset == 5
        assert admin.ask(end_of_leader_epoch(partition, 0)).end_offset == 5
        [known] = admin.ask(describe_producers(partition)).producers
        assert (known.producer_epoch, known.next_sequence) == (0, 5)
        assert admin.ask(delete_records(partition, before_offset=2)).log_start_offset == 2


def test_nobody_there_is_an_error_that_says_so() -> None:
    nobody = {"bootstrap.servers": f"127.0.0.1:{free_port()}"}
    with Admin(nobody) as admin, pytest.raises(RequestFailed, match="no answer in time"):
        admin.ask(list_topics(), timeout_s=0.5)


@pytest.mark.scenario("D3-PB5", "D3-PB6", "D3-PB7", "N27")
def test_a_full_buffer_blocks_the_caller_and_drains_when_the_broker_wakes_up(
    start_broker: StartBroker,
) -> None:
    """SIGSTOP fills the buffer; SIGCONT lets everything through, once and in order."""
    broker = start_broker()
    settings: dict[str, str | int] = {
        "bootstrap.servers": broker.address,
        "buffer.memory": 65_536,
        "batch.size": 16_384,
        "max.block.ms": 5_000,
    }
    with Admin({"bootstrap.servers": broker.address}) as admin:
        admin.ask(create_topic("orders", partitions=1, replication_factor=1))
    with Producer(settings) as producer:
        producer.send("orders", b"warm").result(PATIENCE_S)
        os.kill(broker.pid, signal.SIGSTOP)
        values = [f"{number}".ljust(10_000, ".") for number in range(4)]
        sent = [producer.send("orders", value.encode()) for value in values]
        with pytest.raises(RecordRefused) as refused:
            producer.send("orders", b"x" * 10_000).result(PATIENCE_S)
        os.kill(broker.pid, signal.SIGCONT)
        assert [each.result(PATIENCE_S).offset for each in sent] == [1, 2, 3, 4]

    assert refused.value.error == BUFFER_EXHAUSTED
    assert read_all(broker.address, TopicPartition("orders", 0), 5) == ["warm", *values]


@pytest.mark.scenario("D3-P2", "D1-P1")
def test_a_killed_broker_that_comes_back_costs_no_record(start_broker: StartBroker) -> None:
    """Idempotent, acks=all: whatever was on the wire is written once."""
    broker = start_broker()
    told: list[SendOutcome] = []
    half_sent = threading.Event()
    with Admin({"bootstrap.servers": broker.address}) as admin:
        admin.ask(create_topic("orders", partitions=1, replication_factor=1))
    with Producer({"bootstrap.servers": broker.address, "linger.ms": 0}) as producer:
        for number in range(2_000):
            producer.send("orders", f"{number}".encode(), on_outcome=told.append)
            if number == 1_000:
                broker.kill()
                broker.start()
                half_sent.set()

    assert half_sent.is_set() and not [each for each in told if isinstance(each, SendUnknown)]
    assert all(isinstance(each, SendOk) for each in told) and len(told) == 2_000
    expected = [str(number) for number in range(2_000)]
    assert read_all(broker.address, TopicPartition("orders", 0), 2_000) == expected
