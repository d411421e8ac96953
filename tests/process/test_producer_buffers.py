"""Records that cannot leave: they wait per partition, until the buffer is full, each client's way.

Document 3 has 32 MiB and 60 s; here it is 1 MiB or a thousand records, and seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest

from tests.process.producers import Call, Failed, Java, Librdkafka, Ok, ProducerOptions
from tests.process.stage import Stage
from tests.process.target import IS_KAFKA
from tests.process.timelines import EVERY_CLIENT, StartProducer
from tests.process.waiting import wait_until

pytestmark = [
    pytest.mark.skipif(IS_KAFKA, reason="Apache Kafka as a cluster is another harness"),
    pytest.mark.xdist_group("timelines"),
]

RECORDS = 20
REQUEST_TIMEOUT_MS = 3_000
BUFFER_MESSAGES = 1_000
BUFFER_BYTES = 1 << 20
RECORD_BYTES = 100_000
FIT = BUFFER_BYTES // RECORD_BYTES
MAX_BLOCK_MS = 8_000
"""The first call of a producer needs some of it for the metadata."""


def told(calls: Sequence[Call]) -> list[Ok | Failed | None]:
    return [call.outcome for call in calls]


@pytest.mark.scenario("D3-PB1", "D3-PB2", "D3-PB3")
@pytest.mark.parametrize("clients", EVERY_CLIENT)
def test_records_wait_for_the_leader_of_their_own_partition(
    stage: Stage, start_producer: StartProducer, clients: tuple[str, ...]
) -> None:
    """Partition 0 has lost its leader, partition 1 has not: calls return for both, the records of 1
    are delivered, those of 0 do not even leave. When its leader is back they come in order."""
    producers = {client: start_producer(client) for client in clients}
    topics = {client: stage.new_topic((2,), (3,)) for client in clients}
    for client, producer in producers.items():
        assert producer.send(topics[client], "before", partition=0).wait() == Ok(0)
    stage.kill(2)
    stage.forget_requests()

    numbers = [str(number) for number in range(RECORDS)]
    waiting: dict[str, list[Call]] = {client: [] for client in clients}
    flowing: dict[str, list[Call]] = {client: [] for client in clients}
    for client, producer in producers.items():
        for number in numbers:
            waiting[client].append(producer.send(topics[client], number, partition=0))
            flowing[client].append(producer.send(topics[client], number, partition=1))
    for client in clients:
        assert [call.wait() for call in flowing[client]] == [Ok(n) for n in range(RECORDS)]
        assert told(waiting[client]) == [None] * RECORDS
    for living in (1, 3):
        assert {each for number in numbers for each in stage.asked_for(living, number)} <= {1}

    stage.restart(2)
    for client in clients:
        assert [call.wait() for call in waiting[client]] == [Ok(n + 1) for n in range(RECORDS)]
        assert stage.values(topics[client], leader=2) == ["before", *numbers]
        assert stage.values(topics[client], leader=3, partition=1) == numbers


@pytest.mark.scenario("D3-PB3", "D3-PB4", "D3-PB5", "D3-PB7", "N27")
def test_librdkafka_refuses_the_record_that_does_not_fit_at_once(stage: Stage) -> None:
    """A thousand records wait in its queue, the next call raises BufferError. When the leader is
    back everything that was taken is delivered, once and in order."""
    topic = stage.new_topic((2,))
    producer = Librdkafka(
        stage.bootstrap,
        ProducerOptions(buffer_messages=BUFFER_MESSAGES),
        **{"batch.num.messages": 10_000},
    )
    assert producer.send(topic, "before").wait() == Ok(0)
    wait_until(lambda: len(producer.producer) == 0, "an empty queue")
    stage.kill(2)

    calls = [producer.send(topic, str(number)) for number in range(BUFFER_MESSAGES)]
    with pytest.raises(BufferError):
        producer.send(topic, "too-much")
    assert len(producer.producer) == BUFFER_MESSAGES
    assert told(calls) == [None] * BUFFER_MESSAGES

    stage.restart(2)
    assert [call.wait() for call in calls] == [Ok(n + 1) for n in range(BUFFER_MESSAGES)]
    assert stage.values(topic, leader=2) == ["before", *map(str, range(BUFFER_MESSAGES))]
    producer.close()


@pytest.mark.scenario("D3-PB3", "D3-PB5", "D3-PB7", "N27")
def test_kafka_python_takes_whatever_comes(stage: Stage, start_producer: StartProducer) -> None:
    """There is no cap: twice the other clients' buffer is taken without a wait, and delivered."""
    topic = stage.new_topic((2,))
    producer = start_producer("kafka-python", max_block_ms=MAX_BLOCK_MS)
    assert producer.send(topic, "before").wait() == Ok(0)
    stage.kill(2)

    calls = [producer.send(topic, str(n), size=RECORD_BYTES) for n in range(2 * FIT)]
    assert told(calls) == [None] * len(calls)

    stage.restart(2)
    assert [call.wait() for call in calls] == [Ok(n + 1) for n in range(2 * FIT)]
    assert stage.values(topic, leader=2) == ["before", *map(str, range(2 * FIT))]


