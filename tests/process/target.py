"""Which broker a test talks to: Tidelog, or Apache Kafka with TIDELOG_TEST_TARGET=kafka.

The same test files run against both, which is how a test proves that it asks for Kafka's behaviour.
"""

from __future__ import annotations

import os
import resource
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from tests.kafka import KafkaBroker
from tests.kafka.broker import START_TIMEOUT_S
from tests.process.broker import BrokerProcess, Setting
from tests.process.waiting import PATIENCE_S

TARGET = os.environ.get("TIDELOG_TEST_TARGET", "tidelog")
IS_KAFKA = TARGET == "kafka"

KEEP_ALL: dict[str, Setting] = {"log.retention.ms": -1}
"""Tests write records of long ago, which must not be deleted for their age while a test runs."""

RUNNING: list[Target] = []
"""Every broker that runs now, so that a failing test can show their logs."""


class Target(Protocol):
    """What tests need of a broker process."""

    host: str
    port: int
    log_directory: Path

    @property
    def address(self) -> str: ...
    @property
    def pid(self) -> int: ...
    @property
    def is_running(self) -> bool: ...
    def start(self) -> None: ...
    def stop(self) -> int: ...
    def kill(self) -> None: ...
    def exit_code_within(self, seconds: float = PATIENCE_S) -> int: ...
    def limit_file_size(self, file_bytes_max: int) -> None: ...
    def resident_bytes(self) -> int: ...
    def resident_peak_bytes(self) -> int: ...
    def log_text(self) -> str: ...
    def last_log_lines(self) -> str: ...


class KafkaTarget:
    """Apache Kafka with the handles of a `BrokerProcess`."""

    def __init__(self, kafka: KafkaBroker) -> None:
        self.host = kafka.host
        self.port = kafka.port
        self.log_directory = kafka.log_directory
        self._node = kafka.node

    @property
    def address(self) -> str:
        return self._node.address

    @property
    def pid(self) -> int:
        return self._node.pid

    @property
    def is_running(self) -> bool:
        return self._node.is_running

    def start(self) -> None:
        self._node.start()
        self._node.wait_until_serving(time.monotonic() + START_TIMEOUT_S)

    def stop(self) -> int:
        self._node.stop()
        return self.exit_code_within()

    def kill(self) -> None:
        self._node.kill()

    def exit_code_within(self, seconds: float = PATIENCE_S) -> int:
        process = self._node._process
        assert process is not None
        return process.wait(seconds)

    def limit_file_size(self, file_bytes_max: int) -> None:
        resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (file_bytes_max, file_bytes_max))

    def resident_bytes(self) -> int:
        return _memory(self.pid, "VmRSS")

    def resident_peak_bytes(self) -> int:
        return _memory(self.pid, "VmHWM")

    def log_text(self) -> str:
        return (self._node.directory / "broker.log").read_text(errors="replace")

    def last_log_lines(self) -> str:
        return self._node.last_log_lines()


@contextmanager
def running_target(settings: Mapping[str, Setting] | None = None) -> Iterator[Target]:
    """A broker of the kind under test, in a directory that is removed afterwards."""
    settings = {**KEEP_ALL, **(settings or {})}
    if IS_KAFKA:
        with KafkaBroker(settings={k: _text(v) for k, v in settings.items()}) as kafka:
            yield from _shown(KafkaTarget(kafka))
        return
    directory = Path(tempfile.mkdtemp(prefix="tidelog-"))
    try:
        with BrokerProcess(directory=directory, settings=settings) as broker:
            yield from _shown(broker)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _shown(target: Target) -> Iterator[Target]:
    RUNNING.append(target)
    try:
        yield target
    finally:
        RUNNING.remove(target)


def _text(value: Setting) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _memory(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"no {name} of process {pid}")
