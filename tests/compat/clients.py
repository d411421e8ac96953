"""Client libraries behind one small face: each can produce and consume the same records.

Only what every library can do stands here; what is special to one is in that library's test file.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import aiokafka
import confluent_kafka
import kafka
import pytest

from tests.kafka import Tool, run_tool
from tests.process.waiting import PATIENCE_S
from tests.process.wire import NO_GROUP

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
DELIVERY_S = int(PATIENCE_S)
HAS_KCAT = shutil.which("kcat") is not None
Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class Message:
    """A record as an application sees it."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Consumed:
    """A record that came back."""

    offset: int
    message: Message


class Client(Protocol):
    """A library that produces to partition 0 and reads it from its start."""

    name: str

    def produce(self, address: str, topic: str, codec: str, messages: Sequence[Message]) -> None:
        """Send all and wait for their acknowledgement."""

    def consume(self, address: str, topic: str, count: int) -> list[Consumed]:
        """The first `count` records."""


class Librdkafka:
    """confluent-kafka."""

    name = "confluent-kafka"

    def produce(self, address: str, topic: str, codec: str, messages: Sequence[Message]) -> None:
        errors: list[object] = []
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": address, "compression.type": codec, "linger.ms": 50}
        )
        for message in messages:
            producer.produce(
                topic,
                partition=0,
                value=message.value,
                key=message.key,
                headers=list(message.headers),
                timestamp=message.timestamp_ms or 0,
                on_delivery=lambda error, _: errors.append(error) if error else None,
            )
        left = producer.flush(DELIVERY_S)
        assert (left, errors) == (0, [])

    def consume(self, address: str, topic: str, count: int) -> list[Consumed]:
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": address, **NO_GROUP, "check.crcs": True}
        )
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        consumed: list[Consumed] = []
        while len(consumed) < count:
            found = consumer.consume(count - len(consumed), timeout=DELIVERY_S)
            assert found, f"only {len(consumed)} of {count}"
            for record in found:
                assert record.error() is None, record.error()
                offset = record.offset()
                assert offset is not None
                headers: Any = record.headers() or ()
                consumed.append(
                    Consumed(
                        offset,
                        Message(
                            record.value(),
                            record.key(),
                            tuple(headers),
                            record.timestamp()[1],
                        ),
                    )
                )
        consumer.close()
        return consumed


class KafkaPython:
    """kafka-python."""

    name = "kafka-python"

    def produce(self, address: str, topic: str, codec: str, messages: Sequence[Message]) -> None:
        producer = kafka.KafkaProducer(
            bootstrap_servers=address,
            compression_type=None if codec == "none" else codec,
            linger_ms=50,
            batch_size=1 << 20,
            max_request_size=100 << 20,
        )
        futures = [
            producer.send(
                topic,
                value=message.value,
                key=message.key,
                headers=list(message.headers),
                partition=0,
                timestamp_ms=message.timestamp_ms,
            )
            for message in messages
        ]
        for future in futures:
            future.get(DELIVERY_S)
        producer.close()

    def consume(self, address: str, topic: str, count: int) -> list[Consumed]:
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=address, fetch_max_bytes=100 << 20, check_crcs=True
        )
        partition = kafka.TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek(partition, 0)
        consumed: list[Consumed] = []
        while len(consumed) < count:
            found = consumer.poll(timeout_ms=DELIVERY_S * 1000).get(partition)
            assert found, f"only {len(consumed)} of {count}"
            consumed += [_plain(record) for record in found]
        consumer.close()
        return consumed[:count]


class Aiokafka:
    """aiokafka."""

    name = "aiokafka"

    def produce(self, address: str, topic: str, codec: str, messages: Sequence[Message]) -> None:
        asyncio.run(self._produce(address, topic, codec, messages))

    async def _produce(
        self, address: str, topic: str, codec: str, messages: Sequence[Message]
    ) -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=address,
            compression_type=None if codec == "none" else codec,
            linger_ms=50,
            max_batch_size=2 << 20,
            max_request_size=100 << 20,
        )
        async with producer:
            futures = [
                await producer.send(
                    topic,
                    value=message.value,
                    key=message.key,
                    headers=list(message.headers),
                    partition=0,
                    timestamp_ms=message.timestamp_ms,
                )
                for message in messages
            ]
            await asyncio.wait_for(asyncio.gather(*futures), DELIVERY_S)

    def consume(self, address: str, topic: str, count: int) -> list[Consumed]:
        return asyncio.run(self._consume(address, topic, count))

    async def _consume(self, address: str, topic: str, count: int) -> list[Consumed]:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=address, group_id=None, enable_auto_commit=False
        )
        partition = aiokafka.TopicPartition(topic, 0)
        consumer.assign([partition])
        async with consumer:
            consumer.seek(partition, 0)
            consumed: list[Consumed] = []
            while len(consumed) < count:
                record = await asyncio.wait_for(consumer.getone(), DELIVERY_S)
                consumed.append(_plain(record))
        return consumed


