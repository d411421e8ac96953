"""Records for the source to read: of every codec, with and without parts, in transactions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from tests.process.waiting import PATIENCE_S
from tests.spark.transactions import wait_until_ended

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
FIRST_TIMESTAMP_MS = 1_700_000_000_000
TRANSACTION_TIMEOUT_MS = 900_000


def producer(servers: str, **settings: Any) -> Producer:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    settings = {"bootstrap.servers": servers, "linger.ms": 20, "on_delivery": _must_be_delivered}
    return Producer({**settings, **given})


def _must_be_delivered(error: KafkaError | None, message: Message) -> None:
    """`flush` counts a record that nobody wanted as sent, too."""
    assert error is None, f"{message.topic()}-{message.partition()}: {error}"


def flush(sender: Producer) -> None:
    assert sender.flush(PATIENCE_S) == 0, "not everything was sent"


def write_numbered(
    servers: str, topic: str, records: int, *, partitions: int, first: int = 0, size: int = 0
) -> None:
    """Record n is in partition n modulo `partitions`, one second after record n - 1."""
    sender = producer(servers)
    for number in range(first, first + records):
        sender.produce(
            topic,
            key=str(number).encode(),
            value=f"value {number}".encode().ljust(size, b"."),
            partition=number % partitions,
            timestamp=FIRST_TIMESTAMP_MS + 1_000 * number,
        )
        sender.poll(0)
    flush(sender)


def write_varied(servers: str, topic: str, *, partition: int) -> int:
    """Every codec, with keys, values and headers that are there, empty or missing; how many."""
    count = 0
    for codec in CODECS:
        sender = producer(servers, compression_type=codec)
        for number in range(60):
            sender.produce(
                topic,
                key=[None, b"", b"key %d" % number][number % 3],
                value=[None, b"", b"value %d of " % number + codec.encode() * number][
                    number % 5 % 3
                ],
                headers=_headers(number, codec),
                partition=partition,
                timestamp=FIRST_TIMESTAMP_MS + 7 * count,
            )
            count += 1
        flush(sender)
    return count


def _headers(number: int, codec: str) -> list[tuple[str, str | bytes | None]] | None:
    some: list[tuple[str, str | bytes | None]] = [("codec", codec.encode()), ("näme", b"\x00\xff")]
    odd: list[tuple[str, str | bytes | None]] = [("empty", b""), ("null", None)]
    return [None, some, odd, [*some, *some]][number % 4]


def write_transactions(servers: str, topic: str, *, partitions: int) -> None:
    """Commits and aborts of two producers that take turns, with plain records between them."""
    plain = producer(servers)
    pair = [transactional(servers, f"{topic}-{name}") for name in ("a", "b")]
    for turn in range(8):
        for sender in pair:
            sender.begin_transaction()
        for number in range(40):
            for name, sender in (("a", pair[0]), ("b", pair[1]), ("plain", plain)):
                sender.produce(
                    topic,
                    key=f"{name} {turn} {number}".encode(),
                    value=b"." * number,
                    partition=number % partitions,
                )
            if number % 10 == 9:
                for sender in (*pair, plain):
                    flush(sender)
        for index, sender in enumerate(pair):
            if (turn + index) % 3 == 0 or turn == 4:
                sender.abort_transaction(PATIENCE_S)
            else:
                sender.commit_transaction(PATIENCE_S)
    for name in ("a", "b"):
        wait_until_ended(servers, f"{topic}-{name}")


def transactional(servers: str, name: str) -> Producer:
    sender = producer(servers, transactional_id=name, transaction_timeout_ms=TRANSACTION_TIMEOUT_MS)
    sender.init_transactions(PATIENCE_S)
    return sender


@contextmanager
def open_transaction(servers: str, topic: str) -> Iterator[None]:
    """A transaction with records in partition 0, open as long as the block."""
    name = f"{topic}-open"
    sender = transactional(servers, name)
    sender.begin_transaction()
    for number in range(10):
        sender.produce(topic, key=b"open", value=b"%d" % number, partition=0)
    flush(sender)
    try:
        yield
    finally:
        sender.abort_transaction(PATIENCE_S)
        wait_until_ended(servers, name)
