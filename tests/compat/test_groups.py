"""Consumers with a group, unmodified: they subscribe, share partitions, commit and come back."""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Thread

import aiokafka
import confluent_kafka
import kafka
import pytest

from tests.compat.clients import DELIVERY_S, HAS_KCAT, run_kcat
from tests.process.target import Target, running_target
from tests.process.waiting import PATIENCE_MS, wait_until
from tests.process.wire import WireClient, batch_of

PARTITIONS = 4
RECORDS = 20
EVERYTHING = sorted(b"%d/%d" % (p, n) for p in range(PARTITIONS) for n in range(RECORDS))

Consume = Callable[[str, str, str, int], list[bytes]]
"""Gets address, topic, group and how many records to read before it commits and leaves."""


@pytest.fixture(scope="module", name="eager")
def a_broker_whose_groups_begin_at_once() -> Iterator[Target]:
    with running_target({"group.initial.rebalance.delay.ms": 0}) as target:
        yield target


@pytest.fixture(name="topic")
def a_filled_topic(eager: Target, request: pytest.FixtureRequest) -> str:
    name = re.sub(r"[^a-zA-Z0-9-]", "-", request.node.name)
    with WireClient(eager.address) as wire:
        wire.create_topic(name, partitions=PARTITIONS)
        for partition in range(PARTITIONS):
            values = [b"%d/%d" % (partition, n) for n in range(RECORDS)]
            wire.produce(name, batch_of(*values), partition=partition)
    return name


def with_librdkafka(address: str, topic: str, group: str, count: int) -> list[bytes]:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": address,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    values: list[bytes] = []
    while len(values) < count:
        record = consumer.poll(DELIVERY_S)
        assert record is not None, f"only {len(values)} records came"
        assert record.error() is None, record.error()
        values.append(record.value() or b"")
    if values:
        consumer.commit(asynchronous=False)
    consumer.close()
    return values


def with_kafka_python(address: str, topic: str, group: str, count: int) -> list[bytes]:
    consumer = kafka.KafkaConsumer(
        topic,
        bootstrap_servers=address,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_poll_records=1,
        consumer_timeout_ms=PATIENCE_MS,
    )
    values = [next(consumer).value for _ in range(count)]
    consumer.commit()
    consumer.close()
    return values