def _plain(record: Any) -> Consumed:
    """kafka-python's and aiokafka's records have the same fields."""
    return Consumed(
        record.offset,
        Message(
            record.value,
            record.key,
            tuple((name, value) for name, value in record.headers),
            record.timestamp,
        ),
    )


class Kcat:
    """kcat, from Debian's package; text without tabs and line ends only, one set of headers."""

    name = "kcat"

    def produce(self, address: str, topic: str, codec: str, messages: Sequence[Message]) -> None:
        lines = [
            f"{(message.key or b'').decode()}\t{(message.value or b'').decode()}\n"
            for message in messages
        ]
        (headers,) = {message.headers for message in messages}
        options = [f"-H{name}={(value or b'').decode()}" for name, value in headers]
        run_kcat(
            ["-P", "-b", address, "-t", topic, "-p", "0", "-z", codec, "-Z", "-K\t", *options],
            "".join(lines),
        )

    def consume(self, address: str, topic: str, count: int) -> list[Consumed]:
        output = run_kcat(
            ["-C", "-b", address, "-t", topic, "-p", "0", "-o", "0", "-c", str(count), "-J"]
        )
        return [_from_kcat(json.loads(line)) for line in output.splitlines()]


def _from_kcat(line: dict[str, Any]) -> Consumed:
    texts: list[str] = line.get("headers", [])
    headers = tuple(
        (name, value.encode()) for name, value in zip(texts[::2], texts[1::2], strict=True)
    )
    message = Message(_encoded(line["payload"]), _encoded(line["key"]), headers, line["ts"])
    return Consumed(line["offset"], message)


def _encoded(text: object) -> bytes | None:
    return None if text is None else str(text).encode()


def run_kcat(arguments: Sequence[str], standard_input: str = "") -> str:
    """What kcat printed; it must succeed."""
    if not HAS_KCAT:
        pytest.skip("kcat is not installed (Debian: apt install kcat)")
    run = subprocess.run(
        ["kcat", "-q", *arguments],
        input=standard_input,
        capture_output=True,
        text=True,
        timeout=DELIVERY_S,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


class JavaConsole:
    """Kafka's console tools; text only, with these separators."""

    name = "java"
    null = "<null>"

    def produce(self, address: str, topic: str, codec: str, messages: Sequence[Message]) -> None:
        lines = [
            "\t".join(
                (
                    ",".join(f"{name}:{(value or b'').decode()}" for name, value in message.headers)
                    or self.null,
                    self._text(message.key),
                    self._text(message.value),
                )
            )
            for message in messages
        ]
        properties = ("parse.key=true", "parse.headers=true", f"null.marker={self.null}")
        result = run_tool(
            Tool.CONSOLE_PRODUCER,
            [
                *("--bootstrap-server", address, "--topic", topic, "--compression-codec", codec),
                *(part for text in properties for part in ("--reader-property", text)),
                *("--command-property", "linger.ms=200"),
            ],
            standard_input="\n".join(lines) + "\n",
        )
        assert result.exit_code == 0 and "ERROR" not in result.errors, result.errors

    def consume(self, address: str, topic: str, count: int) -> list[Consumed]:
        shown = ("print.key", "print.headers", "print.offset", "print.timestamp")
        properties = [f"{name}=true" for name in shown] + [f"null.literal={self.null}"]
        result = run_tool(
            Tool.CONSOLE_CONSUMER,
            [
                *("--bootstrap-server", address, "--topic", topic, "--partition", "0"),
                *("--offset", "earliest", "--max-messages", str(count)),
                *("--timeout-ms", str(DELIVERY_S * 1000)),
                *(part for text in properties for part in ("--formatter-property", text)),
            ],
        )
        assert result.exit_code == 0, result.errors
        return [self._parsed(line) for line in result.output.splitlines()]

    def _text(self, data: bytes | None) -> str:
        return self.null if data is None else data.decode()

    def _parsed(self, line: str) -> Consumed:
        time, offset, headers, key, value = line.split("\t")
        pairs = () if headers == "NO_HEADERS" else headers.split(",")
        return Consumed(
            int(offset.removeprefix("Offset:")),
            Message(
                None if value == self.null else value.encode(),
                None if key == self.null else key.encode(),
                tuple((name, text.encode()) for name, _, text in (p.partition(":") for p in pairs)),
                int(time.removeprefix("CreateTime:")),
            ),
        )


LIBRDKAFKA, KAFKA_PYTHON, AIOKAFKA = Librdkafka(), KafkaPython(), Aiokafka()
LIBRARIES: tuple[Client, ...] = (LIBRDKAFKA, KAFKA_PYTHON, AIOKAFKA)
each_library = pytest.mark.parametrize("client", LIBRARIES, ids=lambda client: client.name)
