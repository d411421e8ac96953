"""Whatever a record is, it comes back as it was sent: empty, null, tiny, as large as allowed."""

from __future__ import annotations

import asyncio

import aiokafka
import confluent_kafka
import kafka
import kafka.errors
import pytest

from tests.compat.clients import (
    AIOKAFKA,
    DELIVERY_S,
    KAFKA_PYTHON,
    LIBRARIES,
    LIBRDKAFKA,
    Client,
    Message,
    each_library,
)
from tests.process.fixtures import NewTopic
from tests.process.wire import WireClient, batch_of
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.record_batch import batches

BATCH_BYTES_MAX = 1_048_588
LARGEST_VALUE_BYTES = BATCH_BYTES_MAX - 61 - 11
"""A batch header and one record's own fields: three lengths of three bytes and a few of one."""


@each_library
def test_null_empty_and_binary_parts_come_back_as_they_were(
    client: Client, bootstrap: str, new_topic: NewTopic
) -> None:
    """Null is not empty, in keys, values and headers; a header's name may come twice."""
    topic = new_topic()
    messages = [
        Message(b"value", b"key"),
        Message(b"value", None),
        Message(b"value", b""),
        Message(b"", b"key"),
        Message(None, b"key"),
        Message(b"\x00\xff" * 8, b"\x80"),
        Message(b"v", None, (("same", b"1"), ("same", b"2"), ("", b""), ("größe", b"\x00\xff"))),
        Message(None, b"tombstone", (("why", b"gone"),)),
    ]
    if client is not KAFKA_PYTHON:  # which refuses to send a header without a value
        messages.append(Message(b"v", None, (("nothing", None), ("empty", b""))))
    client.produce(bootstrap, topic, "none", messages)
    for reader in LIBRARIES:
        consumed = reader.consume(bootstrap, topic, len(messages))
        seen = [one.message for one in consumed]
        assert [(m.key, m.value, m.headers) for m in seen] == [
            (m.key, m.value, m.headers) for m in messages
        ], reader.name


@each_library
def test_records_from_one_byte_to_the_largest(
    client: Client, bootstrap: str, new_topic: NewTopic
) -> None:
    topic = new_topic()
    sizes = [1, 2, 63, 64, 8_191, 8_192, 16_383, 16_384, 65_536, 1_000_000, LARGEST_VALUE_BYTES]
    messages = [Message(bytes([65 + at]) * size) for at, size in enumerate(sizes)]
    if client is LIBRDKAFKA:
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": bootstrap, "message.max.bytes": 2_000_000, "batch.size": 1}
        )
        for message in messages:
            producer.produce(topic, message.value)
        assert producer.flush(DELIVERY_S) == 0
    else:
        for message in messages:
            client.produce(bootstrap, topic, "none", [message])
    consumed = client.consume(bootstrap, topic, len(messages))
    assert [one.message.value for one in consumed] == [message.value for message in messages]


def test_a_batch_of_exactly_the_maximum_is_taken_and_one_byte_more_is_not(
    wire: WireClient, new_topic: NewTopic
) -> None:
    topic = new_topic()
    largest = batch_of(b"x" * LARGEST_VALUE_BYTES)
    excess = batch_of(b"x" * (LARGEST_VALUE_BYTES + 1))
    assert (len(largest), len(excess)) == (BATCH_BYTES_MAX, BATCH_BYTES_MAX + 1)

    assert wire.produce(topic, largest).error_code == 0
    assert wire.produce(topic, excess).error_code == ErrorCode.MESSAGE_TOO_LARGE

    assert wire.end_offset(topic) == 1


def test_a_topic_may_allow_less_or_more_than_the_broker(
    wire: WireClient, new_topic: NewTopic
) -> None:
    small = new_topic(max_message_bytes="1000")
    large = new_topic(max_message_bytes="3000000")
    assert wire.produce(small, batch_of(b"x" * 900)).error_code == 0
    assert wire.produce(small, batch_of(b"x" * 1000)).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert wire.produce(large, batch_of(b"x" * 2_900_000)).error_code == 0
    (record,) = wire.read_all(large)
    assert record.value == b"x" * 2_900_000


