"""Document 3 on real processes: the leader fails, and clients tell what became of their records."""

from __future__ import annotations

import os
import signal
from contextlib import closing
from typing import Any

import pytest

from tests.process.evidence import dumped
from tests.process.producers import Failed, Librdkafka, Ok, ProducerOptions
from tests.process.proxy import FETCH, Seen
from tests.process.readers import KafkaPythonReader, LibrdkafkaReader
from tests.process.stage import Stage
from tests.process.target import IS_KAFKA
from tests.process.timelines import Crew, StartCrew, StartProducer
from tests.process.verdicts import final_log, lost, verdict, writes
from tests.process.waiting import wait_until
from tidelog.judge.history import WriteAcks

pytestmark = [
    pytest.mark.skipif(IS_KAFKA, reason="Apache Kafka as a cluster is another harness"),
    pytest.mark.xdist_group("d3-failure"),
]

COMMITTED = 1_000
REQUEST_TIMEOUT_MS = 2_500
IN_BATCHES = {"batch.num.messages": 10_000, "linger.ms": 5}


def write_committed(stage: Stage, topic: str, count: int = COMMITTED) -> list[str]:
    """Records 0 and up, which all replicas have."""
    numbers = [str(number) for number in range(count)]
    with closing(Librdkafka(stage.bootstrap, ProducerOptions(), **IN_BATCHES)) as producer:
        calls = [producer.send(topic, number) for number in numbers]
        assert [call.wait() for call in calls] == [Ok(number) for number in range(count)]
    return numbers


@pytest.mark.scenario("D3-T17", "D3-U4", "D3-Q4", "D3-Q5", "D3-R3", "D3-K1", "D3-B4", "N39")
@pytest.mark.scenario("D3-V0", "D3-V1", "D3-V2")
def test_what_only_the_leader_had_is_lost_and_what_all_had_is_not(
    stage: Stage, start_producer: StartProducer
) -> None:
    """1000 to 1004 were acknowledged with acks=1 and reached no follower. Their producer believes
    them safe; no consumer ever has them; they lie on the dead leader's disk until it returns, where
    `tidelog dump` shows them, and its return truncates them. acks=all was told nothing false."""
    topic = stage.new_topic((1, 2, 3), min_insync_replicas="2")
    numbers = write_committed(stage, topic)
    with (
        closing(LibrdkafkaReader(stage.bootstrap, topic)) as librdkafka,
        closing(KafkaPythonReader(stage.bootstrap, topic)) as kafka_python,
    ):
        readers: list[LibrdkafkaReader | KafkaPythonReader] = [librdkafka, kafka_python]
        for reader in readers:
            reader.read_until(numbers[-1])
        holds = [stage.hold_back(follower, leader=1) for follower in (2, 3)]
        content = start_producer("librdkafka", acks="1", enable_idempotence=False)
        hasty = [content.send(topic, f"hasty-{number}") for number in range(5)]
        assert [call.wait() for call in hasty] == [Ok(COMMITTED + n) for n in range(5)]
        careful = start_producer("librdkafka").send(topic, "careful")
        stage.wait_for_end(topic, COMMITTED + 6, of=1)
        for reader in readers:
            assert (reader.read(), reader.position) == (0, COMMITTED)

        stage.kill(1)
        for hold in holds:
            hold.lose()
        assert careful.wait() == Ok(COMMITTED)
        for reader in readers:
            reader.read_until("careful")
            assert reader.records == [*enumerate(numbers), (COMMITTED, "careful")]

    tail = [fact for fact in _batches(stage, 1, topic) if fact["base_offset"] >= COMMITTED]
    assert [(fact["base_offset"], fact["leader_epoch"]) for fact in tail] == [
        (COMMITTED + number, 0) for number in range(6)
    ]
    [kept] = [fact for fact in _batches(stage, 2, topic) if fact["base_offset"] >= COMMITTED]
    assert (kept["base_offset"], kept["leader_epoch"]) == (COMMITTED, 1)
    final = final_log(stage.cluster.nodes[2].address, topic, partition=0, at_us=10**9)
    history = [
        *writes(hasty, partition=f"{topic}-0", writer="hasty", acks=WriteAcks.LEADER),
        *writes([careful], partition=f"{topic}-0", writer="careful"),
    ]
    assert lost(verdict(history, final)) == [call.value for call in hasty]

    stage.restart(1)
    stage.cluster.wait_until_in_sync(topic, 0)
    assert stage.headers(topic, of=1) == stage.headers(topic, of=2) == stage.headers(topic, of=3)


def _batches(stage: Stage, broker: int, topic: str) -> list[dict[str, int]]:
    directory = stage.cluster.nodes[broker].data_path / f"{topic}-0"
    return [fact for fact in dumped(directory) if fact["kind"] == "batch"]


