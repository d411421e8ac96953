"""Consumers with one face: librdkafka, kafka-python and Java's, each at a place of its own choice.

They assign themselves one partition, so no group is asked for anything.
"""

from __future__ import annotations

import subprocess
import threading
from collections import deque
from typing import Any

import confluent_kafka
import kafka
import kafka.errors

from tests.kafka.tools import Tool, java_command
from tests.process.waiting import PATIENCE_MS, wait_until
from tests.process.wire import NO_GROUP

POLL_S = 0.1
QUICK_MS = 100
RECORDS_AT_ONCE = 500


class Reader:
    """What a consumer was given, and the errors that came out of its poll."""

    def __init__(self) -> None:
        self.records: list[tuple[int, str]] = []
        self.errors: list[str] = []

    @property
    def values(self) -> list[str]:
        return [value for _, value in self.records]

    def read(self) -> int:
        """Poll once; how many records came."""
        found = self.poll()
        self.records += [(offset, value.decode().rstrip(".")) for offset, value in found]
        return len(found)

    def read_until(self, value: str) -> None:
        """Until this one came."""
        wait_until(lambda: self.read() >= 0 and value in self.values, f"{value} to be read")

    def read_until_error(self) -> str:
        wait_until(lambda: self.read() >= 0 and self.errors, "an error out of poll")
        return self.errors[-1]

    def poll(self) -> list[tuple[int, bytes]]:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class LibrdkafkaReader(Reader):
    """`leader_epoch` is that of the record before `offset`, as whoever stored both has it."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        *,
        partition: int = 0,
        offset: int = 0,
        leader_epoch: int | None = None,
        reset: str = "earliest",
        request_timeout_ms: int = PATIENCE_MS,
        **more: Any,
    ) -> None:
        super().__init__()
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                **NO_GROUP,
                "auto.offset.reset": reset,
                "socket.timeout.ms": request_timeout_ms,
                "fetch.wait.max.ms": QUICK_MS,
                "reconnect.backoff.max.ms": QUICK_MS,
                "topic.metadata.refresh.fast.interval.ms": QUICK_MS,
                "log_level": 0,
                **more,
            }
        )
        place: dict[str, Any] = {} if leader_epoch is None else {"leader_epoch": leader_epoch}
        self._place = confluent_kafka.TopicPartition(topic, partition, offset, **place)
        self._consumer.assign([self._place])

    def poll(self) -> list[tuple[int, bytes]]:
        found = []
        for record in self._consumer.consume(RECORDS_AT_ONCE, POLL_S):
            if (error := record.error()) is not None:
                self.errors.append(f"{error.name()}: {error.str()}")
            else:
                offset, value = record.offset(), record.value()
                assert offset is not None and value is not None
                found.append((offset, value))
        return found

    @property
    def position(self) -> int:
        [place] = self._consumer.position([self._place])
        found: int = place.offset
        return found

    def close(self) -> None:
        self._consumer.close()


class KafkaPythonReader(Reader):
    def __init__(
        self,
        bootstrap: str,
        topic: str,
        *,
        partition: int = 0,
        offset: int = 0,
        reset: str = "earliest",
        request_timeout_ms: int = PATIENCE_MS,
        **more: Any,
    ) -> None:
        super().__init__()
        self._consumer = kafka.KafkaConsumer(
            bootstrap_servers=bootstrap.split(","),
            group_id=None,
            auto_offset_reset=reset,
            request_timeout_ms=request_timeout_ms,
            fetch_max_wait_ms=QUICK_MS,
            reconnect_backoff_max_ms=QUICK_MS,
            **{"metadata_max_age_ms": 1_000, **more},
        )
        self._partition = kafka.TopicPartition(topic, partition)
        self._consumer.assign([self._partition])
        self._consumer.seek(self._partition, offset)

    def poll(self) -> list[tuple[int, bytes]]:
        try:
            batches = self._consumer.poll(timeout_ms=int(1_000 * POLL_S))
        except kafka.errors.KafkaError as error:
            self.errors.append(repr(error))
            return []
        return [(record.offset, record.value) for record in batches.get(self._partition, [])]

    @property
    def position(self) -> int:
        found: int = self._consumer.position(self._partition)
        return found

    def close(self) -> None:
        self._consumer.close()


class JavaReader(Reader):
    """Kafka's console consumer in a process of its own, from the start of one partition."""

    def __init__(self, bootstrap: str, topic: str, *, reset: str = "earliest") -> None:
        super().__init__()
        arguments = [
            *("--bootstrap-server", bootstrap, "--topic", topic, "--partition", "0"),
            *("--offset", "0", "--formatter-property", "print.offset=true"),
            *("--command-property", f"auto.offset.reset={reset}"),
            *("--command-property", "reconnect.backoff.max.ms=100"),
        ]
        self._process = subprocess.Popen(
            java_command(
                Tool.CONSOLE_CONSUMER.value, arguments, options=["-Xmx128m"], log_level="ERROR"
            ),
            stdout=subprocess.PIPE,
            text=True,
        )
        self._lines: deque[str] = deque()
        threading.Thread(target=self._listen, daemon=True).start()

    def poll(self) -> list[tuple[int, bytes]]:
        found = []
        while self._lines:
            place, value = self._lines.popleft().rstrip("\n").split("\t", 1)
            found.append((int(place.removeprefix("Offset:")), value.encode()))
        return found

    def close(self) -> None:
        self._process.kill()
        self._process.wait()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.append(line)
