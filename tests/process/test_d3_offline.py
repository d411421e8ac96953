"""Document 3 on real processes, when too few are left: no leader, an unclean one, or no controller.

The controller is a node of its own here, so all brokers may die and it still decides.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from tests.process.evidence import all_events, end_offset, produce_errors
from tests.process.producers import Call, Failed, Librdkafka, Ok, ProducerOptions
from tests.process.readers import JavaReader, KafkaPythonReader, LibrdkafkaReader
from tests.process.stage import Stage, running_stage
from tests.process.target import IS_KAFKA
from tests.process.timelines import StartProducer
from tests.process.verdicts import final_log, lost, verdict, writes
from tests.process.waiting import wait_until
from tests.process.wire import segment_files
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.record_batch import batches
from tidelog.judge.anomalies import READ_THEN_LOST
from tidelog.judge.history import RecordsRead, Seen
from tidelog.judge.history_checks import judge

pytestmark = [
    pytest.mark.skipif(IS_KAFKA, reason="Apache Kafka as a cluster is another harness"),
    pytest.mark.xdist_group("d3-offline"),
]

CONTROLLER = 4
FIRST = 851
ALL = 1_001
IN_BATCHES = {"batch.num.messages": 50, "linger.ms": 5}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Three brokers, and a controller that is no broker."""
    roles = ("broker", "broker", "broker", "controller")
    with running_stage(tmp_path_factory.mktemp("apart"), roles=roles) as stage:
        yield stage


class FatalNoted(Librdkafka):
    """One whose poll may raise: there is no way on for it then."""

    fatal: str | None = None

    def _run(self) -> None:
        try:
            super()._run()
        except confluent_kafka.KafkaException as error:
            self.fatal = error.args[0].name()


def write(producer: Librdkafka, topic: str, start: int, end: int) -> list[Call]:
    """Numbered records, all acknowledged."""
    calls: list[Call] = [producer.send(topic, str(number)) for number in range(start, end)]
    assert [call.wait() for call in calls] == [Ok(number) for number in range(start, end)]
    return calls


def lead_uncleanly(stage: Stage, topics: Mapping[str, Librdkafka]) -> dict[str, list[Call]]:
    """851 records on all three; 150 more on 1 and 2 only. Both die, and 3 comes back."""
    calls = {topic: write(producer, topic, 0, FIRST) for topic, producer in topics.items()}
    for topic in topics:
        stage.wait_for_end(topic, FIRST, of=3)
    stage.kill(3)
    for topic, producer in topics.items():
        stage.wait_for(topic, lambda it: it.isr == [1, 2], via=1)
        calls[topic] += write(producer, topic, FIRST, ALL)
        stage.wait_for_end(topic, ALL, of=2)
    return calls


def unclean_end(stage: Stage, topics: Mapping[str, Librdkafka]) -> None:
    stage.kill(1)
    for topic in topics:
        stage.wait_for(topic, lambda it: it.leader == 2 and it.isr == [2], via=2)
    stage.kill(2)
    stage.launch(3)
    for topic in topics:
        stage.wait_for(topic, lambda it: it.leader == 3 and it.isr == [3], via=3)
        assert all_events(stage.cluster, "LeaderElected", f"topic={topic}", "kind=unclean")
        assert end_offset(stage, topic, of=3) == FIRST


@pytest.mark.scenario("D3-C7b", "D3-C7c", "D3-Q5", "D5-U2", "X-5", "X-20", "N30", "N32")
def test_an_unclean_election_and_what_clients_make_of_it(
    stage: Stage, start_producer: StartProducer
) -> None:
    """Broker 3 leads with 851 of 1001 committed records. Consumers that had read all go back to 851
    or are told so, also when they restart with what they stored; a producer's next sequence does
    not follow, and it is told. 150 acknowledged records are lost, and no client is told less."""
    configs = {"unclean_leader_election_enable": "true"}
    topic = stage.new_topic((1, 2, 3), min_insync_replicas="2", **configs)
    lenient = stage.new_topic((1, 2, 3), min_insync_replicas="1", **configs)
    producers = {
        name: FatalNoted(stage.bootstrap, ProducerOptions(), **IN_BATCHES)
        for name in (topic, lenient)
    }
    calls = lead_uncleanly(stage, producers)
    readers: dict[str, LibrdkafkaReader | KafkaPythonReader] = {
        "librdkafka": LibrdkafkaReader(stage.bootstrap, topic, reset="earliest"),
        "librdkafka, error": LibrdkafkaReader(stage.bootstrap, topic, reset="error"),
        "kafka-python": KafkaPythonReader(stage.bootstrap, topic, reset="earliest"),
        "kafka-python, none": KafkaPythonReader(stage.bootstrap, topic, reset="none"),
    }
    for reader in readers.values():
        reader.read_until(str(ALL - 1))
    read = list(readers["librdkafka"].records)
    unclean_end(stage, producers)

    _write_to_the_unclean_leader(stage, topic, start_producer)
    _send_a_sequence_that_does_not_follow(stage, lenient, producers[lenient])
    stage.launch(1)
    stage.wait_for(topic, lambda it: set(it.isr) == {3, 1}, via=3)
    _read_on(readers)
    _read_with_what_was_stored(stage, topic)
    for each in (*readers.values(), *producers.values()):
        each.close()
    _judge_the_loss(stage, topic, calls[topic], read)


