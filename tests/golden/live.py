"""Live brokers for the oracle, Apache Kafka and Tidelog, and a pass over all cases with one."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.golden.broker import Broker, SocketBroker
from tests.golden.cases import Case
from tests.golden.recordings import Steps, run
from tests.golden.talk import Talk
from tests.kafka import KafkaBroker
from tests.process.broker import BrokerProcess

LINE_EVERY = 200

KAFKA_SETTINGS: dict[str, str | None] = {
    # Records in cases are old: the first look for expired segments must come after the last case.
    "log.initial.task.delay.ms": "86400000",
    # No case has groups or transactions: their settings stay at Kafka's defaults.
    "group.initial.rebalance.delay.ms": None,
    "offsets.topic.replication.factor": None,
    "transaction.state.log.min.isr": None,
    "transaction.state.log.replication.factor": None,
}


GROUP_SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "offsets.topic.num.partitions": "5",
    "offsets.topic.replication.factor": "1",
}
"""For both sides: one broker that coordinates groups, and whose groups begin at once."""


@contextmanager
def apache_kafka(settings: Mapping[str, str] | None = None) -> Iterator[Broker]:
    """A fresh Apache Kafka with default settings, but for the given ones."""
    every = {**KAFKA_SETTINGS, **(settings or {})}
    with KafkaBroker(settings=every, java_options=["-XX:TieredStopAtLevel=1"]) as kafka:
        ports = {kafka.port: "<port>", kafka.node.controller_port: "<port>"}
        broker = SocketBroker(kafka.host, kafka.port, port_names=ports)
        _wait_for_producer_ids(broker)
        yield broker


COORDINATED_SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
"""One broker can have its internal topics, and their only partitions are loaded before a case."""


TRANSACTION_SETTINGS = {
    **COORDINATED_SETTINGS,
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}
"""The same, whose groups begin at once, and whose transactions do not outlive their timeouts."""


@contextmanager
def coordinating_kafka(settings: Mapping[str, str] = COORDINATED_SETTINGS) -> Iterator[Broker]:
    """A fresh Apache Kafka that coordinates groups and transactions."""
    every = {**KAFKA_SETTINGS, **settings}
    with KafkaBroker(settings=every, java_options=["-XX:TieredStopAtLevel=1"]) as kafka:
        broker = SocketBroker(kafka.host, kafka.port)
        _wait_for_producer_ids(broker)
        wait_for_coordinators(broker)
        yield broker


@contextmanager
def coordinating_tidelog(settings: Mapping[str, str] = COORDINATED_SETTINGS) -> Iterator[Broker]:
    """A fresh Tidelog process with the same settings."""
    with tidelog(settings) as broker:
        wait_for_coordinators(broker)
        yield broker


@contextmanager
def tidelog(settings: Mapping[str, str] | None = None) -> Iterator[Broker]:
    """A fresh Tidelog process with default settings, but for the given ones."""
    with (
        TemporaryDirectory(prefix="tidelog-") as directory,
        BrokerProcess(directory=Path(directory), settings=settings) as process,
    ):
        yield SocketBroker(process.host, process.port)


def kafka_with_groups() -> AbstractContextManager[Broker]:
    return apache_kafka(GROUP_SETTINGS)


def tidelog_with_groups() -> AbstractContextManager[Broker]:
    return tidelog(GROUP_SETTINGS)


def kafka_with_transactions() -> AbstractContextManager[Broker]:
    return coordinating_kafka(TRANSACTION_SETTINGS)


def tidelog_with_transactions() -> AbstractContextManager[Broker]:
    return coordinating_tidelog(TRANSACTION_SETTINGS)


def _wait_for_producer_ids(broker: Broker) -> None:
    """The first block of producer ids comes from the controller a moment after the first wish."""
    talk = Talk(broker, "warm-up")
    while talk.quietly("InitProducerId", 4, transactional_id=None)["error_code"] != 0:
        broker.pause(10)
    talk.close()


def wait_for_coordinators(broker: Broker) -> None:
    """The first question makes the internal topics; a moment later they are led and loaded."""
    talk = Talk(broker, "warm-up")
    for key_type in (0, 1):
        talk.ask_patiently("FindCoordinator", 3, key="warm-up", key_type=key_type)
    talk.ask_patiently(
        "InitProducerId", 4, transactional_id="warm-up", transaction_timeout_ms=60_000
    )
    talk.close()


def run_all(cases: Sequence[Case], broker: Broker, *, label: str) -> dict[str, Steps]:
    """Hold every conversation, showing how far it is."""
    told: dict[str, Steps] = {}
    for number, case in enumerate(cases, start=1):
        show_progress(label, number, len(cases), case.name)
        try:
            told[case.name] = run(case, broker)
        except Exception as error:
            error.add_note(f"in case {case.name}")
            raise
    return told


def show_progress(label: str, number: int, count: int, name: str) -> None:
    """On a terminal one line that changes; elsewhere a line now and then."""
    is_last = number == count
    if sys.stderr.isatty():
        text = f"{label}: {number}/{count} {name}"
        sys.stderr.write(f"\r\033[K{text}" + ("\n" if is_last else ""))
    elif is_last or number % LINE_EVERY == 0:
        sys.stderr.write(f"{label}: {number}/{count}\n")
    sys.stderr.flush()
