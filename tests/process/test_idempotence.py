"""Retries after a lost answer: two copies without idempotence, one with it."""

from __future__ import annotations

import time
from collections.abc import Iterator

import confluent_kafka
import pytest

from tests.process.fixtures import StartBroker
from tests.process.proxy import Proxy
from tests.process.target import Target, running_target
from tests.process.waiting import PATIENCE_S, wait_until
from tests.process.wire import WireClient, batch_of, batches_on_disk
from tidelog.core.wire.record_batch import BatchHeader


class Stage:
    """A broker behind a proxy that can lose answers."""

    def __init__(self, broker: Target, proxy: Proxy) -> None:
        self.broker = broker
        self.proxy = proxy

    def producer(self, **settings: object) -> confluent_kafka.Producer:
        names = {key.replace("_", "."): value for key, value in settings.items()}
        quick = {"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 50, "retry.backoff.ms": 10}
        return confluent_kafka.Producer(
            {"bootstrap.servers": self.proxy.address, "acks": "all", **quick, **names}
        )

    def headers(self, topic: str, *, partition: int = 0) -> list[BatchHeader]:
        found = batches_on_disk(self.broker.log_directory, topic, partition=partition)
        return [header for header, _ in found]


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Proxy() as proxy, running_target(proxy.proxied_settings) as broker:
        proxy.forward_to(broker.address)
        yield Stage(broker, proxy)


def _send_with_a_lost_answer(stage: Stage, topic: str, *, idempotent: bool) -> list[bytes | None]:
    """M1 is written, its answer lost, and it is sent again; what the log holds then."""
    with WireClient(stage.broker.address) as wire:
        wire.create_topic(topic)
        stage.proxy.lose_answers(lambda number: number == 0)
        producer = stage.producer(enable_idempotence=idempotent)
        places: list[int | None] = []
        producer.produce(topic, b"M1", on_delivery=lambda _, record: places.append(record.offset()))
        assert producer.flush(PATIENCE_S) == 0
        assert stage.proxy.answers_lost == 1
        assert len(stage.proxy.produce_requests()) == 2
        values = [record.value for record in wire.read_all(topic)]
    assert places == [len(values) - 1]
    return values


@pytest.mark.scenario("D4-I1")
def test_without_idempotence_a_lost_answer_gives_two_copies(stage: Stage) -> None:
    assert _send_with_a_lost_answer(stage, "plain", idempotent=False) == [b"M1", b"M1"]


@pytest.mark.scenario("D4-I2")
def test_with_idempotence_a_lost_answer_gives_one_copy(stage: Stage) -> None:
    """The retry is recognised and answered with the offset of the first."""
    assert _send_with_a_lost_answer(stage, "idempotent", idempotent=True) == [b"M1"]


@pytest.mark.scenario("D4-I4")
def test_a_restarted_producer_without_a_transactional_id_is_a_new_one(stage: Stage) -> None:
    """A new producer id with epoch 0, not the old id with epoch 1: so a resend is stored again."""
    with WireClient(stage.broker.address) as wire:
        wire.create_topic("orders")
        for _ in range(2):
            producer = stage.producer(enable_idempotence=True)
            producer.produce("orders", b"M1")
            assert producer.flush(PATIENCE_S) == 0
        values = [record.value for record in wire.read_all("orders")]
    first, second = stage.headers("orders")

    assert values == [b"M1", b"M1"]
    assert first.producer_id != second.producer_id
    assert (first.producer_epoch, second.producer_epoch) == (0, 0)
    assert (first.base_sequence, second.base_sequence) == (0, 0)


@pytest.mark.scenario("D4-I3")
def test_producer_ids_are_never_given_twice(start_broker: StartBroker) -> None:
    """Also not after a clean restart, nor after a crash."""
    broker = start_broker()
    given: list[tuple[int, int]] = []
    for end in (broker.stop, broker.kill, broker.stop):
        with WireClient(broker.address) as wire:
            wire.create_topic(f"t{len(given)}")  # a broker that starts may still be loading
            wait_until(lambda: _ready(wire), "producer ids")
            given += [wire.new_producer() for _ in range(5)]
        end()
        broker.start()
    assert len({producer_id for producer_id, _ in given}) == len(given) == 15
    assert {producer_epoch for _, producer_epoch in given} == {0}


def _ready(wire: WireClient) -> bool:
    answer = wire.ask("InitProducerId", 4, transactional_id=None, transaction_timeout_ms=1000)
    return bool(answer.error_code == 0)


@pytest.mark.scenario("D4-I5")
def test_sequences_count_per_partition(stage: Stage) -> None:
    with WireClient(stage.broker.address) as wire:
        wire.create_topic("orders", partitions=2)
    producer = stage.producer(enable_idempotence=True, batch_num_messages=2, linger_ms=5)
    for n in range(10):
        producer.produce("orders", b"%d" % n, partition=0)
        if n < 6:
            producer.produce("orders", b"%d" % n, partition=1)
    assert producer.flush(PATIENCE_S) == 0
    for partition, count in ((0, 10), (1, 6)):
        headers = stage.headers("orders", partition=partition)
        assert headers[0].base_sequence == 0
        assert [h.base_sequence for h in headers] == [h.base_offset for h in headers]
        assert sum(header.records_count for header in headers) == count
    assert len({h.producer_id for p in range(2) for h in stage.headers("orders", partition=p)}) == 1


@pytest.mark.scenario("D4-I8")
def test_every_producer_partition_and_sequence_is_stored_once_and_in_order(stage: Stage) -> None:
    """Three producers, two partitions, every seventh answer lost: nothing twice or swapped."""
    with WireClient(stage.broker.address) as wire:
        wire.create_topic("orders", partitions=2)
        stage.proxy.lose_answers(lambda number: number % 7 == 3)
        producers = [
            stage.producer(enable_idempotence=True, batch_num_messages=5, linger_ms=1)
            for _ in range(3)
        ]
        for n in range(200):
            for who, producer in enumerate(producers):
                producer.produce("orders", b"%d %d" % (who, n), partition=n % 2)
                producer.poll(0)
        assert [producer.flush(PATIENCE_S) for producer in producers] == [0, 0, 0]
        assert stage.proxy.answers_lost > 3
        for partition in range(2):
            values = [record.value for record in wire.read_all("orders", partition=partition)]
            for who in range(3):
                own = [value for value in values if value and value.startswith(b"%d " % who)]
                assert own == [b"%d %d" % (who, n) for n in range(200) if n % 2 == partition]
            following: dict[int, int] = {}
            for header in stage.headers("orders", partition=partition):
                assert header.base_sequence == following.get(header.producer_id, 0)
                following[header.producer_id] = header.base_sequence + header.records_count
            assert list(following.values()) == [100, 100, 100]


@pytest.mark.scenario("D4-I8")
def test_a_repeated_batch_is_a_duplicate_also_after_a_crash(start_broker: StartBroker) -> None:
    """The producers' state is found again in snapshot and log, however the broker ended."""
    broker = start_broker()
    batch = b""
    for round_, end in enumerate((broker.kill, broker.stop, broker.kill)):
        with WireClient(broker.address) as wire:
            if not batch:
                wire.create_topic("orders")
                wait_until(lambda: _ready(wire), "producer ids")
                producer_id, _ = wire.new_producer()
            state = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 2 * round_}
            # A producer whose newest record is a day old is forgotten, so this one must be fresh.
            batch = batch_of(b"a", b"b", timestamp_ms=time.time_ns() // 1_000_000, **state)
            first = wire.produce("orders", batch)
            assert (first.error_code, first.base_offset) == (0, 2 * round_)
        end()
        broker.start()
        with WireClient(broker.address) as wire:
            again = wire.produce("orders", batch)
            assert (again.error_code, again.base_offset) == (0, 2 * round_)
            assert wire.end_offset("orders") == 2 * round_ + 2