def _write_to_the_unclean_leader(stage: Stage, topic: str, start_producer: StartProducer) -> None:
    """acks=all is refused below the minimum; acks=1 is given an offset that was taken."""
    strict = start_producer("librdkafka", retries=0, enable_idempotence=False)
    assert strict.send(topic, "refused").wait() == Failed("NOT_ENOUGH_REPLICAS")
    hasty = start_producer("librdkafka", acks="1", enable_idempotence=False)
    assert hasty.send(topic, "new").wait() == Ok(FIRST)


def _send_a_sequence_that_does_not_follow(stage: Stage, topic: str, producer: FatalNoted) -> None:
    producer.send(topic, str(ALL))
    wait_until(lambda: producer.fatal, "a fatal error")
    assert producer.fatal == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER in produce_errors(stage, 3, str(ALL))
    assert end_offset(stage, topic, of=3) == FIRST


def _read_on(readers: Mapping[str, LibrdkafkaReader | KafkaPythonReader]) -> None:
    """Back to 851, or told so where no reset is wanted."""
    told = {name: readers[name].read_until_error() for name in readers if "," in name}
    assert "truncation detected" in told["librdkafka, error"], told
    assert "LogTruncation" in told["kafka-python, none"], told
    assert all(str(FIRST) in text for text in told.values()), told
    for name in ("librdkafka", "kafka-python"):
        readers[name].read_until("new")
        assert readers[name].records[-1] == (FIRST, "new")
        assert readers[name].errors == []


def _read_with_what_was_stored(stage: Stage, topic: str) -> None:
    """A restarted consumer knows offset 1001 and the epoch of the record before it."""
    stored: dict[str, Any] = {"offset": ALL, "leader_epoch": 0}
    with closing(LibrdkafkaReader(stage.bootstrap, topic, **stored)) as restarted:
        restarted.read_until("new")
        assert restarted.records == [(FIRST, "new")]
    with closing(LibrdkafkaReader(stage.bootstrap, topic, reset="error", **stored)) as restarted:
        assert "truncation detected" in restarted.read_until_error()


@pytest.mark.java
@pytest.mark.long
@pytest.mark.scenario("D3-C7c", "N32")
def test_javas_consumer_goes_back_to_where_the_log_was_cut(
    stage: Stage, start_producer: StartProducer
) -> None:
    """It had read 1001 records, of which the unclean leader has 851: it goes on there."""
    topic = stage.new_topic((1, 2, 3), unclean_leader_election_enable="true")
    producers = {topic: FatalNoted(stage.bootstrap, ProducerOptions(), **IN_BATCHES)}
    lead_uncleanly(stage, producers)
    with closing(JavaReader(stage.bootstrap, topic)) as reader:
        reader.read_until(str(ALL - 1))
        unclean_end(stage, producers)
        hasty = start_producer("librdkafka", acks="1", enable_idempotence=False)
        assert hasty.send(topic, "new").wait() == Ok(FIRST)
        reader.read_until("new")
        assert reader.records == [*enumerate(map(str, range(ALL))), (FIRST, "new")]
    producers[topic].close()


