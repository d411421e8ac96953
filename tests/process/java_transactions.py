"""Kafka's own clients in transactions: one Java machine with the face of the other libraries."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Mapping
from pathlib import Path
from threading import Timer
from types import TracebackType
from typing import Self

from tests.kafka.tools import QUICK_START, java_command
from tests.process.transactional_clients import (
    COMMITTED,
    FETCH_WAIT_MS,
    TIMEOUT_MS,
    Found,
    Member,
    Refused,
    TransactionalProducer,
)
from tests.process.waiting import PATIENCE_MS, PATIENCE_S

PROGRAM = Path(__file__).with_name("TransactionalClients.java")
FENCED = ("ProducerFencedException", "InvalidProducerEpochException")


class JavaTransactions:
    """Runs the program beside this file; one command at a time."""

    name = "java"

    def __init__(self) -> None:
        command = java_command(
            str(PROGRAM), [], options=["-Xmx256m", *QUICK_START], log_level="ERROR"
        )
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        self._numbers = itertools.count()

    def __enter__(self) -> Self:
        assert self._line() == "ready"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def producer(
        self, servers: str, transactional_id: str, *, timeout_ms: int = TIMEOUT_MS
    ) -> TransactionalProducer:
        name = f"producer-{next(self._numbers)}"
        settings: dict[str, object] = {
            "bootstrap.servers": servers,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": timeout_ms,
            "max.block.ms": PATIENCE_MS,
        }
        self.tell("producer", name, *_pairs(settings))
        return JavaTransactionalProducer(self, name)

    def member(self, servers: str, topic: str, group: str) -> Member:
        name = f"member-{next(self._numbers)}"
        settings: dict[str, object] = {
            "bootstrap.servers": servers,
            "group.id": group,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": "false",
            "isolation.level": COMMITTED,
        }
        self.tell("member", name, topic, *_pairs(settings))
        return JavaMember(self, name, group)

    def read(
        self,
        servers: str,
        topic: str,
        *,
        isolation: str = COMMITTED,
        partitions: int = 1,
        rack: str = "",
    ) -> list[Found]:
        settings: dict[str, object] = {
            "bootstrap.servers": servers,
            "isolation.level": isolation,
            "fetch.max.wait.ms": FETCH_WAIT_MS,
        }
        if rack:
            settings["client.rack"] = rack
        return sorted(map(_found, self.tell("read", topic, partitions, *_pairs(settings))))

    def tell(self, *words: object) -> list[str]:
        """The words of its answer; Refused if it failed."""
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        outcome, *answer = self._line().split()
        if outcome != "ok":
            is_fenced = any(name in answer for name in FENCED)
            raise Refused(" ".join(answer), is_fenced=is_fenced)
        return answer

    def _line(self) -> str:
        assert self._process.stdout is not None
        watch = Timer(2 * PATIENCE_S, self._process.kill)
        watch.start()
        line = self._process.stdout.readline()
        watch.cancel()
        assert line, "Java has ended, or took too long"
        return line.rstrip("\n")


class JavaTransactionalProducer:
    def __init__(self, machine: JavaTransactions, name: str) -> None:
        self._machine = machine
        self._name = name

    def init(self) -> None:
        self._machine.tell("init", self._name)

    def begin(self) -> None:
        self._machine.tell("begin", self._name)

    def send(self, topic: str, value: str, *, partition: int = 0) -> None:
        self._machine.tell("send", self._name, topic, partition, value)

    def send_offsets(self, topic: str, next_offsets: Mapping[int, int], of: Member) -> None:
        assert isinstance(of, JavaMember)
        pairs = [f"{index}:{offset}" for index, offset in next_offsets.items()]
        self._machine.tell("offsets", self._name, of.name, topic, *pairs)

    def commit(self) -> None:
        self._machine.tell("commit", self._name)

    def abort(self) -> None:
        self._machine.tell("abort", self._name)

    def close(self) -> None:
        self._machine.tell("close", self._name)


class JavaMember:
    def __init__(self, machine: JavaTransactions, name: str, group: str) -> None:
        self._machine = machine
        self.name = name
        self.group = group

    def take(self, count: int) -> list[Found]:
        return [_found(word) for word in self._machine.tell("take", self.name, count)]

    def close(self) -> None:
        self._machine.tell("leave", self.name)


def _pairs(settings: Mapping[str, object]) -> list[str]:
    return [f"{key}={value}" for key, value in settings.items()]


def _found(word: str) -> Found:
    partition, offset, value = word.split(":", 2)
    return Found(int(partition), int(offset), value)
