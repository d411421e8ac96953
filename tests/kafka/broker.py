"""Real Apache Kafka brokers on loopback ports in a temporary directory, for as long as a `with`.

Every node is a combined KRaft broker and controller. Storage is formatted with a dynamic quorum
(kraft.version 1), which is what Kafka 4.3 itself does for new clusters.
"""

from __future__ import annotations

import base64
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.kafka.tools import Tool, java_command, run_alone
from tests.process.ports import HOST, free_port
from tests.process.waiting import PATIENCE_S

START_TIMEOUT_S = 2 * PATIENCE_S
STOP_TIMEOUT_S = PATIENCE_S
ANSWER_TIMEOUT_S = 10.0
POLL_INTERVAL_S = 0.05
LOG_LINES_SHOWN = 40


class KafkaFailed(Exception):
    """A broker did not start or died; the message ends with the last lines of its log."""


class KafkaNode:
    """One broker process, its ports and its directory."""

    def __init__(self, *, node_id: int, directory: Path, java_options: Sequence[str]) -> None:
        self.node_id = node_id
        self.directory = directory
        self.log_directory = directory / "data"
        self.port, self.controller_port = free_port(), free_port()
        self.directory_id = _random_id()
        self._java_options = java_options
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "the broker was not started"
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the process; `wait_until_serving` says when clients may come."""
        assert not self.is_running, "already running"
        command = java_command(
            "kafka.Kafka",
            [str(self.directory / "server.properties")],
            options=(*self._java_options, f"-Djava.io.tmpdir={self.directory}"),
            log_level="INFO",
        )
        with (self.directory / "broker.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.directory)

    def wait_until_serving(self, deadline_s: float) -> None:
        """Until its Metadata names a live broker (`deadline_s` is on the monotonic clock)."""
        while not self._serves():
            if self._ends_within(POLL_INTERVAL_S):
                raise KafkaFailed(f"broker {self.node_id} died\n{self.last_log_lines()}")
            if time.monotonic() > deadline_s:
                raise KafkaFailed(f"broker {self.node_id} is too slow\n{self.last_log_lines()}")

    def stop(self) -> None:
        """Ask it to end, and insist after a while."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            if not self._ends_within(STOP_TIMEOUT_S):
                self.kill()

    def kill(self) -> None:
        """kill -9."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def last_log_lines(self) -> str:
        log = self.directory / "broker.log"
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        return "\n".join(lines[-LOG_LINES_SHOWN:])

    def _ends_within(self, seconds: float) -> bool:
        assert self._process is not None, "the broker was not started"
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _serves(self) -> bool:
        request = struct.pack(">hhih", 3, 1, 1, -1) + struct.pack(">i", 0)
        try:
            with socket.create_connection((HOST, self.port), ANSWER_TIMEOUT_S) as connection:
                connection.sendall(struct.pack(">i", len(request)) + request)
                answer = connection.makefile("rb").read(12)
        except OSError:
            return False
        return len(answer) == 12 and struct.unpack(">iii", answer)[2] > 0


class KafkaCluster:
    """Some combined nodes that form one cluster; `with KafkaCluster(brokers=3) as kafka: ...`.

    `settings` go on top of the harness's own; None takes one of those away.
    """

    def __init__(
        self,
        *,
        brokers: int,
        settings: Mapping[str, str | None] | None = None,
        heap: str = "512m",
        java_options: Sequence[str] = (),
    ) -> None:
        self.cluster_id = _random_id()
        self._settings = dict(settings or {})
        self._root = Path(tempfile.mkdtemp(prefix="kafka-"))
        options = [f"-Xmx{heap}", *java_options]
        self.nodes = [
            KafkaNode(node_id=i, directory=self._root / f"node{i}", java_options=options)
            for i in range(1, brokers + 1)
        ]

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(node.address for node in self.nodes)

    def __enter__(self) -> Self:
        try:
            for node in self.nodes:
                self._format(node)
            for node in self.nodes:
                node.start()
            deadline_s = time.monotonic() + START_TIMEOUT_S
            for node in self.nodes:
                node.wait_until_serving(deadline_s)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            for node in self.nodes:
                error.add_note(f"Kafka broker {node.node_id} said:\n{node.last_log_lines()}")
        self._end()

    def _end(self) -> None:
        for node in self.nodes:  # nothing is kept, so nothing needs a graceful end
            node.kill()
        shutil.rmtree(self._root, ignore_errors=True)

    def _format(self, node: KafkaNode) -> None:
        node.directory.mkdir(parents=True)
        properties = node.directory / "server.properties"
        properties.write_text(
            "".join(
                f"{key}={value}\n"
                for key, value in self._properties(node).items()
                if value is not None
            )
        )
        voters = ",".join(
            f"{n.node_id}@{HOST}:{n.controller_port}:{n.directory_id}" for n in self.nodes
        )
        result = run_alone(
            Tool.STORAGE,
            ["format", "-t", self.cluster_id, "-c", str(properties), "-I", voters],
        )
        if result.exit_code != 0:
            raise KafkaFailed(f"formatting failed\n{result.output}\n{result.errors}")

    def _properties(self, node: KafkaNode) -> dict[str, str | None]:
        replicas = str(min(3, len(self.nodes)))
        controller_listener = f"CONTROLLER://{HOST}:{node.controller_port}"
        return {
            "process.roles": "broker,controller",
            "node.id": str(node.node_id),
            "listeners": f"PLAINTEXT://{node.address},{controller_listener}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": ",".join(
                f"{HOST}:{n.controller_port}" for n in self.nodes
            ),
            "log.dirs": str(node.log_directory),
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": str(min(2, len(self.nodes))),
            "group.initial.rebalance.delay.ms": "0",
            **self._settings,
        }


class KafkaBroker(KafkaCluster):
    """One combined node: `with KafkaBroker(settings={...}) as kafka: connect(kafka.address)`."""

    def __init__(
        self,
        *,
        settings: Mapping[str, str | None] | None = None,
        heap: str = "512m",
        java_options: Sequence[str] = (),
    ) -> None:
        super().__init__(brokers=1, settings=settings, heap=heap, java_options=java_options)

    @property
    def node(self) -> KafkaNode:
        return self.nodes[0]

    @property
    def host(self) -> str:
        return HOST

    @property
    def port(self) -> int:
        return self.node.port

    @property
    def address(self) -> str:
        return self.node.address

    @property
    def log_directory(self) -> Path:
        """Where its partitions' directories are."""
        return self.node.log_directory


def _random_id() -> str:
    """A Kafka id: 16 bytes in url-safe base64. A leading dash would look like an option."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text
