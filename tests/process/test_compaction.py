"""A compacted topic under load of librdkafka, with kill -9: every newest value stays readable."""

from __future__ import annotations

import random
from pathlib import Path

import confluent_kafka

from tests.process.fixtures import StartBroker
from tests.process.target import Target
from tests.process.waiting import PATIENCE_S, wait_until
from tests.process.wire import NO_GROUP, WireClient

TOPIC = "compacted"
KEYS = 300
RECORDS_PER_ROUND = 12_000
ROUNDS = 3
CONFIGS = {
    "cleanup.policy": "compact",
    "segment.bytes": "1048576",
    "min.cleanable.dirty.ratio": "0.01",
}


def _write(broker: Target, newest: dict[str, str], chance: random.Random) -> None:
    """Keys over and over, a few of them deleted; all of it is acknowledged."""
    failures: list[confluent_kafka.KafkaError] = []

    def on_delivery(error: confluent_kafka.KafkaError | None, _: confluent_kafka.Message) -> None:
        if error is not None:
            failures.append(error)

    codec = chance.choice(["none", "lz4", "zstd"])
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": broker.address, "compression.type": codec, "linger.ms": 2}
    )
    for _ in range(RECORDS_PER_ROUND):
        key = f"key-{chance.randrange(KEYS)}"
        value = None if chance.random() < 0.01 else chance.randbytes(70).hex()
        newest[key] = value or ""
        producer.produce(TOPIC, key=key, value=value, partition=0, on_delivery=on_delivery)
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0
    assert not failures


def _read(broker: Target) -> tuple[dict[str, str], list[int]]:
    """The newest value of each key as a consumer finds it, and every offset that it was given."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.address,
            "group.id": NO_GROUP,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, 0)])
    newest: dict[str, str] = {}
    offsets: list[int] = []
    while True:
        message = consumer.poll(PATIENCE_S)
        assert message is not None, "neither a record nor the end"
        error = message.error()
        if error is not None:
            assert error.code() == confluent_kafka.KafkaError._PARTITION_EOF, error
            break
        key, value, offset = message.key(), message.value(), message.offset()
        assert key is not None and offset is not None
        newest[bytes(key).decode()] = bytes(value or b"").decode()
        offsets.append(offset)
    consumer.close()
    return newest, offsets


def _cleaned_up_to(directory: Path) -> int:
    """What Kafka's checkpoint of the cleaner says."""
    path = directory / "cleaner-offset-checkpoint"
    lines = path.read_text().splitlines()[2:] if path.exists() else []
    return max((int(line.split()[2]) for line in lines if line.startswith(TOPIC)), default=0)


def test_a_compacted_topic_keeps_every_newest_value_through_kills(
    start_broker: StartBroker,
) -> None:
    chance = random.Random(7)
    broker = start_broker({"log.cleaner.backoff.ms": 50, "log.segment.delete.delay.ms": 100})
    with WireClient(broker.address) as wire:
        wire.create_topic(TOPIC, configs=CONFIGS)
    newest: dict[str, str] = {}
    for round_ in range(ROUNDS):
        before = _cleaned_up_to(broker.log_directory)
        _write(broker, newest, chance)
        if round_ != 1:  # the second time the kill meets the cleaner wherever it is
            wait_until(
                lambda: _cleaned_up_to(broker.log_directory) > before,  # noqa: B023
                "a round of compaction",
            )
        broker.kill()
        broker.start()
        found, _ = _read(broker)
        assert {key: value for key, value in found.items() if value} == {
            key: value for key, value in newest.items() if value
        }
    half = ROUNDS * RECORDS_PER_ROUND // 2
    offsets = wait_until(
        lambda: offsets if len(offsets := _read(broker)[1]) < half else None,
        "most of the old values to be gone: closed segments are cleaned after the last start, too",
    )
    assert offsets == sorted(set(offsets)), "in order, none twice"