@pytest.mark.java
@pytest.mark.long
@pytest.mark.scenario("D3-PB3", "D3-PB4", "D3-PB5", "D3-PB6", "N27")
def test_java_blocks_and_then_fails_the_future(stage: Stage, start_producer: StartProducer) -> None:
    """With the leader silent 1 MiB is soon full: the next call lasts max.block.ms and does not
    throw; its callback is told. What was taken before is delivered when the leader wakes up."""
    topic = stage.new_topic((2,))
    assert start_producer("java").send(topic, "before").wait() == Ok(0)
    producer = cast(
        Java,
        start_producer("java", buffer_memory=BUFFER_BYTES, max_block_ms=MAX_BLOCK_MS),
    )
    assert producer.send(topic, "warm").wait() == Ok(1)
    stage.freeze(2)
    taken = [producer.send(topic, str(n), size=RECORD_BYTES) for n in range(FIT)]
    refused = producer.send(topic, "too-much", size=RECORD_BYTES)

    assert refused.wait() == Failed("BufferExhaustedException")
    wait_until(lambda: refused.returned_after_ms is not None, "the call to return")
    assert (refused.returned_after_ms or 0) >= MAX_BLOCK_MS
    assert all((call.returned_after_ms or 0) < MAX_BLOCK_MS for call in taken)
    assert producer.available_bytes() < RECORD_BYTES
    assert told(taken) == [None] * FIT

    stage.wake(2)
    assert [call.wait() for call in taken] == [Ok(n + 2) for n in range(FIT)]
    assert stage.values(topic, leader=2) == ["before", "warm", *map(str, range(FIT))]
    wait_until(lambda: producer.available_bytes() == BUFFER_BYTES, "an empty buffer")


@pytest.mark.java
@pytest.mark.long
@pytest.mark.scenario("D3-PB2", "D3-PB5", "D3-PB7", "N13", "N27")
def test_a_blocked_call_returns_when_the_next_leader_takes_the_records(
    stage: Stage, start_producer: StartProducer
) -> None:
    """The leader falls silent and nobody can elect another: requests time out, the buffer fills, a
    call blocks. Then the controllers have a majority again: broker 3 leads, the buffer drains, the
    call returns, and every record is there once and in order, though the old leader sleeps on."""
    topic = stage.new_topic((1, 3, 2))
    producer = cast(
        Java,
        start_producer("java", buffer_memory=BUFFER_BYTES, request_timeout_ms=REQUEST_TIMEOUT_MS),
    )
    assert producer.send(topic, "before").wait() == Ok(0)
    stage.freeze(2)
    stage.freeze(1)
    calls = [producer.send(topic, str(n), size=RECORD_BYTES) for n in range(FIT + 1)]
    wait_until(lambda: calls[FIT - 1].returned_after_ms is not None, "a full buffer")
    wait_until(lambda: producer.available_bytes() < RECORD_BYTES, "no room")
    assert calls[FIT].returned_after_ms is None
    assert told(calls) == [None] * len(calls)

    stage.wake(2)
    assert [call.wait() for call in calls] == [Ok(n + 1) for n in range(FIT + 1)]
    wait_until(lambda: calls[FIT].returned_after_ms is not None, "the call to return")
    assert set(stage.asked_for(3, str(FIT))) == {0}
    numbers = ["before", *map(str, range(FIT + 1))]
    assert stage.values(topic, leader=3) == numbers

    stage.wake(1)
    stage.cluster.wait_until_in_sync(topic, 0)
    assert stage.headers(topic, of=1) == stage.headers(topic, of=3)
    assert stage.values(topic, leader=3) == numbers
