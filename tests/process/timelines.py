"""The fixtures of document 3's timelines: the stage, and crews of producers to play on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.kafka.class_path import java_program
from tests.process.java_producer import JavaMachine
from tests.process.producers import (
    Call,
    Failed,
    Java,
    KafkaPython,
    Librdkafka,
    Ok,
    ProducerOptions,
    Tidelog,
    TimelineProducer,
)
from tests.process.stage import Stage, running_stage
from tests.process.waiting import PATIENCE_S

PYTHON_CLIENTS = ("librdkafka", "kafka-python", "tidelog")
EVERY_CLIENT = [
    pytest.param(PYTHON_CLIENTS, id="python"),
    pytest.param(("java",), id="java", marks=[pytest.mark.java, pytest.mark.long]),
]
"""Clients that go through the same failure together, each with a partition of its own."""


class Crew:
    """Several producers that do the same; the first writes to partition 0, and so on."""

    def __init__(self, producers: dict[str, TimelineProducer]) -> None:
        self.producers = producers
        self.partitions = {name: place for place, name in enumerate(producers)}

    def send(self, topic: str, value: str) -> Calls:
        return Calls(
            {
                name: producer.send(topic, value, partition=self.partitions[name])
                for name, producer in self.producers.items()
            }
        )

    def stored(self, stage: Stage, topic: str, *, leader: int) -> dict[str, list[str]]:
        """What the log holds of each one's partition."""
        return {
            name: stage.values(topic, leader=leader, partition=partition)
            for name, partition in self.partitions.items()
        }

    def each(self, *values: str) -> dict[str, list[str]]:
        """The same for everybody, to compare with what is stored."""
        return {name: list(values) for name in self.producers}


class Calls(dict[str, Call]):
    """What each of a crew was told about the same record."""

    def wait(self, within_s: float = PATIENCE_S) -> dict[str, Ok | Failed]:
        return {name: call.wait(within_s) for name, call in self.items()}

    def all_are(self, outcome: Ok | None) -> bool:
        return all(call.outcome == outcome for call in self.values())

    def wait_for(self, outcome: Ok, within_s: float = PATIENCE_S) -> None:
        told = self.wait(within_s)
        assert told == dict.fromkeys(self, outcome), told


StartProducer = Callable[..., TimelineProducer]
StartCrew = Callable[..., Crew]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with running_stage(tmp_path_factory.mktemp("stage")) as stage:
        yield stage


@pytest.fixture
def stage(running: Stage) -> Iterator[Stage]:
    """The module's cluster, which is whole again after each test."""
    running.forget_requests()
    yield running
    running.heal()


@pytest.fixture(scope="session")
def java_machine() -> Iterator[JavaMachine]:
    if not Path(java_program()).resolve().with_name("javac").exists():
        pytest.skip("a producer in Java needs a JDK; this is a Java without its compiler")
    with JavaMachine() as machine:
        yield machine


@pytest.fixture
def start_producer(stage: Stage, request: pytest.FixtureRequest) -> Iterator[StartProducer]:
    """Starts a producer by its client's name; it is gone after the test."""
    started: list[TimelineProducer] = []

    def start(client: str, **options: object) -> TimelineProducer:
        wanted = ProducerOptions(**options)  # type: ignore[arg-type]
        started.append(make_producer(client, stage.bootstrap, wanted, request))
        return started[-1]

    yield start
    for producer in started:
        producer.close()


def make_producer(
    client: str, bootstrap: str, options: ProducerOptions | None, request: pytest.FixtureRequest
) -> TimelineProducer:
    """A producer by its client's name; Java is started only if it is asked for."""
    match client:
        case "librdkafka":
            return Librdkafka(bootstrap, options)
        case "kafka-python":
            return KafkaPython(bootstrap, options)
        case "tidelog":
            return Tidelog(bootstrap, options)
    return Java(bootstrap, options, request.getfixturevalue("java_machine"))


@pytest.fixture
def start_crew(start_producer: StartProducer) -> StartCrew:
    def start(clients: tuple[str, ...], **options: object) -> Crew:
        return Crew({client: start_producer(client, **options) for client in clients})

    return start