@pytest.mark.scenario("X-20")
@pytest.mark.parametrize(
    "client",
    ["tidelog", pytest.param("java", marks=[pytest.mark.java, pytest.mark.long])],
)
def test_a_producer_goes_on_with_a_new_epoch_after_an_unclean_election(
    stage: Stage, start_producer: StartProducer, client: str
) -> None:
    """The new leader knows an older sequence and refuses the next one. Java's producer and ours
    take a new producer epoch, count from 0, and go on; what was lost is not written again."""
    topic = stage.new_topic((1, 2, 3), unclean_leader_election_enable="true")
    producer = start_producer(client)
    assert [producer.send(topic, value).wait() for value in "ab"] == [Ok(0), Ok(1)]
    stage.wait_for_end(topic, 2, of=3)
    stage.kill(3)
    stage.wait_for(topic, lambda it: it.isr == [1, 2], via=1)
    assert [producer.send(topic, value).wait() for value in "cd"] == [Ok(2), Ok(3)]
    stage.kill(1)
    stage.wait_for(topic, lambda it: it.leader == 2, via=2)
    stage.kill(2)
    stage.launch(3)

    assert [producer.send(topic, value).wait() for value in "ef"] == [Ok(2), Ok(3)]
    assert ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER in produce_errors(stage, 3, "e")
    assert stage.values(topic, leader=3) == ["a", "b", "e", "f"]
    headers = stage.headers(topic, of=3)
    assert [header.base_sequence for header in headers] == [0, 1, 0, 1]
    sessions = [(header.producer_id, header.producer_epoch) for header in headers]
    assert sessions[1] != sessions[2] == sessions[3]


def _judge_the_loss(
    stage: Stage, topic: str, calls: list[Call], read: list[tuple[int, str]]
) -> None:
    """The judge names 150 lost records, as many that were read, and nothing else of those calls."""
    final = final_log(stage.cluster.nodes[3].address, topic, partition=0, at_us=10**9)
    history = writes(calls, partition=f"{topic}-0")
    gone = [str(number) for number in range(FIRST, ALL)]
    assert lost(verdict(history, final)) == gone
    seen = RecordsRead(
        at_us=10**8,
        invoked_us=10**8,
        partition=f"{topic}-0",
        start_offset=0,
        records=tuple(Seen(offset, value) for offset, value in read),
        high_watermark=ALL,
        log_start_offset=0,
    )
    found = [each for each in judge([*history, seen, final]) if each.kind == READ_THEN_LOST]
    assert len(found) == len(gone), found[:3]


@pytest.mark.long
@pytest.mark.scenario("X-13", "N4")
def test_below_the_minimum_writes_are_invisible_or_refused(
    stage: Stage, start_producer: StartProducer
) -> None:
    """Two of three are dead, the minimum is 2: what was parked times out, acks=all is refused, and
    acks=1 is taken but not shown. When a follower is back, all of it is read in its order."""
    topic = stage.new_topic((1, 2, 3), min_insync_replicas="2")
    options = ProducerOptions(retries=0, enable_idempotence=False)
    short = Librdkafka(stage.bootstrap, options, **{"request.timeout.ms": 3_000})
    strict = Librdkafka(stage.bootstrap, options)
    hasty = start_producer("librdkafka", acks="1", enable_idempotence=False)
    assert hasty.send(topic, "before").wait() == Ok(0)
    with (
        closing(short),
        closing(strict),
        closing(LibrdkafkaReader(stage.bootstrap, topic)) as librdkafka,
        closing(KafkaPythonReader(stage.bootstrap, topic)) as kafka_python,
    ):
        readers: list[LibrdkafkaReader | KafkaPythonReader] = [librdkafka, kafka_python]
        for reader in readers:
            reader.read_until("before")
        holds = [stage.hold_back(follower, leader=1) for follower in (2, 3)]
        parked = short.send(topic, "parked")
        stage.wait_for_end(topic, 2, of=1)
        stage.kill(2)
        stage.kill(3)
        for hold in holds:
            hold.lose()
        stage.wait_for(topic, lambda it: it.isr == [1], via=1)

        assert hasty.send(topic, "hasty").wait() == Ok(2)
        assert strict.send(topic, "strict").wait() == Failed("NOT_ENOUGH_REPLICAS")
        assert parked.wait() == Failed("REQUEST_TIMED_OUT")
        for reader in readers:
            assert (reader.read(), reader.position) == (0, 1)

        stage.launch(2)
        for reader in readers:
            reader.read_until("hasty")
            assert reader.records == [(0, "before"), (1, "parked"), (2, "hasty")]
        assert strict.send(topic, "strict").wait() == Ok(3)


