"""A producer on a fake cluster of three brokers, for tests that tell a story in virtual time."""

from __future__ import annotations

from typing import Any

from tests.unit.client.fake_cluster import FakeCluster, Seen
from tests.unit.client.virtual import Host
from tidelog.client.producer.config import producer_config
from tidelog.client.producer.outcome import (
    SendOk,
    SendOutcome,
    SendRefused,
    SendTicket,
    SendUnknown,
)
from tidelog.client.producer.producer import ProducerMachine
from tidelog.core.wire.messages.api_00_produce import ProduceRequest
from tidelog.core.wire.record_batch import read_header
from tidelog.core.wire.records import iterate

TOPIC = "orders"


class Story:
    """One producer, one cluster, and what the producer was told, in order."""

    def __init__(self, *, partitions: int = 1, seed: int = 1, **settings: Any) -> None:
        self.cluster = FakeCluster()
        self.cluster.create(TOPIC, partitions=partitions)
        self.clock = self.cluster.clock
        given = {"linger.ms": 0, **{k.replace("_", "."): v for k, v in settings.items()}}
        config = producer_config({"bootstrap.servers": self.cluster.bootstrap, **given})
        self.host = Host(self.cluster, config.client, seed=seed)
        self.producer = ProducerMachine(self.host.client, config)
        self.completed: list[tuple[int, str, SendOutcome]] = []
        """(time, value, outcome)"""
        self.host.do(lambda now_ms: None)
        self.began_ms = self.clock.now_ms

    @property
    def log(self) -> Any:
        return self.cluster[f"{TOPIC}-0"]

    @property
    def elapsed_ms(self) -> int:
        return self.clock.now_ms - self.began_ms

    def send(self, value: str, *, partition: int | None = 0, **more: Any) -> SendTicket:
        ticket = self.host.do(
            lambda now_ms: self.producer.send(
                TOPIC,
                value.encode(),
                partition=partition,
                now_ms=now_ms,
                then=self._on_outcome,
                **more,
            )
        )
        self.producer.check()
        assert isinstance(ticket, SendTicket)
        return ticket

    def send_all(self, *values: str) -> list[SendTicket]:
        return [self.send(value) for value in values]

    def _on_outcome(self, ticket: SendTicket, now_ms: int) -> None:
        assert ticket.outcome is not None
        self.completed.append(
            (now_ms - self.began_ms, (ticket.value or b"").decode(), ticket.outcome)
        )

    def settle(self, *, within_ms: int = 600_000) -> None:
        """Until every record has an outcome."""
        self.clock.run_until(lambda: self.producer.pending == 0, within_ms=within_ms)
        self.producer.check()

    def warm_up(self) -> None:
        """One record acknowledged: metadata, identity and connection are there."""
        self.send("warm")
        self.settle()
        self.completed.clear()
        self.cluster.seen.clear()
        self.began_ms = self.clock.now_ms

    def outcomes(self) -> dict[str, str]:
        return {value: word(outcome) for _, value, outcome in self.completed}

    def produce_requests(self, broker_id: int | None = None) -> list[Seen]:
        return self.cluster.requests(ProduceRequest, broker_id)


def word(outcome: SendOutcome | None) -> str:
    """The judge's three words."""
    if isinstance(outcome, SendOk):
        return "ok"
    if isinstance(outcome, SendRefused):
        return "refused"
    assert isinstance(outcome, SendUnknown), outcome
    return "unknown"


def batch_of(seen: Seen) -> Any:
    """The header of the only batch of a Produce."""
    return read_header(seen.request.topic_data[0].partition_data[0].records)


def numbers(seen: Seen) -> tuple[int, int, int]:
    header = batch_of(seen)
    return header.producer_id, header.producer_epoch, header.base_sequence


def values_of(request: Any) -> list[str]:
    records = request.topic_data[0].partition_data[0].records
    return [(record.value or b"").decode() for record in iterate(records)]
