"""Offsets: the broker alone gives them, at the append; a producer learns one from its answer."""

from __future__ import annotations

import threading
import time
from typing import Any

import confluent_kafka
import kafka
import pytest

from tests.process.fixtures import NewTopic, StartBroker
from tests.process.proxy import Proxy
from tests.process.target import Target
from tests.process.waiting import PATIENCE_S, wait_until
from tests.process.wire import NO_GROUP, WireClient, batch_of, batches_on_disk
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.codec import decode
from tidelog.core.wire.headers import read_request_header
from tidelog.core.wire.messages import MESSAGES
from tidelog.core.wire.record_batch import read_header


@pytest.mark.scenario("D4-O1")
def test_a_producer_learns_an_offset_only_from_the_answer(start_broker: StartBroker) -> None:
    """While the answer is on its way the record is in the log, and its producer knows nothing."""
    with Proxy() as proxy:
        broker = start_broker(proxy.proxied_settings)
        proxy.forward_to(broker.address)
        with WireClient(broker.address) as wire:
            wire.create_topic("orders")
            wire.produce("orders", batch_of(b"somebody", b"else", b"before"))
            producer = kafka.KafkaProducer(bootstrap_servers=proxy.address)
            proxy.hold()

            future = producer.send("orders", b"mine")
            wait_until(lambda: wire.end_offset("orders") == 4, "the record in the log")

            assert not future.is_done
            proxy.release()
            assert future.get(PATIENCE_S).offset == 3
            producer.close()


@pytest.mark.scenario("D4-O2")
def test_a_batch_travels_with_offset_0_and_gets_its_real_one_under_the_same_checksum(
    start_broker: StartBroker,
) -> None:
    with Proxy() as proxy:
        broker = start_broker(proxy.proxied_settings)
        proxy.forward_to(broker.address)
        with WireClient(broker.address) as wire:
            wire.create_topic("orders")
        producer = kafka.KafkaProducer(bootstrap_servers=proxy.address)
        places = [producer.send("orders", b"%d" % n).get(PATIENCE_S).offset for n in range(3)]
        producer.close()
        sent = [read_header(_records_in(seen.frame)) for seen in proxy.produce_requests()]
    stored = [header for header, _ in batches_on_disk(broker.log_directory, "orders")]

    assert [header.base_offset for header in sent] == [0, 0, 0]
    assert [header.base_offset for header in stored] == [0, 1, 2] == places
    assert [header.crc for header in stored] == [header.crc for header in sent]


def _records_in(frame: bytes) -> memoryview:
    """The record batches of a captured Produce."""
    view = memoryview(frame)
    header = read_request_header(view)
    request: Any = decode(MESSAGES[0][0], view, header.api_version, header.body_position)
    records: memoryview = request.topic_data[0].partition_data[0].records
    return records


@pytest.mark.scenario("D4-O3", "D4-O6")
def test_the_leader_gives_dense_and_unique_offsets_to_interleaved_producers(
    broker: Target, wire: WireClient, new_topic: NewTopic
) -> None:
    """Two producers at once: each record has the offset its producer was told, none is left out."""
    topic = new_topic()
    told: dict[int, bytes] = {}

    def note(error: confluent_kafka.KafkaError | None, record: confluent_kafka.Message) -> None:
        assert error is None, error
        offset, value = record.offset(), record.value()
        assert offset is not None and value is not None
        assert offset not in told
        told[offset] = value

    def write(name: bytes) -> None:
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": broker.address, "linger.ms": 0, "batch.num.messages": 3}
        )
        for n in range(500):
            producer.produce(topic, b"%s %d" % (name, n), on_delivery=note)
            producer.poll(0)
        producer.flush(PATIENCE_S)

    threads = [threading.Thread(target=write, args=(name,)) for name in (b"a", b"b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(told) == list(range(1000))
    assert {record.offset: record.value for record in wire.read_all(topic)} == told
    for name in (b"a", b"b"):
        own = [told[offset] for offset in range(1000) if told[offset].startswith(name)]
        assert own == [b"%s %d" % (name, n) for n in range(500)]


@pytest.mark.scenario("D4-O4")
def test_the_answer_says_where_the_batch_is_and_where_the_log_starts(
    wire: WireClient, new_topic: NewTopic
) -> None:
    topic, stamped = new_topic(), new_topic(message_timestamp_type="LogAppendTime")
    wire.produce(topic, batch_of(b"0", b"1", b"2"))
    before_ms = time.time_ns() // 1_000_000
    for version in range(3, 13):
        answer = wire.produce(topic, batch_of(b"x"), version=version)
        assert (answer.error_code, answer.base_offset) == (0, version)
        assert answer.log_append_time_ms == -1
        assert answer.log_start_offset == (0 if version >= 5 else -1)

    partitions = [{"partition_index": 0, "offset": 2}]
    topics = [{"name": topic, "partitions": partitions}]
    wire.ask("DeleteRecords", 2, topics=topics, timeout_ms=10_000)

    assert wire.produce(topic, batch_of(b"x")).log_start_offset == 2
    answer = wire.produce(stamped, batch_of(b"x"))
    # A broker counts whole milliseconds, so its clock may be ahead of ours by less than one.
    assert before_ms <= answer.log_append_time_ms <= time.time_ns() // 1_000_000 + 1
    refused = wire.produce(topic, batch_of(b"x"), partition=7)
    assert refused.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (refused.base_offset, refused.log_append_time_ms) == (-1, -1)


@pytest.mark.scenario("D4-O7")
def test_a_fetch_names_its_start_and_records_carry_their_offsets(
    broker: Target, wire: WireClient, new_topic: NewTopic
) -> None:
    """From 1000 on, in the middle of a batch: 1000 to 1099, then the high watermark, then none."""
    topic = new_topic()
    for n in range(0, 1100, 220):
        wire.produce(topic, batch_of(*[b"%d" % m for m in range(n, n + 220)]))

    consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.address, **NO_GROUP})
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 1000)])
    records = consumer.consume(100, timeout=PATIENCE_S)
    assert [(record.offset(), record.value()) for record in records] == [
        (n, b"%d" % n) for n in range(1000, 1100)
    ]
    assert consumer.position([confluent_kafka.TopicPartition(topic, 0)])[0].offset == 1100
    consumer.close()
    at_the_end = wire.fetch(topic, 1100)
    assert (at_the_end.error_code, at_the_end.high_watermark) == (0, 1100)
    assert not at_the_end.records
    for nowhere in (1101, -5):
        assert wire.fetch(topic, nowhere).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
