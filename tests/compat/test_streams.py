"""Kafka Streams counts words: its own demo, with the topics and the group that it makes."""

from __future__ import annotations

import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from tests.compat.clients import DELIVERY_S
from tests.kafka.class_path import streams_class_path
from tests.kafka.tools import QUICK_START, java_command
from tests.process.target import IS_KAFKA, Target, running_target
from tests.process.transactional_cluster import BROKERS, running_brokers
from tests.process.waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.java

DEMO = "org.apache.kafka.streams.examples.wordcount.WordCountDemo"
INPUT, OUTPUT, APPLICATION = "streams-plaintext-input", "streams-wordcount-output", "counting"
STORE = "KSTREAM-AGGREGATE-STATE-STORE-0000000003"
CHANGELOG, REPARTITION = (f"{APPLICATION}-{STORE}-{use}" for use in ("changelog", "repartition"))
LINES = ["all streams lead to kafka", "hello kafka streams", "join kafka summit"]
WORDS = Counter(" ".join(LINES).split())
PARTITIONS = 2
KILLED = -signal.SIGKILL


@pytest.fixture(scope="module", name="broker")
def a_broker_with_the_demos_topics() -> Iterator[Target]:
    with running_target({"group.initial.rebalance.delay.ms": 0}) as target:
        admin = AdminClient({"bootstrap.servers": target.address})
        topics = [NewTopic(name, PARTITIONS, 1) for name in (INPUT, OUTPUT)]
        for made in admin.create_topics(topics).values():
            made.result(DELIVERY_S)
        yield target


@contextmanager
def counting(
    address: str, directory: Path, guarantee: str = "at_least_once", replicas: int = 1
) -> Iterator[subprocess.Popen[bytes]]:
    """The demo at work; at the end it is asked to stop, and must, unless it was killed.

    Streams does not leave its group when it stops: the next one waits for the end of its session.
    """
    settings = directory / "streams.properties"
    settings.write_text(
        f"bootstrap.servers={address}\napplication.id={APPLICATION}\n"
        f"state.dir={directory / 'state'}\ndefault.dsl.store=in_memory\n"
        "session.timeout.ms=6000\nheartbeat.interval.ms=500\n"
        f"commit.interval.ms=200\nprocessing.guarantee={guarantee}\n"
        f"replication.factor={replicas}\n"
    )
    command = java_command(
        DEMO, [str(settings)], options=["-Xmx256m", *QUICK_START], jars=streams_class_path()
    )
    with (directory / "demo.log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield process
        ends = (0, 143) if process.poll() is None else (KILLED,)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) in ends, (directory / "demo.log").read_text()
    finally:
        process.kill()
        process.wait()


def write(address: str, lines: list[str]) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": address})
    for number, line in enumerate(lines):
        producer.produce(INPUT, line, partition=number % PARTITIONS)
    assert producer.flush(DELIVERY_S) == 0


class Counts:
    """The last count of each word, and how often one went up by something else than one."""

    def __init__(self, address: str) -> None:
        self.of: Counter[str] = Counter()
        self.jumps = 0
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": address,
                "group.id": "onlooker",
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
            }
        )
        self._consumer.subscribe([OUTPUT])

    def wait_for(self, wanted: Counter[str], demo: subprocess.Popen[bytes], log: Path) -> None:
        def are_there() -> bool:
            assert demo.poll() is None, log.read_text()
            for record in self._consumer.consume(100, 0.2):
                if record.error() is None:
                    word, count = (record.key() or b"").decode(), record.value() or b""
                    self.jumps += int.from_bytes(count, "big") != self.of[word] + 1
                    self.of[word] = int.from_bytes(count, "big")
            return self.of == wanted

        wait_until(are_there, f"counts {wanted}")

    def close(self) -> None:
        self._consumer.close()


def policy(address: str, topic: str) -> str:
    admin = AdminClient({"bootstrap.servers": address})
    resource = ConfigResource(ResourceType.TOPIC, topic)
    [found] = admin.describe_configs([resource]).values()
    return str(found.result(DELIVERY_S)["cleanup.policy"].value)


def test_words_are_counted_and_go_on_from_the_changelog(broker: Target, tmp_path: Path) -> None:
    """Twice the demo, with nothing kept on its disk in between: counts come from the broker."""
    counts = Counts(broker.address)
    log = tmp_path / "demo.log"
    with counting(broker.address, tmp_path) as demo:
        write(broker.address, LINES)
        counts.wait_for(WORDS, demo, log)
    assert policy(broker.address, CHANGELOG) == "compact"
    assert policy(broker.address, REPARTITION) == "delete"

    with counting(broker.address, tmp_path) as demo:
        write(broker.address, LINES)
        counts.wait_for(WORDS + WORDS, demo, log)
    counts.close()

    assert counts.jumps == 0, "stopped gently, nothing is counted twice"


@pytest.mark.long
@pytest.mark.skipif(IS_KAFKA, reason="Apache Kafka as a cluster is another harness")
@pytest.mark.scenario("D4-F4", "D4-C5")
def test_words_are_counted_exactly_once_though_brokers_and_the_demo_are_killed(
    tmp_path: Path,
) -> None:
    """With `exactly_once_v2` every count goes up by one, whoever dies in between."""
    settings = (tmp_path, "exactly_once_v2", len(BROKERS))
    log, some = tmp_path / "demo.log", LINES * 20
    with running_brokers(tmp_path / "brokers") as brokers:
        for topic in (INPUT, OUTPUT):
            brokers.cluster.create_topic(topic, partitions=PARTITIONS)
        counts, written = Counts(brokers.servers), 0
        with counting(brokers.servers, *settings) as demo:
            for victim in BROKERS:
                write(brokers.servers, some)
                if written == 0:
                    counts.wait_for(words(1), demo, log)
                brokers.kill(victim)
                write(brokers.servers, some)
                written += 2
                counts.wait_for(words(written), demo, log)
                brokers.start(victim)
            write(brokers.servers, some)
            demo.kill()
            demo.wait()
        with counting(brokers.servers, *settings) as demo:
            write(brokers.servers, some)
            counts.wait_for(words(written + 2), demo, log)
        counts.close()

    assert counts.jumps == 0


def words(times: int) -> Counter[str]:
    """After so many writes of some lines."""
    return Counter({word: count * 20 * times for word, count in WORDS.items()})