@pytest.mark.scenario("X-15")
def test_without_a_controller_leaders_serve_on_but_nothing_changes(
    stage: Stage, start_producer: StartProducer
) -> None:
    """Existing leaders take and give records. A follower dies: the ISR cannot shrink, so acks=all
    waits and acks=1 does not; nobody is elected. With the controller back the wait is over."""
    topic = stage.new_topic((1, 2, 3))
    careful = start_producer("librdkafka")
    hasty = start_producer("librdkafka", acks="1", enable_idempotence=False)
    assert careful.send(topic, "before").wait() == Ok(0)
    stage.cluster.kill(CONTROLLER)

    assert careful.send(topic, "still").wait() == Ok(1)
    stage.kill(3)
    stalled = careful.send(topic, "stalled")
    stage.wait_for_end(topic, 3, of=2)
    assert hasty.send(topic, "hasty").wait() == Ok(3)
    stage.wait_for_end(topic, 4, of=2)
    assert stalled.outcome is None
    standing = stage.cluster.partition_view(topic, 0, via=1)
    assert standing is not None and (standing.leader, standing.isr) == (1, [1, 2, 3])
    with closing(LibrdkafkaReader(stage.bootstrap, topic)) as reader:
        reader.read_until("still")
        assert reader.values == ["before", "still"]

    stage.cluster.launch_node(CONTROLLER)
    assert stalled.wait() == Ok(2)
    standing = stage.wait_for(topic, lambda it: it.isr == [1, 2], via=1)
    assert (standing.leader, standing.leader_epoch) == (1, 0)
    assert stage.values(topic, leader=1) == ["before", "still", "stalled", "hasty"]


@pytest.mark.long
@pytest.mark.scenario("D3-C6", "D3-S3", "N5", "N8", "N31", "N55")
def test_one_replica_only(stage: Stage, start_producer: StartProducer) -> None:
    """With its only broker dead a partition is offline, for ever if need be: producers are told at
    their own timeout. With a sound disk all is back; a torn tail costs the tail, a damaged middle
    is reported by readers, and an empty disk is an empty log."""
    sound, torn, empty = (stage.new_topic((2,), min_insync_replicas="2") for _ in range(3))
    numbers = [str(number) for number in range(1_005)]
    with closing(Librdkafka(stage.bootstrap, ProducerOptions(), **IN_BATCHES)) as producer:
        for topic in (sound, torn, empty):
            write(producer, topic, 0, len(numbers))
    impatient = start_producer("librdkafka", delivery_timeout_ms=3_000, request_timeout_ms=3_000)
    reader = LibrdkafkaReader(stage.bootstrap, empty, offset=1_000, reset="error")
    reader.read_until(numbers[-1])
    stage.kill(2)

    assert stage.wait_for(sound, lambda it: it.leader == -1, via=1).leader_epoch == 1
    with stage.cluster.wire(1) as wire:
        [told] = wire.ask("Metadata", 12, topics=[{"name": sound}]).topics[0].partitions
        assert told.error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert impatient.send(sound, "late").wait() == Failed("_MSG_TIMED_OUT")
    segment = segment_files(stage.cluster.nodes[2].data_path, torn)[-1]
    with segment.open("r+b") as file:
        file.truncate(segment.stat().st_size - 7)

    stage.restart(2)
    assert stage.wait_for(sound, lambda it: it.leader == 2, via=1).leader_epoch == 2
    assert all_events(stage.cluster, "LeaderElected", f"topic={sound}", "leader_epoch=2")
    assert stage.values(sound, leader=2) == numbers
    prefix = stage.values(torn, leader=2)
    assert prefix == numbers[: len(prefix)] and 1_000 - 50 < len(prefix) < len(numbers)
    assert start_producer("librdkafka").send(sound, "after").wait() == Ok(len(numbers))

    assert stage.cluster.stop_node(2) == 0
    _flip_a_bit(segment_files(stage.cluster.nodes[2].data_path, sound)[0])
    stage.cluster.launch_node(2)
    stage.wait_for(sound, lambda it: it.leader == 2, via=1)
    with closing(KafkaPythonReader(stage.bootstrap, sound, check_crcs=True)) as strict:
        assert "CorruptRecord" in strict.read_until_error()
        assert strict.values == numbers[: len(strict.values)]

    stage.kill(2)
    shutil.rmtree(stage.cluster.nodes[2].data_path)
    stage.restart(2)
    stage.wait_for(empty, lambda it: it.leader == 2, via=1)
    assert stage.values(empty, leader=2) == []
    assert "truncation detected" in reader.read_until_error()
    reader.close()


def _flip_a_bit(segment: Path) -> None:
    """In a record in the middle."""
    data = bytearray(segment.read_bytes())
    places = [at + header.size_bytes - 3 for at, header in batches(memoryview(data))]
    data[places[len(places) // 2]] ^= 0x01
    segment.write_bytes(data)
