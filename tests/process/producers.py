"""Four producers with one face: librdkafka, kafka-python, Kafka's own in Java, and Tidelog's.

Their defaults differ, so everything that a timeline relies on is set here under each one's names.
One record makes one batch and goes at once, except where a timeline says otherwise. Without options
a producer has its defaults.
"""

from __future__ import annotations

import itertools
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import confluent_kafka
import kafka
import kafka.errors

from tests.process.java_producer import JavaMachine
from tests.process.waiting import PATIENCE_MS, PATIENCE_S, wait_until
from tidelog.client.producer.outcome import SendOk as TidelogOk
from tidelog.client.shells import blocking_clients

QUICK_MS = 20
ENDLESS = 2_147_483_647


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerOptions:
    """What a timeline wants of its producer, in Java's words."""

    acks: str = "all"
    enable_idempotence: bool = True
    max_in_flight: int = 5
    retries: int = ENDLESS
    request_timeout_ms: int = PATIENCE_MS
    delivery_timeout_ms: int = 2 * PATIENCE_MS
    max_block_ms: int = PATIENCE_MS
    buffer_memory: int = 32 * 2**20
    buffer_messages: int = 100_000
    """librdkafka counts messages instead."""


class Ok(NamedTuple):
    """Acknowledged. The offset may be unknown: a broker that knows a batch as stored may not know
    where, and clients then say None, -1 or -1001."""

    offset: int | None


class Failed(NamedTuple):
    """The producer was told an error: whether the record is in the log nobody said."""

    error: str


class Call:
    """One record that was handed to a producer."""

    def __init__(self, value: str) -> None:
        self.value = value
        self._outcome: Ok | Failed | None = None

    @property
    def outcome(self) -> Ok | Failed | None:
        """What the producer was told; None: nothing yet."""
        return self._outcome

    def tell(self, outcome: Ok | Failed) -> None:
        assert self._outcome is None, f"{self.value} is told twice"
        if isinstance(outcome, Ok) and outcome.offset is not None and outcome.offset < 0:
            outcome = Ok(None)
        self._outcome = outcome

    def wait(self, within_s: float = PATIENCE_S) -> Ok | Failed:
        wait_until(lambda: self.outcome, f"an outcome of {self.value}", within_s=within_s)
        outcome = self.outcome
        assert outcome is not None, "an outcome stays"
        return outcome


class TimelineProducer(Protocol):
    """What every timeline does."""

    def send(self, topic: str, value: str, *, partition: int = 0, size: int = 0) -> Call: ...
    def close(self) -> None: ...


class Librdkafka:
    """confluent-kafka, with a thread that takes its reports."""

    def __init__(self, bootstrap: str, options: ProducerOptions | None, **more: Any) -> None:
        named = _librdkafka_names(options) if options else {}
        settings = {"bootstrap.servers": bootstrap, "log_level": 0, **named, **more}
        self.producer = confluent_kafka.Producer(settings)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def send(self, topic: str, value: str, *, partition: int = 0, size: int = 0) -> Call:
        """BufferError when the queue is full."""
        call = Call(value)

        def report(error: confluent_kafka.KafkaError | None, record: Any) -> None:
            call.tell(Failed(error.name()) if error else Ok(record.offset()))

        self.producer.produce(topic, padded(value, size), partition=partition, on_delivery=report)
        return call

    def close(self) -> None:
        self._is_over.set()
        self._thread.join()
        self.producer.purge()
        self.producer.flush(5)

    def _run(self) -> None:
        while not self._is_over.is_set():
            self.producer.poll(0.05)


class KafkaPython:
    def __init__(self, bootstrap: str, options: ProducerOptions | None) -> None:
        named = _kafka_python_names(options) if options else {}
        self.producer = kafka.KafkaProducer(bootstrap_servers=bootstrap.split(","), **named)

    def send(self, topic: str, value: str, *, partition: int = 0, size: int = 0) -> Call:
        call = Call(value)
        future = self.producer.send(topic, padded(value, size), partition=partition)
        future.add_callback(lambda placed: call.tell(Ok(placed.offset)))
        future.add_errback(lambda error: call.tell(Failed(type(error).__name__)))
        return call

    def close(self) -> None:
        with suppress(kafka.errors.KafkaTimeoutError):  # that something is left
            self.producer.close(timeout=0)