def with_aiokafka(address: str, topic: str, group: str, count: int) -> list[bytes]:
    async def consume() -> list[bytes]:
        consumer = aiokafka.AIOKafkaConsumer(
            topic,
            bootstrap_servers=address,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        await consumer.start()
        try:
            values = [
                (await asyncio.wait_for(consumer.getone(), DELIVERY_S)).value for _ in range(count)
            ]
            await consumer.commit()
        finally:
            await consumer.stop()
        return [value or b"" for value in values]

    return asyncio.run(consume())


def with_kcat(address: str, topic: str, group: str, count: int) -> list[bytes]:
    """Its balanced consumer, which commits what it has printed when it ends."""
    arguments = ["-b", address, "-G", group, "-c", str(count), "-X", "auto.offset.reset=earliest"]
    return [line.encode() for line in run_kcat([*arguments, topic]).split()]


@pytest.mark.scenario("D3-F1")
def test_fetch_1000_process_100_and_commit_1100(eager: Target, topic: str) -> None:
    """The records 1000–1099 of 1,105 are fetched from offset 1000 and committed as 1100, the next
    offset; the group has it, and goes on there to the end and not beyond."""
    name = f"{topic}-long"
    with WireClient(eager.address) as wire:
        wire.create_topic(name)
        for number in range(0, 1_105, 65):
            wire.produce(name, batch_of(*(b"m%d" % each for each in range(number, number + 65))))
    settings: dict[str, str | int | float | bool] = {
        "bootstrap.servers": eager.address,
        "group.id": name,
        "enable.auto.commit": False,
        "enable.partition.eof": True,
    }
    reader = confluent_kafka.Consumer(settings)
    reader.assign([confluent_kafka.TopicPartition(name, 0, 1_000)])
    first = reader.consume(100, DELIVERY_S)
    assert [(each.offset(), each.value()) for each in first] == [
        (number, b"m%d" % number) for number in range(1_000, 1_100)
    ]
    reader.commit(message=first[-1], asynchronous=False)
    reader.close()

    successor = confluent_kafka.Consumer(settings)
    partition = confluent_kafka.TopicPartition(name, 0)
    assert successor.committed([partition], DELIVERY_S)[0].offset == 1_100
    successor.assign([confluent_kafka.TopicPartition(name, 0, confluent_kafka.OFFSET_STORED)])
    rest = successor.consume(6, DELIVERY_S)
    assert [each.offset() for each in rest] == [*range(1_100, 1_105), 1_105]
    end = rest[-1].error()
    assert end is not None and end.code() == confluent_kafka.KafkaError._PARTITION_EOF
    successor.close()


@pytest.mark.scenario("D3-F1")
@pytest.mark.parametrize("consume", [with_librdkafka, with_kafka_python, with_aiokafka, with_kcat])
def test_a_group_goes_on_where_it_has_committed(
    consume: Consume, eager: Target, topic: str
) -> None:
    """Some records, a commit, the end of the consumer; the next one of the group has the rest."""
    first = consume(eager.address, topic, topic, 30)
    second = consume(eager.address, topic, topic, len(EVERYTHING) - 30)

    assert sorted(first + second) == EVERYTHING


def test_the_libraries_share_a_group_one_after_the_other(eager: Target, topic: str) -> None:
    """What one library has committed, the next one goes on from."""
    first = with_librdkafka(eager.address, topic, topic, 30)
    second = with_kafka_python(eager.address, topic, topic, 30)
    third = with_aiokafka(eager.address, topic, topic, len(EVERYTHING) - 60)

    assert sorted(first + second + third) == EVERYTHING


def test_two_members_share_the_partitions(eager: Target, topic: str) -> None:
    """Each record goes to one of them, and both have some partitions at the end."""
    config: dict[str, str | int | float | bool] = {
        "bootstrap.servers": eager.address,
        "group.id": topic,
        "auto.offset.reset": "earliest",
        "session.timeout.ms": 6_000,
    }
    consumers = [confluent_kafka.Consumer(config) for _ in range(2)]
    for consumer in consumers:
        consumer.subscribe([topic])
    owned: list[set[int]] = [set(), set()]
    for _ in range(int(DELIVERY_S * 10)):
        for consumer, partitions in zip(consumers, owned, strict=True):
            consumer.poll(0.05)
            partitions.clear()
            partitions.update(each.partition for each in consumer.assignment())
        if all(owned) and len(owned[0] | owned[1]) == PARTITIONS:
            break
    closing = [Thread(target=consumer.close) for consumer in consumers]
    for thread in closing:
        thread.start()
    for thread in closing:
        thread.join()

    assert all(owned), owned
    assert not owned[0] & owned[1]
    assert owned[0] | owned[1] == set(range(PARTITIONS))


@pytest.mark.skipif(not HAS_KCAT, reason="kcat is not installed (Debian: apt install kcat)")
def test_two_kcats_are_balanced_and_the_one_left_has_all(
    eager: Target, topic: str, tmp_path: Path
) -> None:
    """Each writes to its standard error what it is assigned; the second is killed."""
    command = ["kcat", "-b", eager.address, "-G", topic, "-X", "session.timeout.ms=6000", topic]
    notes = [tmp_path / "first", tmp_path / "second"]
    with ExitStack() as ending:
        for number, note in enumerate(notes, start=1):
            pipe = ending.enter_context(note.open("wb"))
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=pipe)
            ending.callback(process.wait)
            ending.callback(process.kill)
            wait_for_shares(notes[:number])
        process.kill()
        wait_for_shares(notes[:1])


def wait_for_shares(notes: list[Path]) -> None:
    """Until all have as many partitions as the others."""
    wanted = {PARTITIONS // len(notes)}
    wait_until(lambda: set(map(kcats_share, notes)) == wanted, f"shares of {wanted}")


def kcats_share(notes: Path) -> int:
    """How many partitions kcat was assigned last."""
    found = re.findall(r"rebalanced .*: assigned: (.*)", notes.read_text())
    return len(re.findall(r"\[\d+\]", found[-1])) if found else 0


def test_a_simple_consumer_stores_its_offsets(eager: Target, topic: str) -> None:
    """Partitions are assigned by hand; the group only keeps offsets."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": eager.address, "group.id": topic})
    consumer.assign([confluent_kafka.TopicPartition(topic, 1, 0)])
    offset = confluent_kafka.TopicPartition(topic, 1, 7, "halfway")
    consumer.commit(offsets=[offset], asynchronous=False)
    (found,) = consumer.committed([confluent_kafka.TopicPartition(topic, 1)], timeout=DELIVERY_S)
    consumer.close()

    assert (found.offset, found.metadata) == (7, "halfway")
