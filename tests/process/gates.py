"""Commands for the fault gate of a broker process, and clients with names of their own."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.process.waiting import PATIENCE_S, wait_until
from tests.process.wire import WireClient

SOCKET = "gate.sock"
WITH_GATE = ("--faults", SOCKET)
"""In the directory in which the broker runs."""


class Gate:
    """One broker's."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def ask(self, command: object) -> dict[str, Any]:
        """One command, whatever it is; the answer, whatever it is."""
        line = command if isinstance(command, bytes) else json.dumps(command).encode()
        # A test's directory may be longer than a socket's address can be: go by its descriptor.
        directory = os.open(self._directory, os.O_RDONLY)
        try:
            with socket.socket(socket.AF_UNIX) as link:
                link.settimeout(PATIENCE_S)
                link.connect(f"/proc/self/fd/{directory}/{SOCKET}")
                link.sendall(line + b"\n")
                answer: dict[str, Any] = json.loads(link.makefile("rb").readline())
                return answer
        finally:
            os.close(directory)

    def do(self, name: str, **fields: object) -> dict[str, Any]:
        answer = self.ask({"do": name, **fields})
        assert answer["ok"], answer
        return answer

    def replace(self, *rules: Mapping[str, object], peers: Mapping[str, str] | None = None) -> None:
        self.do("replace", peers=peers or {}, rules=named(rules))

    def list(self) -> dict[str, Any]:
        return self.do("list")

    def wait_until_held(self, count: int) -> None:
        wait_until(lambda: self.list()["held_frames"] == count, f"{count} held frames")


def named(rules: Iterable[Mapping[str, object]]) -> list[dict[str, object]]:
    return [{"id": f"r{number}", **rule} for number, rule in enumerate(rules, start=1)]


class NamedClient(WireClient):
    """A client that calls itself something."""

    def __init__(self, address: str, name: str) -> None:
        super().__init__(address, name=name)

    def next_correlation_id(self) -> int:
        """Of the next answer, whatever it answers."""
        return int.from_bytes(self.read_frame()[:4], "big")