@pytest.mark.scenario("D3-F2", "D3-V5", "D3-D5", "N13", "N17", "N41")
@pytest.mark.parametrize("how", ["SIGKILL", pytest.param("SIGSTOP", marks=pytest.mark.long)])
def test_a_leader_that_dies_in_the_fetch_costs_the_consumer_nothing(
    stage: Stage, start_producer: StartProducer, how: str
) -> None:
    """A fetch at 1000 is under way when the leader goes. The same fetch goes to the next leader, at
    once or when the client's patience ends: 1000 to 1099 come once and the position is 1100."""
    old, new, third = stage.controller_last()
    topic = stage.new_topic((old, new, third))
    numbers = write_committed(stage, topic, COMMITTED + 100)
    patience: dict[str, Any]
    patience = {"request_timeout_ms": REQUEST_TIMEOUT_MS} if how == "SIGSTOP" else {}

    def is_a_clients_fetch(seen: Seen) -> bool:
        return seen.api_key == FETCH and not (seen.client_id or "").startswith("node-")

    hold = stage.proxies[old].hold(is_a_clients_fetch)
    with (
        closing(
            LibrdkafkaReader(stage.bootstrap, topic, offset=COMMITTED, **patience)
        ) as librdkafka,
        closing(
            KafkaPythonReader(stage.bootstrap, topic, offset=COMMITTED, **patience)
        ) as kafka_python,
    ):
        readers: list[LibrdkafkaReader | KafkaPythonReader] = [librdkafka, kafka_python]
        names = ("rdkafka", "kafka-python")
        wait_until(
            lambda: (
                sum(reader.read() for reader in readers) == 0
                and all(
                    any((each.client_id or "").startswith(n) for each in hold.held) for n in names
                )
            ),
            "both consumers' fetches",
        )
        stage.kill(old) if how == "SIGKILL" else stage.freeze(old)
        hold.lose()

        for reader in readers:
            reader.read_until(numbers[-1])
            assert reader.read() == 0
            assert reader.records == list(enumerate(numbers))[COMMITTED:]
            assert reader.position == COMMITTED + 100
            assert reader.errors == []
    assert stage.wait_for(topic, lambda it: it.leader == new, via=new).leader_epoch == 1


@pytest.mark.scenario("D3-C1", "D3-PG1", "N25")
def test_acks_0_believes_in_what_never_reached_a_log(stage: Stage, start_crew: StartCrew) -> None:
    """The record is in the network when the silent leader is killed. Its producer was told
    ok, without an offset; the record is nowhere, and nobody sends it again."""
    clients = ("librdkafka", "kafka-python")
    crew = start_crew(clients, acks="0", enable_idempotence=False)
    topic = stage.new_topic(*[(1, 2, 3)] * len(clients))
    first = crew.send(topic, "before").wait()
    assert all(isinstance(told, Ok) and (told.offset or -1) < 0 for told in first.values()), first
    for partition in crew.partitions.values():
        stage.wait_for_end(topic, 1, of=3, partition=partition)
    stage.freeze(1)
    told = crew.send(topic, "order").wait()
    assert told == first
    wait_until(lambda: len(stage.asked_for(1, "order")) == len(clients), "both requests")

    stage.kill(1)
    for partition in crew.partitions.values():
        stage.wait_for(topic, lambda it: it.leader == 2, partition=partition, via=3)
    after = start_crew(clients, acks="all")
    after.send(topic, "after").wait_for(Ok(1))
    assert crew.stored(stage, topic, leader=2) == crew.each("before", "after")
    assert stage.asked_for(2, "order") == stage.asked_for(3, "order") == []


RESET = {
    "librdkafka": {"_TRANSPORT"},
    "kafka-python": {"KafkaConnectionError"},
}
SILENCE = {
    "librdkafka": {"_TIMED_OUT", "_MSG_TIMED_OUT"},
    "kafka-python": {"KafkaTimeoutError", "RequestTimedOutError"},
}


@pytest.mark.scenario("D3-T1", "D3-D4", "N13")
@pytest.mark.parametrize("cause", [signal.SIGKILL, signal.SIGBUS, signal.SIGSTOP])
def test_clients_can_tell_a_dead_leader_from_a_silent_one(
    stage: Stage, start_producer: StartProducer, cause: signal.Signals
) -> None:
    """Killed for want of memory, or by a fault of the hardware: the connection ends, and a producer
    without retries hears so at once. A host that falls silent is only found out by a timeout."""
    patience = {"request_timeout_ms": REQUEST_TIMEOUT_MS} if cause is signal.SIGSTOP else {}
    crew = Crew(
        {
            client: start_producer(
                client, acks="1", retries=0, enable_idempotence=False, **patience
            )
            for client in RESET
        }
    )
    old, new, third = stage.controller_last()
    topic = stage.new_topic(*[(old, new, third)] * len(RESET))
    crew.send(topic, "before").wait_for(Ok(0))
    hold = stage.hold_answers(old, "order")
    if cause is signal.SIGSTOP:
        stage.freeze(old)
    calls = crew.send(topic, "order")
    wait_until(lambda: len(stage.asked_for(old, "order")) == len(RESET), "the requests")
    if cause is not signal.SIGSTOP:
        wait_until(lambda: len(hold.held) == len(RESET), "the answers that will be lost")
        stage.proxies[old].refuse()
        pid = stage.cluster.nodes[old].pid
        assert pid is not None
        os.kill(pid, cause)
        stage.cluster.exit_code(old)
        stage.note_dead(old)
        hold.lose()

    expected = SILENCE if cause is signal.SIGSTOP else RESET
    for client, told in calls.wait().items():
        assert isinstance(told, Failed) and told.error in expected[client], (client, told)
