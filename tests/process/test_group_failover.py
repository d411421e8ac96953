"""A coordinator is killed under load: groups of both protocols read on, undisturbed."""

from __future__ import annotations

import subprocess
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.kafka.tools import QUICK_START, java_command
from tests.process.cluster import ProcessCluster
from tests.process.target import IS_KAFKA
from tests.process.waiting import PATIENCE_S, wait_until
from tidelog.core.model.topic_name import OFFSETS_TOPIC

pytestmark = pytest.mark.skipif(IS_KAFKA, reason="Apache Kafka as a cluster is another harness")

TOPIC, PARTITIONS, SOME = "orders", 3, 100
PROTOCOLS = ("classic", "consumer")
SETTINGS = {"group.initial.rebalance.delay.ms": 0, "offsets.topic.num.partitions": 1}
"""With one partition of committed offsets both groups have the same coordinator."""
JAVA_PROGRAM = Path(__file__).with_name("GroupReaders.java")


class Report:
    """What the readers of both groups have said so far; the group is named like its protocol."""

    def __init__(self) -> None:
        self.assigned: dict[str, list[str]] = defaultdict(list)
        self.offsets: dict[str, dict[int, list[int]]] = {
            each: {index: [] for index in range(PARTITIONS)} for each in PROTOCOLS
        }
        self.failures: list[str] = []

    def add(self, group: str, what: str, *words: str) -> None:
        if what == "read":
            self.offsets[group][int(words[0])].append(int(words[1]))
        elif what == "assigned" and words[0] != "0":
            self.assigned[group].append(words[0])
        elif what == "failed" or words[0] != "0":
            self.failures.append(" ".join((group, what, *words)))

    def least(self) -> int:
        """How many records the slower group has read."""
        assert not self.failures, self.failures
        return min(sum(map(len, read.values())) for read in self.offsets.values())


@contextmanager
def librdkafka_readers(address: str) -> Iterator[Report]:
    report, ending = Report(), threading.Event()

    def note_loss(protocol: str, count: int) -> None:
        if not ending.is_set():
            report.add(protocol, "lost", str(count))

    def read(protocol: str) -> None:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": address,
                "group.id": protocol,
                "group.protocol": protocol,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        consumer.subscribe(
            [TOPIC],
            on_assign=lambda _, owned: report.add(protocol, "assigned", str(len(owned))),
            on_revoke=lambda _, owned: note_loss(protocol, len(owned)),
        )
        try:
            while not ending.is_set():
                found = [each for each in consumer.consume(50, 0.1) if each.error() is None]
                for each in found:
                    report.add(protocol, "read", str(each.partition()), str(each.offset()))
                if found:
                    consumer.commit(asynchronous=False)
        except confluent_kafka.KafkaException as failure:
            report.add(protocol, "failed", str(failure))
        finally:
            consumer.close()

    threads = [threading.Thread(target=read, args=(each,)) for each in PROTOCOLS]
    for thread in threads:
        thread.start()
    try:
        yield report
    finally:
        ending.set()
        for thread in threads:
            thread.join()


@contextmanager
def java_readers(address: str) -> Iterator[Report]:
    report = Report()
    options = ["-Xmx256m", *QUICK_START]
    command = java_command(str(JAVA_PROGRAM), [address, TOPIC], options=options, log_level="ERROR")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def listen() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            report.add(*line.split())

    listener = threading.Thread(target=listen)
    listener.start()
    try:
        yield report
    finally:
        process.kill()
        listener.join()
        process.communicate()


class Load:
    """A record into each partition in turn, every few milliseconds, until it is ended."""

    def __init__(self, address: str) -> None:
        self._producer = confluent_kafka.Producer(
            {"bootstrap.servers": address, "enable.idempotence": True}
        )
        self._ending = threading.Event()
        self.delivered = [0] * PARTITIONS
        self.failures: list[str] = []
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    def _write(self) -> None:
        number = 0
        while not self._ending.wait(0.005):
            partition = number % PARTITIONS
            self._producer.produce(TOPIC, b"x", partition=partition, on_delivery=self._note)
            self._producer.poll(0)
            number += 1

    def _note(
        self, error: confluent_kafka.KafkaError | None, record: confluent_kafka.Message
    ) -> None:
        if error is not None:
            self.failures.append(str(error))
        else:
            self.delivered[record.partition() or 0] += 1

    def end(self) -> list[int]:
        """How many records each partition has."""
        self._ending.set()
        self._thread.join()
        assert self._producer.flush(PATIENCE_S) == 0 and not self.failures, self.failures
        return self.delivered


def committed(address: str) -> list[list[int]]:
    """Of both groups, each partition's."""
    found = []
    for group in PROTOCOLS:
        consumer = confluent_kafka.Consumer({"bootstrap.servers": address, "group.id": group})
        wanted = [confluent_kafka.TopicPartition(TOPIC, index) for index in range(PARTITIONS)]
        answer = consumer.committed(wanted, timeout=PATIENCE_S)
        found.append([each.offset for each in answer])
        consumer.close()
    return found


@pytest.mark.scenario("D3-K2", "D3-V4", "X-42")
@pytest.mark.parametrize(
    "readers", [librdkafka_readers, pytest.param(java_readers, marks=pytest.mark.java)]
)
def test_both_protocols_read_on_without_rebalance_loss_or_repetition(
    readers: Callable[[str], AbstractContextManager[Report]], tmp_path: Path
) -> None:
    """Kill -9 while records are written, read and committed; sessions last 45 seconds."""
    with ProcessCluster(directory=tmp_path, settings=SETTINGS) as cluster:
        address = cluster.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": address})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)])[TOPIC].result(PATIENCE_S)
        with readers(address) as report:
            load = Load(address)
            try:
                wait_until(lambda: report.least() >= SOME, "records before the kill")
                coordinator = cluster.leader(OFFSETS_TOPIC, 0)
                assert coordinator is not None

                cluster.kill(coordinator)

                before = report.least()
                wait_until(lambda: report.least() >= before + 3 * SOME, "records after the kill")
            finally:
                ends = load.end()
            wait_until(lambda: report.least() == sum(ends), "the last records")
            wait_until(lambda: committed(address) == [ends, ends], "the last commits")

    assert not report.failures, report.failures
    for group in PROTOCOLS:
        assert report.assigned[group] == [str(PARTITIONS)], "there was a rebalance"
        everything = {index: list(range(end)) for index, end in enumerate(ends)}
        assert report.offsets[group] == everything, "each record once, in order"
