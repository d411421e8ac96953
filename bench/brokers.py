"""The brokers under test: Tidelog and Apache Kafka with the same handles and the same settings."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from tests.kafka import KafkaBroker
from tests.process.broker import BrokerProcess
from tests.process.wire import WireClient, batch_of

TIDELOG, KAFKA = "Tidelog", "Apache Kafka"
KAFKA_HEAP = "1g"
SETTINGS = {
    # Topics of past repetitions must not fill the page cache.
    "log.segment.delete.delay.ms": "1000",
    "auto.create.topics.enable": "false",
}
START_TIMEOUT_S = 90.0
RETRY_PAUSE_S = 0.002
FIRST_TOPIC = "first"


class Broker(Protocol):
    """What scenarios need of a running broker."""

    name: str

    replication_factor: int

    @property
    def address(self) -> str:
        """Of one broker or of several, as clients want it."""

    @property
    def pids(self) -> list[int]:
        """Those whose CPU time counts."""


class TidelogBroker:
    """A process of this very checkout."""

    name = TIDELOG
    replication_factor = 1

    def __init__(self, process: BrokerProcess) -> None:
        self._process = process

    @property
    def address(self) -> str:
        return f"{self._process.host}:{self._process.port}"

    @property
    def pids(self) -> list[int]:
        return [self._process.pid]


class ApacheKafka(KafkaBroker):
    """Kafka's process; formatting its storage is a step of its own and is not timed."""

    name = KAFKA
    replication_factor = 1

    def __init__(self) -> None:
        super().__init__(settings=SETTINGS, heap=KAFKA_HEAP)

    @property
    def pids(self) -> list[int]:
        return [self.node.pid]

    def format(self) -> None:
        self._format(self.node)

    def end(self) -> None:
        self._end()


@contextmanager
def running(name: str) -> Iterator[Broker]:
    """A broker of that name, in a directory that is removed afterwards."""
    if name == KAFKA:
        with ApacheKafka() as kafka:
            yield kafka
        return
    with _directory() as directory, BrokerProcess(directory=directory, settings=SETTINGS) as broker:
        yield TidelogBroker(broker)


@contextmanager
def starting(name: str) -> Iterator[tuple[Broker, float, float]]:
    """A fresh broker, the seconds from its exec until it serves, and until its first promise."""
    if name == KAFKA:
        kafka = ApacheKafka()
        try:
            kafka.format()
            started_s = time.monotonic()
            kafka.node.start()
            yield kafka, *_first_promise(kafka, started_s)
        finally:
            kafka.end()
        return
    with _directory() as directory:
        process = BrokerProcess(directory=directory, settings=SETTINGS)
        try:
            started_s = time.monotonic()
            process.launch()
            broker = TidelogBroker(process)
            yield broker, *_first_promise(broker, started_s)
        finally:
            process.kill()


def _first_promise(broker: Broker, started_s: float) -> tuple[float, float]:
    """Seconds until Metadata names a live broker, and until a write to a new topic is promised."""
    with _first_connection(broker, started_s) as client:
        while not client.ask("Metadata", 9, topics=[]).brokers:
            time.sleep(RETRY_PAUSE_S)
        serving_s = time.monotonic() - started_s
        client.create_topic(FIRST_TOPIC)
        answer = client.produce(FIRST_TOPIC, batch_of(b"v", timestamp_ms=int(time.time() * 1000)))
        assert answer.error_code == 0, f"{broker.name} refuses: {answer.error_code}"
        return serving_s, time.monotonic() - started_s


def _first_connection(broker: Broker, started_s: float) -> WireClient:
    while True:
        try:
            return WireClient(broker.address)
        except OSError:
            if time.monotonic() - started_s > START_TIMEOUT_S:
                raise
        time.sleep(RETRY_PAUSE_S)


@contextmanager
def _directory() -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="tidelog-bench-"))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)
