"""A flipped bit in an old segment: the broker hands on what it has, and no client swallows it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

import aiokafka
import confluent_kafka
import kafka
import kafka.errors
import pytest

from tests.kafka import Tool, run_tool
from tests.process.target import Target, running_target
from tests.process.waiting import PATIENCE_MS, PATIENCE_S
from tests.process.wire import NO_GROUP, WireClient, batch_of, segment_files
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.record_batch import batches, crc_is_valid, read_header

COUNT = 30
DAMAGED = 7
LAST_OFFSET_DELTA_AT = 23
VALUE_BYTES = 100_000


@pytest.fixture(scope="module")
def damaged() -> Iterator[Target]:
    """Three segments; one bit of record 7, in the oldest, is not what was written.

    In topic `orders` it is one of the record's own, in `headers` one of its batch's last offset
    delta, which makes one offset sixty-five.
    """
    with running_target() as broker:
        with WireClient(broker.address) as wire:
            for topic, byte in (("orders", 50_000), ("headers", LAST_OFFSET_DELTA_AT + 3)):
                wire.create_topic(topic, configs={"segment.bytes": "1048576"})
                for n in range(COUNT):
                    value = random.Random(n).randbytes(VALUE_BYTES)
                    assert wire.produce(topic, batch_of(value)).base_offset == n
                flip(segment_files(broker.log_directory, topic)[0], byte)
        yield broker


def flip(segment: Path, byte: int) -> None:
    data = memoryview(segment.read_bytes())
    (position,) = (at for at, header in batches(data) if header.base_offset == DAMAGED)
    with segment.open("r+b") as file:
        file.seek(position + byte)
        file.write(bytes([data[position + byte] ^ 0x40]))


@pytest.mark.scenario("X-33")
@pytest.mark.parametrize("when", ["at once", "after a clean restart"])
def test_the_broker_neither_hides_nor_repairs_the_damage(damaged: Target, when: str) -> None:
    """The bytes go out with the producer's checksum, which tells every reader."""
    if when != "at once":
        assert damaged.stop() in (0, 143)
        damaged.start()
    with WireClient(damaged.address) as wire:
        answer = wire.fetch("orders", 0, bytes_max=16 << 20)
        view = memoryview(answer.records)
        valid = {h.base_offset: crc_is_valid(view, at, h) for at, h in batches(view)}
        assert [offset for offset, good in valid.items() if not good] == [DAMAGED]
        rest = wire.read_all("orders", start=DAMAGED + 1)
        assert [record.offset for record in rest] == list(range(DAMAGED + 1, COUNT))


@pytest.mark.scenario("X-33")
def test_a_damaged_header_is_told_at_its_own_offset_and_hides_nothing(damaged: Target) -> None:
    """Read after the restart: nothing of the log is in memory any more."""
    with WireClient(damaged.address) as wire:
        assert wire.fetch("headers", DAMAGED).error_code == ErrorCode.CORRUPT_MESSAGE
        rest = wire.read_all("headers", start=DAMAGED + 1)
        assert [record.offset for record in rest] == list(range(DAMAGED + 1, COUNT))
        before = wire.fetch("headers", DAMAGED - 1)
        assert (before.error_code, read_header(before.records).base_offset) == (0, DAMAGED - 1)


@pytest.mark.scenario("X-33")
def test_librdkafka_cannot_be_led_past_sound_records_by_a_damaged_header(damaged: Target) -> None:
    """It does not check sums by default: a broker that sent the batch would make it skip 64."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": damaged.address, **NO_GROUP})
    consumer.assign([confluent_kafka.TopicPartition("headers", 0, DAMAGED)])
    told = consumer.poll(PATIENCE_S)
    assert told is not None
    error = told.error()
    assert error is not None
    assert (error.code(), told.offset()) == (ErrorCode.CORRUPT_MESSAGE, DAMAGED)
    consumer.seek(confluent_kafka.TopicPartition("headers", 0, DAMAGED + 1))
    while (record := consumer.poll(PATIENCE_S)) is not None and record.error() is not None:
        assert record.offset() == DAMAGED, "told before the seek"
    assert record is not None and record.offset() == DAMAGED + 1
    consumer.close()


@pytest.mark.scenario("X-33")
@pytest.mark.parametrize("topic", ["orders", "headers"])
def test_kafka_python_reports_it(damaged: Target, topic: str) -> None:
    consumer = kafka.KafkaConsumer(bootstrap_servers=damaged.address, check_crcs=True)
    partition = kafka.TopicPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek(partition, 0)
    seen: list[int] = []

    def read() -> None:
        while found := consumer.poll(timeout_ms=PATIENCE_MS):
            seen.extend(record.offset for record in found[partition])

    with pytest.raises(kafka.errors.CorruptRecordError):
        read()
    assert seen == list(range(DAMAGED))
    consumer.close()


@pytest.mark.scenario("X-33")
@pytest.mark.parametrize("topic", ["orders", "headers"])
def test_aiokafka_reports_it(damaged: Target, topic: str) -> None:
    seen: list[int] = []

    async def read() -> None:
        partition = aiokafka.TopicPartition(topic, 0)
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=damaged.address, check_crcs=True)
        consumer.assign([partition])
        async with consumer:
            consumer.seek(partition, 0)
            while True:
                seen.append((await asyncio.wait_for(consumer.getone(), PATIENCE_S)).offset)

    with pytest.raises(aiokafka.errors.CorruptRecordException):
        asyncio.run(read())
    assert seen == list(range(DAMAGED))


@pytest.mark.scenario("X-33")
@pytest.mark.parametrize("topic", ["orders", "headers"])
def test_librdkafka_reports_it_when_it_checks(damaged: Target, topic: str) -> None:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": damaged.address, **NO_GROUP, "check.crcs": True}
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    seen = []
    while (record := consumer.poll(PATIENCE_S)) is not None and record.error() is None:
        seen.append(record.offset())
    assert record is not None
    error = record.error()
    assert error is not None and error.code() == confluent_kafka.KafkaError._BAD_MSG
    assert seen == list(range(DAMAGED))
    consumer.close()


@pytest.mark.java
@pytest.mark.scenario("X-33")
@pytest.mark.parametrize("topic", ["orders", "headers"])
def test_java_reports_it(damaged: Target, topic: str) -> None:
    result = run_tool(
        Tool.CONSOLE_CONSUMER,
        [
            *("--bootstrap-server", damaged.address, "--topic", topic, "--partition", "0"),
            *("--offset", "0", "--max-messages", str(COUNT), "--timeout-ms", str(PATIENCE_MS)),
            *("--formatter-property", "print.value=false"),
            *("--formatter-property", "print.offset=true"),
        ],
    )
    assert f"offset {DAMAGED} is invalid, cause: Record is corrupt" in result.errors
    assert result.output.splitlines()[:DAMAGED] == [f"Offset:{n}" for n in range(DAMAGED)]