def test_librdkafka_hears_that_a_record_is_too_large(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    errors: list[confluent_kafka.KafkaError | None] = []
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "message.max.bytes": 3_000_000}
    )
    producer.produce(topic, b"x" * 2_000_000, on_delivery=lambda error, _: errors.append(error))
    producer.flush(DELIVERY_S)
    codes = [None if error is None else error.code() for error in errors]
    assert codes == [confluent_kafka.KafkaError.MSG_SIZE_TOO_LARGE]


def test_kafka_python_hears_that_a_record_is_too_large(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, max_request_size=3_000_000)
    future = producer.send(topic, b"x" * 2_000_000)
    with pytest.raises(kafka.errors.MessageSizeTooLargeError):
        future.get(DELIVERY_S)
    producer.close()


def test_aiokafka_hears_that_a_record_is_too_large(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic()

    async def send() -> None:
        async with aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap, max_request_size=3_000_000, max_batch_size=3_000_000
        ) as producer:
            await producer.send_and_wait(topic, b"x" * 2_000_000)

    with pytest.raises(aiokafka.errors.MessageSizeTooLargeError):
        asyncio.run(send())


@each_library
def test_create_time_is_the_producers(client: Client, bootstrap: str, new_topic: NewTopic) -> None:
    """Timestamps are kept to the millisecond, in whatever order they are."""
    topic = new_topic()
    times_ms = [1_500_000_000_000, 1_500_000_000_001, 1_400_000_000_000, 1_600_000_000_123]
    messages = [Message(b"v", timestamp_ms=time_ms) for time_ms in times_ms]
    client.produce(bootstrap, topic, "none", messages)
    for reader in LIBRARIES:
        consumed = reader.consume(bootstrap, topic, len(messages))
        assert [one.message.timestamp_ms for one in consumed] == times_ms, reader.name


@pytest.mark.parametrize("acks", [0, 1, "all"])
@each_library
def test_every_kind_of_acks_ends_in_the_log(
    client: Client, acks: int | str, bootstrap: str, wire: WireClient, new_topic: NewTopic
) -> None:
    topic = new_topic()
    values = [b"%d" % n for n in range(20)]
    if client is LIBRDKAFKA:
        producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "acks": acks})
        for value in values:
            producer.produce(topic, value)
        assert producer.flush(DELIVERY_S) == 0
    elif client is KAFKA_PYTHON:
        writer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap, acks=acks, enable_idempotence=False
        )
        futures = [writer.send(topic, value) for value in values]
        assert all(future.get(DELIVERY_S) for future in futures)
        writer.close()
    else:
        asyncio.run(_send_with_acks(bootstrap, topic, acks, values))
    consumed = AIOKAFKA.consume(bootstrap, topic, len(values))
    assert [one.message.value for one in consumed] == values


async def _send_with_acks(address: str, topic: str, acks: int | str, values: list[bytes]) -> None:
    async with aiokafka.AIOKafkaProducer(bootstrap_servers=address, acks=acks) as producer:
        for value in values:
            await producer.send_and_wait(topic, value)


@each_library
def test_idempotent_producers_number_their_batches(
    client: Client, bootstrap: str, wire: WireClient, new_topic: NewTopic
) -> None:
    """With idempotence batches carry a producer id, epoch 0 and sequences without a gap."""
    topic = new_topic()
    values = [b"%d" % n for n in range(100)]
    if client is LIBRDKAFKA:
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "batch.num.messages": 7}
        )
        for value in values:
            producer.produce(topic, value)
        assert producer.flush(DELIVERY_S) == 0
    elif client is KAFKA_PYTHON:
        writer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap, enable_idempotence=True, batch_size=100
        )
        futures = [writer.send(topic, value) for value in values]
        assert all(future.get(DELIVERY_S) for future in futures)
        writer.close()
    else:
        asyncio.run(_send_idempotently(bootstrap, topic, values))
    view = memoryview(wire.fetch(topic, 0).records)
    headers = [header for _, header in batches(view)]
    (producer_id,) = {header.producer_id for header in headers}
    assert producer_id >= 0
    assert {header.producer_epoch for header in headers} == {0}
    assert [header.base_sequence for header in headers] == [h.base_offset for h in headers]
    assert [record.value for record in wire.read_all(topic)] == values


async def _send_idempotently(address: str, topic: str, values: list[bytes]) -> None:
    async with aiokafka.AIOKafkaProducer(
        bootstrap_servers=address, enable_idempotence=True, max_batch_size=100
    ) as producer:
        futures = [await producer.send(topic, value) for value in values]
        await asyncio.gather(*futures)
