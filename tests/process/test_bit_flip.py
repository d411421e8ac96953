"""A flipped bit in an old segment: the broker hands on what it has, and no client swallows it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator

import aiokafka
import confluent_kafka
import kafka
import kafka.errors
import pytest

from tests.kafka import Tool, run_tool
from tests.process.target import Target, running_target
from tests.process.waiting import PATIENCE_MS, PATIENCE_S
from tests.process.wire import NO_GROUP, WireClient, batch_of, segment_files
from tidelog.core.wire.record_batch import batches, crc_is_valid

COUNT = 30
DAMAGED = 7
VALUE_BYTES = 100_000


@pytest.fixture(scope="module")
def damaged() -> Iterator[Target]:
    """Three segments; one bit of record 7, in the oldest, is not what was written."""
    with running_target() as broker:
        with WireClient(broker.address) as wire:
            wire.create_topic("orders", configs={"segment.bytes": "1048576"})
            for n in range(COUNT):
                value = random.Random(n).randbytes(VALUE_BYTES)
                assert wire.produce("orders", batch_of(value)).base_offset == n
        oldest = segment_files(broker.log_directory, "orders")[0]
        data = bytearray(oldest.read_bytes())
        (position,) = (at for at, h in batches(memoryview(data)) if h.base_offset == DAMAGED)
        data[position + 50_000] ^= 0x01
        with oldest.open("r+b") as file:
            file.seek(position + 50_000)
            file.write(data[position + 50_000 : position + 50_001])
        yield broker


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
def test_kafka_python_reports_it(damaged: Target) -> None:
    consumer = kafka.KafkaConsumer(bootstrap_servers=damaged.address, check_crcs=True)
    partition = kafka.TopicPartition("orders", 0)
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
def test_aiokafka_reports_it(damaged: Target) -> None:
    seen: list[int] = []

    async def read() -> None:
        partition = aiokafka.TopicPartition("orders", 0)
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
def test_librdkafka_reports_it_when_it_checks(damaged: Target) -> None:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": damaged.address, **NO_GROUP, "check.crcs": True}
    )
    consumer.assign([confluent_kafka.TopicPartition("orders", 0, 0)])
    seen = []
    while (record := consumer.poll(PATIENCE_S)).error() is None:
        seen.append(record.offset())
    assert record.error().code() == confluent_kafka.KafkaError._BAD_MSG
    assert seen == list(range(DAMAGED))
    consumer.close()


@pytest.mark.java
@pytest.mark.scenario("X-33")
def test_java_reports_it(damaged: Target) -> None:
    result = run_tool(
        Tool.CONSOLE_CONSUMER,
        [
            *("--bootstrap-server", damaged.address, "--topic", "orders", "--partition", "0"),
            *("--offset", "0", "--max-messages", str(COUNT), "--timeout-ms", str(PATIENCE_MS)),
            *("--formatter-property", "print.value=false"),
            *("--formatter-property", "print.offset=true"),
        ],
    )
    assert f"offset {DAMAGED} is invalid, cause: Record is corrupt" in result.errors
    assert result.output.splitlines()[:DAMAGED] == [f"Offset:{n}" for n in range(DAMAGED)]
