"""The fault gates of a cluster's nodes: one table of rules for all, sent to their sockets.

A node that is down finds the table in the file beside its socket when it starts. A paused one is
sent it at once, too, but its answer is not awaited.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tidelog.cluster.directory import write_whole
from tidelog.cluster.errors import ClusterError, ClusterUsageError
from tidelog.cluster.launcher import Launcher
from tidelog.cluster.rules import RuleFields

_ANSWER_TIMEOUT_S = 30.0
_RETRY_INTERVAL_S = 0.01
_ANSWER_BYTES_MAX = 16 * 2**20


class FaultGates:
    """The gates of one cluster."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher
        self._pause = threading.Event()

    def check(self) -> None:
        """ClusterUsageError if the cluster has none."""
        if not self._launcher.plan.has_faults:
            raise ClusterUsageError(
                "this cluster was started without fault gates: only processes can be disturbed"
            )

    def replace(self, rules: Sequence[RuleFields]) -> None:
        """The whole table, everywhere; if a node refuses it, ClusterUsageError says why."""
        for node in self._launcher.plan.nodes:
            self.update(node.id, rules)

    def update(self, node_id: int, rules: Sequence[RuleFields]) -> None:
        """The whole table, at one node."""
        peers = {str(each.id): each.address for each in self._launcher.plan.nodes}
        command = {"do": "replace", "peers": peers, "rules": list(rules)}
        process = self._launcher.process(node_id)
        if process is None:
            self._write_rules_file(node_id, peers, rules)
        elif process.is_paused:
            with suppress(OSError):
                _send(self._launcher.directory.gate(node_id), command, waits=lambda: False)
        else:
            self.command(node_id, command)

    def list(self, node_id: int) -> dict[str, Any]:
        """The gate's own account: its rules, what it holds, how often each rule took effect."""
        return self.command(node_id, {"do": "list"})

    def command(self, node_id: int, command: dict[str, Any]) -> dict[str, Any]:
        """One command and its answer; a node that has just been started may need a moment."""
        deadline_s = time.monotonic() + _ANSWER_TIMEOUT_S
        path = self._launcher.directory.gate(node_id)

        def waits() -> bool:
            process = self._launcher.process(node_id)
            return process is not None and time.monotonic() < deadline_s

        while True:
            try:
                answer = _send(path, command, waits=waits)
                break
            except OSError as error:
                if not waits():
                    raise ClusterError(
                        f"the fault gate of node {node_id} does not answer: {error} "
                        f"(log: {self._launcher.directory.log(node_id)})"
                    ) from error
                self._pause.wait(_RETRY_INTERVAL_S)
        if not answer.get("ok"):
            raise ClusterUsageError(str(answer.get("error", "the fault gate refused it")))
        return answer

    def forget(self, node_ids: Iterable[int]) -> None:
        """Nodes that do not run start without faults the next time."""
        for each in node_ids:
            _rules_path(self._launcher.directory.gate(each)).unlink(missing_ok=True)

    def _write_rules_file(
        self, node_id: int, peers: dict[str, str], rules: Sequence[RuleFields]
    ) -> None:
        path = _rules_path(self._launcher.directory.gate(node_id))
        injected: object = {}
        with suppress(OSError, ValueError, AttributeError):
            injected = json.loads(path.read_text(encoding="utf-8")).get("injected", {})
        document = {"peers": peers, "rules": list(rules), "injected": injected}
        write_whole(path, json.dumps(document))


def _rules_path(gate: Path) -> Path:
    return gate.with_name(f"{gate.name}.rules")


def _send(path: Path, command: dict[str, Any], *, waits: Callable[[], bool]) -> dict[str, Any]:
    """The answer, or {} if it is no longer waited for; OSError if no gate listens."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        link.settimeout(1.0)
        link.connect(str(path))
        link.sendall(json.dumps(command).encode() + b"\n")
        received = b""
        while not received.endswith(b"\n"):
            if not waits():
                return {}
            with suppress(TimeoutError):
                data = link.recv(65_536)
                if not data or len(received) > _ANSWER_BYTES_MAX:
                    raise ConnectionError("it closed the connection")
                received += data
    answer = json.loads(received)
    return answer if isinstance(answer, dict) else {}
