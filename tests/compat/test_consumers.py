"""Consumers without a group: they assign partitions, seek, and follow the end of the log."""

from __future__ import annotations

import asyncio
import json

import aiokafka
import confluent_kafka
import kafka
import pytest

from tests.compat.clients import DELIVERY_S, LIBRARIES, Message, run_kcat
from tests.process.fixtures import NewTopic
from tests.process.waiting import PATIENCE_MS
from tests.process.wire import NO_GROUP, WireClient, batch_of, fetch_fields


@pytest.fixture
def thousand(wire: WireClient, new_topic: NewTopic) -> str:
    """Two partitions with 1000 records each, in batches of ten."""
    topic = new_topic(partitions=2)
    for partition in range(2):
        for n in range(0, 1000, 10):
            values = [b"%d/%d" % (partition, m) for m in range(n, n + 10)]
            wire.produce(topic, batch_of(*values), partition=partition)
    return topic


def test_librdkafka_assigns_seeks_and_hears_the_end(bootstrap: str, thousand: str) -> None:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, **NO_GROUP, "enable.partition.eof": True}
    )
    consumer.assign([confluent_kafka.TopicPartition(thousand, p, 993) for p in range(2)])
    values: list[bytes] = []
    ends: set[tuple[int | None, int | None]] = set()
    while len(ends) < 2:
        record = consumer.poll(DELIVERY_S)
        assert record is not None, "the end never came"
        error, value = record.error(), record.value()
        if error is None:
            assert value is not None
            values.append(value)
        else:
            assert error.code() == confluent_kafka.KafkaError._PARTITION_EOF
            ends.add((record.partition(), record.offset()))
    assert ends == {(0, 1000), (1, 1000)}
    assert sorted(values) == sorted(b"%d/%d" % (p, n) for p in range(2) for n in range(993, 1000))
    consumer.seek(confluent_kafka.TopicPartition(thousand, 0, 5))
    record = consumer.poll(DELIVERY_S)
    assert record is not None and record.value() == b"0/5"
    consumer.close()


@pytest.mark.parametrize(("policy", "first"), [("earliest", b"0/0"), ("latest", b"new")])
def test_librdkafka_resets_an_offset_that_does_not_exist(
    policy: str, first: bytes, bootstrap: str, wire: WireClient, thousand: str
) -> None:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, **NO_GROUP, "auto.offset.reset": policy}
        | {"enable.partition.eof": True}
    )
    consumer.assign([confluent_kafka.TopicPartition(thousand, 0, 5_000)])
    record = consumer.poll(DELIVERY_S)
    if policy == "latest":
        assert record is not None
        error = record.error()
        assert error is not None and error.code() == confluent_kafka.KafkaError._PARTITION_EOF
        wire.produce(thousand, batch_of(b"new"))
        record = consumer.poll(DELIVERY_S)
    assert record is not None and record.value() == first
    consumer.close()


def test_kafka_python_seeks_and_follows(bootstrap: str, wire: WireClient, thousand: str) -> None:
    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap)
    first, second = (kafka.TopicPartition(thousand, p) for p in range(2))
    consumer.assign([first, second])
    consumer.seek(first, 997)
    consumer.seek_to_end(second)
    assert [r.offset for r in consumer.poll(timeout_ms=DELIVERY_S * 1000)[first]] == [997, 998, 999]
    assert consumer.position(second) == 1000
    wire.produce(thousand, batch_of(b"fresh"), partition=1)
    (fresh,) = consumer.poll(timeout_ms=DELIVERY_S * 1000)[second]
    assert (fresh.offset, fresh.value) == (1000, b"fresh")
    assert consumer.partitions_for_topic(thousand) == {0, 1}
    consumer.close()


def test_aiokafka_seeks_and_follows(bootstrap: str, wire: WireClient, thousand: str) -> None:
    async def read() -> None:
        first, second = (aiokafka.TopicPartition(thousand, p) for p in range(2))
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=bootstrap)
        consumer.assign([first, second])
        async with consumer:
            consumer.seek(first, 997)
            await consumer.seek_to_end(second)
            offsets = [(await consumer.getone(first)).offset for _ in range(3)]
            assert offsets == [997, 998, 999]
            wire.produce(thousand, batch_of(b"fresh"), partition=1)
            fresh = await asyncio.wait_for(consumer.getone(second), DELIVERY_S)
            assert (fresh.offset, fresh.value) == (1000, b"fresh")

    asyncio.run(read())


def test_kcat_reads_the_last_records_of_every_partition(bootstrap: str, thousand: str) -> None:
    output = run_kcat(["-C", "-b", bootstrap, "-t", thousand, "-o", "-2", "-e", "-f", "%p:%o:%s\n"])
    expected = [f"{p}:{n}:{p}/{n}" for p in range(2) for n in (998, 999)]
    assert sorted(output.splitlines()) == expected


def test_kcat_lists_brokers_topics_and_partitions(bootstrap: str, thousand: str) -> None:
    shown = json.loads(run_kcat(["-L", "-J", "-b", bootstrap, "-t", thousand]))
    assert [(b["id"], b["name"]) for b in shown["brokers"]] == [(1, bootstrap)]
    (topic,) = shown["topics"]
    assert topic["topic"] == thousand
    assert [p["partition"] for p in topic["partitions"]] == [0, 1]
    assert {p["leader"] for p in topic["partitions"]} == {1}


def test_a_waiting_fetch_is_answered_when_something_comes(
    bootstrap: str, wire: WireClient, new_topic: NewTopic
) -> None:
    """A long poll ends with the first new record, not with its time."""
    topic = new_topic()
    with WireClient(bootstrap) as waiting:
        waiting.send("Fetch", 11, **fetch_fields(topic, 0, wait_ms=2 * PATIENCE_MS))
        wire.produce(topic, batch_of(b"news"))
        answer = waiting.answer("Fetch", 11).responses[0].partitions[0]
    assert (answer.error_code, answer.high_watermark) == (0, 1)
    assert answer.records


def test_topics_are_made_by_the_first_producer(bootstrap: str) -> None:
    """auto.create.topics.enable is on, as in Kafka: each library's first send makes the topic."""
    for client in LIBRARIES:
        topic = f"made-by-{client.name}"
        client.produce(bootstrap, topic, "none", [Message(b"first")])
        assert client.consume(bootstrap, topic, 1)[0].offset == 0
