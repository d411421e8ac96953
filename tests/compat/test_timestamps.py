"""Time: a topic may stamp records itself, and every client finds offsets by time."""

from __future__ import annotations

import asyncio
import time

import aiokafka
import confluent_kafka
import kafka
import pytest

from tests.compat.clients import DELIVERY_S, LIBRARIES, Client, Message, each_library, run_kcat
from tests.process.fixtures import NewTopic
from tests.process.wire import LARGEST_TIMESTAMP, NO_GROUP, WireClient

BASE_MS = 1_600_000_000_000
FOUND = {BASE_MS - 1: 0, BASE_MS: 0, BASE_MS + 1: 1, BASE_MS + 20: 2, BASE_MS + 90: 9}
"""Asked time and the offset that is due; there are ten records, one every ten milliseconds."""
TOO_LATE_MS = BASE_MS + 91


@pytest.fixture
def timed(bootstrap: str, new_topic: NewTopic) -> str:
    """Ten records, one every ten milliseconds, in several batches."""
    topic = new_topic()
    for n in range(0, 10, 5):
        messages = [Message(b"%d" % m, timestamp_ms=BASE_MS + 10 * m) for m in range(n, n + 5)]
        LIBRARIES[0].produce(bootstrap, topic, "lz4", messages)
    return topic


@each_library
def test_a_topic_with_append_time_stamps_records_itself(
    client: Client, bootstrap: str, new_topic: NewTopic
) -> None:
    topic = new_topic(message_timestamp_type="LogAppendTime")
    # A broker counts whole milliseconds: its clock may be behind ours, or ahead, by one of them.
    earliest_ms = time.time_ns() // 1_000_000 - 1
    for codec in ("none", "gzip"):
        client.produce(bootstrap, topic, codec, [Message(b"v", timestamp_ms=BASE_MS)] * 3)
    latest_ms = time.time_ns() // 1_000_000 + 1

    for reader in LIBRARIES:
        stamps = [one.message.timestamp_ms for one in reader.consume(bootstrap, topic, 6)]
        assert all(earliest_ms <= (stamp or 0) <= latest_ms for stamp in stamps), reader.name


def test_librdkafka_tells_the_kind_of_time(bootstrap: str, new_topic: NewTopic) -> None:
    for kind, number in (
        ("CreateTime", confluent_kafka.TIMESTAMP_CREATE_TIME),
        ("LogAppendTime", confluent_kafka.TIMESTAMP_LOG_APPEND_TIME),
    ):
        topic = new_topic(message_timestamp_type=kind)
        LIBRARIES[0].produce(bootstrap, topic, "none", [Message(b"v")])
        consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, **NO_GROUP})
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        record = consumer.poll(DELIVERY_S)
        assert record is not None and record.timestamp()[0] == number
        consumer.close()


def test_librdkafka_finds_offsets_by_time(bootstrap: str, timed: str) -> None:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, **NO_GROUP})
    for asked_ms, offset in FOUND.items():
        asked = [confluent_kafka.TopicPartition(timed, 0, asked_ms)]
        assert [p.offset for p in consumer.offsets_for_times(asked, DELIVERY_S)] == [offset]
    late = [confluent_kafka.TopicPartition(timed, 0, TOO_LATE_MS)]
    (answer,) = consumer.offsets_for_times(late, DELIVERY_S)
    assert answer.offset == confluent_kafka.OFFSET_END
    assert consumer.get_watermark_offsets(late[0], DELIVERY_S) == (0, 10)
    consumer.close()


def test_kafka_python_finds_offsets_by_time(bootstrap: str, timed: str) -> None:
    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap)
    partition = kafka.TopicPartition(timed, 0)
    for asked_ms, offset in FOUND.items():
        found = consumer.offsets_for_times({partition: asked_ms})[partition]
        assert (found.offset, found.timestamp) == (offset, BASE_MS + 10 * offset)
    assert consumer.offsets_for_times({partition: TOO_LATE_MS}) == {partition: None}
    assert consumer.beginning_offsets([partition]) == {partition: 0}
    assert consumer.end_offsets([partition]) == {partition: 10}
    consumer.close()


def test_aiokafka_finds_offsets_by_time(bootstrap: str, timed: str) -> None:
    async def ask() -> None:
        partition = aiokafka.TopicPartition(timed, 0)
        async with aiokafka.AIOKafkaConsumer(bootstrap_servers=bootstrap) as consumer:
            for asked_ms, offset in FOUND.items():
                found = (await consumer.offsets_for_times({partition: asked_ms}))[partition]
                assert (found.offset, found.timestamp) == (offset, BASE_MS + 10 * offset)
            late = await consumer.offsets_for_times({partition: TOO_LATE_MS})
            assert late == {partition: None}
            assert await consumer.beginning_offsets([partition]) == {partition: 0}
            assert await consumer.end_offsets([partition]) == {partition: 10}

    asyncio.run(ask())


def test_kcat_finds_offsets_by_time(bootstrap: str, timed: str) -> None:
    for asked_ms, offset in FOUND.items():
        output = run_kcat(["-Q", "-b", bootstrap, "-t", f"{timed}:0:{asked_ms}"])
        assert output.split() == [timed, "[0]", "offset", str(offset)]


def test_the_record_with_the_largest_time_is_found(
    bootstrap: str, wire: WireClient, new_topic: NewTopic
) -> None:
    """Not the newest record but the one with the largest time, the first of equals."""
    topic = new_topic()
    times_ms = [BASE_MS, BASE_MS + 7, BASE_MS + 3, BASE_MS + 7, BASE_MS + 1]
    for time_ms in times_ms:
        LIBRARIES[0].produce(bootstrap, topic, "none", [Message(b"v", timestamp_ms=time_ms)])
    answer = wire.offset_at(topic, LARGEST_TIMESTAMP)
    assert (answer.error_code, answer.offset, answer.timestamp) == (0, 1, BASE_MS + 7)