class Java:
    """Kafka's own client; its calls are made by a thread of the other process."""

    _numbers = itertools.count()

    def __init__(
        self, bootstrap: str, options: ProducerOptions | None, machine: JavaMachine
    ) -> None:
        self._machine = machine
        named = _java_names(options) if options else {}
        self.name = machine.open({"bootstrap.servers": bootstrap, **named})

    def send(self, topic: str, value: str, *, partition: int = 0, size: int = 0) -> JavaCall:
        call = JavaCall(value, self._machine, f"call-{next(self._numbers)}")
        self._machine.tell("send", self.name, call.name, topic, partition, value, size)
        return call

    def available_bytes(self) -> int:
        """What is left of buffer.memory."""
        return int(self._machine.ask("available", self.name)[0])

    def close(self) -> None:
        self._machine.ask("close", self.name)


class JavaCall(Call):
    def __init__(self, value: str, machine: JavaMachine, name: str) -> None:
        super().__init__(value)
        self._machine = machine
        self.name = name

    @property
    def outcome(self) -> Ok | Failed | None:
        if said := self._machine.said("ok", self.name):
            return Ok(int(said[0]))
        if said := self._machine.said("failed", self.name):
            return Failed(said[0])
        assert self._machine.said("threw", self.name) is None, "Java's send threw"
        return None

    @property
    def returned_after_ms(self) -> int | None:
        """How long `send` took; None: it has not come back."""
        said = self._machine.said("returned", self.name)
        return int(said[0]) if said else None


class Tidelog:
    """Our own blocking shell, which has Java's names."""

    def __init__(self, bootstrap: str, options: ProducerOptions | None) -> None:
        named = _java_names(options) if options else {}
        self.producer = blocking_clients.Producer({"bootstrap.servers": bootstrap, **named})

    def send(self, topic: str, value: str, *, partition: int = 0, size: int = 0) -> Call:
        call = Call(value)

        def told(outcome: Any) -> None:
            is_ok = isinstance(outcome, TidelogOk)
            call.tell(Ok(outcome.offset) if is_ok else Failed(outcome.error))

        self.producer.send(topic, padded(value, size), partition=partition, on_outcome=told)
        return call

    def close(self) -> None:
        self.producer.close(0)


def padded(value: str, size: int) -> bytes:
    """As many bytes as wanted; the stage's `values` takes the dots away again."""
    return value.ljust(size, ".").encode()


def _java_names(options: ProducerOptions) -> dict[str, Any]:
    return {
        "acks": options.acks,
        "enable.idempotence": options.enable_idempotence,
        "max.in.flight.requests.per.connection": options.max_in_flight,
        "retries": options.retries,
        "request.timeout.ms": options.request_timeout_ms,
        "delivery.timeout.ms": options.delivery_timeout_ms,
        "max.block.ms": options.max_block_ms,
        "buffer.memory": options.buffer_memory,
        "linger.ms": 0,
        "batch.size": 1,
        "retry.backoff.ms": QUICK_MS,
        "retry.backoff.max.ms": 5 * QUICK_MS,
        "reconnect.backoff.ms": QUICK_MS,
        "reconnect.backoff.max.ms": 5 * QUICK_MS,
    }


def _librdkafka_names(options: ProducerOptions) -> dict[str, Any]:
    """Its request.timeout.ms is for the broker; the client itself waits socket.timeout.ms."""
    return {
        "acks": options.acks,
        "enable.idempotence": options.enable_idempotence,
        "max.in.flight.requests.per.connection": options.max_in_flight,
        "message.send.max.retries": options.retries,
        "socket.timeout.ms": options.request_timeout_ms,
        "request.timeout.ms": options.request_timeout_ms,
        "message.timeout.ms": options.delivery_timeout_ms,
        "queue.buffering.max.messages": options.buffer_messages,
        "linger.ms": 0,
        "batch.num.messages": 1,
        "retry.backoff.ms": QUICK_MS,
        "retry.backoff.max.ms": 5 * QUICK_MS,
        "reconnect.backoff.ms": QUICK_MS,
        "reconnect.backoff.max.ms": 5 * QUICK_MS,
        "topic.metadata.refresh.fast.interval.ms": 5 * QUICK_MS,
    }


def _kafka_python_names(options: ProducerOptions) -> dict[str, Any]:
    """It knows no buffer. Metadata may grow old for a second only, since it asks a silent broker
    for ten before it asks another."""
    return {
        "acks": "all" if options.acks == "all" else int(options.acks),
        "enable_idempotence": options.enable_idempotence,
        "max_in_flight_requests_per_connection": options.max_in_flight,
        "retries": options.retries,
        "request_timeout_ms": options.request_timeout_ms,
        "delivery_timeout_ms": options.delivery_timeout_ms,
        "max_block_ms": options.max_block_ms,
        "linger_ms": 0,
        "batch_size": 1,
        "retry_backoff_ms": QUICK_MS,
        "reconnect_backoff_ms": QUICK_MS,
        "reconnect_backoff_max_ms": 5 * QUICK_MS,
        "metadata_max_age_ms": 1_000,
    }
