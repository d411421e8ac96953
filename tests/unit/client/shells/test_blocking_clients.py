"""Shells without a cluster: nobody waits for ever, and everybody is told why."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from tests.process.ports import HOST, free_port
from tidelog.client.admin.topics import list_topics
from tidelog.client.consumer.errors import NoOffset
from tidelog.client.producer.outcome import TIMED_OUT, SendOutcome
from tidelog.client.producer.transaction_errors import IllegalTransactionState
from tidelog.client.settings import ConfigError
from tidelog.client.shells.blocking_clients import (
    Admin,
    Consumer,
    Producer,
    RecordRefused,
    RequestFailed,
    TimedOut,
)
from tidelog.core.model.ids import TopicPartition

P0 = TopicPartition("orders", 0)


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address where connections are taken and nothing is ever said."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture
def refusing() -> str:
    """An address where nobody listens."""
    return f"{HOST}:{free_port()}"


def test_a_producer_without_a_cluster_refuses_after_max_block_ms(refusing: str) -> None:
    outcomes: list[SendOutcome] = []
    with Producer({"bootstrap.servers": refusing, "max.block.ms": 50}) as producer:
        sent = producer.send("orders", b"x", on_outcome=outcomes.append)
        with pytest.raises(RecordRefused) as refused:
            sent.result()

    assert refused.value.error == TIMED_OUT and "topic orders" in refused.value.reason
    assert outcomes == [sent.outcome]


def test_closing_does_not_wait_for_a_cluster_that_says_nothing(nobody: str) -> None:
    producer = Producer({"bootstrap.servers": nobody, "max.block.ms": 10})
    producer.send("orders", b"x")
    producer.flush()
    producer.close()
    producer.close()
    assert producer.pending == 0


def test_an_admin_gives_up_in_time(nobody: str, refusing: str) -> None:
    for address in (nobody, refusing, "no.such.host.invalid:9092"):
        with Admin({"bootstrap.servers": address}) as admin, pytest.raises(RequestFailed):
            admin.ask(list_topics(), timeout_s=0.1)


def test_a_consumer_has_nothing_or_an_error(refusing: str) -> None:
    with Consumer({"bootstrap.servers": refusing, "auto.offset.reset": "none"}) as consumer:
        assert consumer.poll(0.0) == []
        consumer.assign([P0])
        with pytest.raises(NoOffset):
            consumer.poll(1.0)
    lookup: dict[str, str | int] = {"bootstrap.servers": refusing, "default.api.timeout.ms": 50}
    with Consumer(lookup) as consumer, pytest.raises(RequestFailed):
        consumer.end_offsets([P0])


def test_transactional_calls_say_what_is_missing(refusing: str) -> None:
    with (
        Producer({"bootstrap.servers": refusing}) as producer,
        pytest.raises(IllegalTransactionState, match=r"no transactional\.id"),
    ):
        producer.init_transactions()
    settings: dict[str, str | int] = {
        "bootstrap.servers": refusing,
        "transactional.id": "payments",
        "max.block.ms": 20,
    }
    with Producer(settings) as producer:
        for call in (
            producer.begin_transaction,
            producer.commit_transaction,
            producer.abort_transaction,
            lambda: producer.send("orders", b"x"),
        ):
            with pytest.raises(IllegalTransactionState, match="call init_transactions first"):
                call()
        for _ in range(2):
            with pytest.raises(TimedOut, match="init_transactions"):
                producer.init_transactions()
        with pytest.raises(IllegalTransactionState, match="init_transactions is not over"):
            producer.begin_transaction()
        producer.close(timeout_s=0.0)


def test_bad_settings_are_refused_before_anything_is_opened() -> None:
    for shell in (Producer, Consumer, Admin):
        with pytest.raises(ConfigError):
            shell({"bootstrap.servers": ""})
