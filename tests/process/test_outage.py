"""An outage as clients live through it: the leader is dead and nobody can elect another for now."""

from __future__ import annotations

import json
from contextlib import closing
from functools import partial

import confluent_kafka
import kafka
import pytest

from tests.process.producers import Call, Librdkafka, Ok, ProducerOptions
from tests.process.stage import Stage
from tests.process.target import IS_KAFKA
from tests.process.timelines import PYTHON_CLIENTS, StartProducer
from tests.process.waiting import wait_until
from tests.process.wire import NO_GROUP

pytestmark = [
    pytest.mark.skipif(IS_KAFKA, reason="Apache Kafka as a cluster is another harness"),
    pytest.mark.xdist_group("timelines"),
]

RECORDS = 50
REQUEST_TIMEOUT_MS = 3_000
POLLS = 5
POLL_S = 0.1


class Reader:
    """What a consumer was given; an error from it fails the test."""

    def __init__(self) -> None:
        self.values: list[str] = []

    def read(self) -> int:
        """Poll once; how many records came."""
        records = self.poll()
        self.values += [value.decode() for value in records]
        return len(records)

    def read_until(self, count: int) -> None:
        wait_until(lambda: self.read() >= 0 and len(self.values) >= count, f"{count} records")

    def poll(self) -> list[bytes]:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class LibrdkafkaReader(Reader):
    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__()
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                **NO_GROUP,
                "auto.offset.reset": "earliest",
                "socket.timeout.ms": REQUEST_TIMEOUT_MS,
                "fetch.wait.max.ms": 100,
                "reconnect.backoff.max.ms": 100,
                "topic.metadata.refresh.fast.interval.ms": 100,
                "log_level": 0,
            }
        )
        self._consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])

    def poll(self) -> list[bytes]:
        record = self._consumer.poll(POLL_S)
        if record is None:
            return []
        assert record.error() is None, record.error()
        value = record.value()
        assert value is not None
        return [value]

    def close(self) -> None:
        self._consumer.close()


class KafkaPythonReader(Reader):
    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__()
        self._consumer = kafka.KafkaConsumer(
            bootstrap_servers=bootstrap.split(","),
            group_id=None,
            auto_offset_reset="earliest",
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            fetch_max_wait_ms=100,
            reconnect_backoff_max_ms=100,
            metadata_max_age_ms=1_000,
        )
        self._partition = kafka.TopicPartition(topic, 0)
        self._consumer.assign([self._partition])

    def poll(self) -> list[bytes]:
        batches = self._consumer.poll(timeout_ms=int(1_000 * POLL_S))
        return [record.value for record in batches.get(self._partition, [])]

    def close(self) -> None:
        self._consumer.close()


ReaderKind = type[LibrdkafkaReader] | type[KafkaPythonReader]


@pytest.fixture(params=[LibrdkafkaReader, KafkaPythonReader], ids=["librdkafka", "kafka-python"])
def reader_kind(request: pytest.FixtureRequest) -> ReaderKind:
    kind: ReaderKind = request.param
    return kind


def begin_outage(stage: Stage) -> None:
    """Broker 1 leads and dies; 2 is silent, so that 3 alone is no majority of the controllers."""
    stage.freeze(2)
    stage.kill(1)


def end_outage(stage: Stage, topic: str) -> None:
    """2 is back, so the controllers elect: 3 comes first in the assignment after 1."""
    stage.wake(2)
    stage.wait_for(topic, lambda it: it.leader == 3, via=3)


@pytest.mark.scenario("D3-T4", "D3-T18", "D3-Q6", "N13")
def test_producers_queue_through_an_outage_and_resume(
    stage: Stage, start_producer: StartProducer
) -> None:
    """While nobody leads, records queue and no delivery fails. After the election they are sent to
    the new leader: every one arrives once, in order, with no gap between the two leaders."""
    topics = {client: stage.new_topic((1, 3, 2)) for client in PYTHON_CLIENTS}
    producers = {
        client: start_producer(client, request_timeout_ms=REQUEST_TIMEOUT_MS)
        for client in PYTHON_CLIENTS
    }
    for client, producer in producers.items():
        assert producer.send(topics[client], "before").wait() == Ok(0)
    begin_outage(stage)

    numbers = [str(number) for number in range(RECORDS)]
    calls: dict[str, list[Call]] = {
        client: [producer.send(topics[client], number) for number in numbers]
        for client, producer in producers.items()
    }
    assert {call.outcome for sent in calls.values() for call in sent} == {None}
    assert stage.asked_for(3, "0") == [], "nobody was taken for the leader"

    end_outage(stage, topics["tidelog"])
    for client, sent in calls.items():
        assert [call.wait() for call in sent] == [Ok(n + 1) for n in range(RECORDS)]
        assert stage.values(topics[client], leader=3) == ["before", *numbers]


@pytest.mark.scenario("D3-T4")
def test_librdkafka_counts_what_queues(stage: Stage) -> None:
    """Its statistics say how many records wait, and its reports name no failure."""
    topic = stage.new_topic((1, 3, 2))
    queued: list[int] = []
    producer = Librdkafka(
        stage.bootstrap,
        ProducerOptions(request_timeout_ms=REQUEST_TIMEOUT_MS),
        **{
            "statistics.interval.ms": 50,
            "stats_cb": lambda text: queued.append(json.loads(text)["msg_cnt"]),
        },
    )
    assert producer.send(topic, "before").wait() == Ok(0)
    begin_outage(stage)

    calls: list[Call] = []
    for goal in (RECORDS // 2, RECORDS):
        calls += [producer.send(topic, str(number)) for number in range(len(calls), goal)]
        wait_until(partial(lambda goal: queued and queued[-1] == goal, goal), "statistics")
    assert {call.outcome for call in calls} == {None}

    end_outage(stage, topic)
    assert [call.wait() for call in calls] == [Ok(n + 1) for n in range(RECORDS)]
    wait_until(lambda: queued[-1] == 0, "an empty queue")
    producer.close()


@pytest.mark.scenario("D3-T5", "D3-T6", "D3-T19", "D3-V7")
def test_consumers_hear_nothing_during_an_outage_and_miss_nothing_after_it(
    stage: Stage, start_producer: StartProducer, reader_kind: ReaderKind
) -> None:
    """No exception out of poll, and no record; then the position goes on at the new leader."""
    topic = stage.new_topic((1, 3, 2))
    producer = start_producer("tidelog", request_timeout_ms=REQUEST_TIMEOUT_MS)
    numbers = [str(number) for number in range(RECORDS)]
    assert [producer.send(topic, number).wait() for number in numbers][-1] == Ok(RECORDS - 1)
    with closing(reader_kind(stage.bootstrap, topic)) as reader:
        reader.read_until(RECORDS)
        begin_outage(stage)
        after = producer.send(topic, "after")

        assert [reader.read() for _ in range(POLLS)] == [0] * POLLS

        end_outage(stage, topic)
        assert after.wait() == Ok(RECORDS)
        reader.read_until(RECORDS + 1)
        assert reader.read() == 0
        assert reader.values == [*numbers, "after"]
