"""One Tidelog broker as a real process, on a free loopback port, in a directory of its own."""

from __future__ import annotations

import json
import resource
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.process.ports import HOST, free_port
from tests.process.waiting import PATIENCE_S

ANSWER_TIMEOUT_S = 10.0
POLL_INTERVAL_S = 0.02
LOG_LINES_SHOWN = 60

Setting = str | int | bool


class BrokerFailed(Exception):
    """The broker did not start, died or did not end; the message has the end of its log."""


class BrokerProcess:
    """Start, kill, stop and start again; `with BrokerProcess(directory=...) as broker: ...`.

    A restart keeps port and directory. The process writes its log to `broker.log`.
    """

    def __init__(
        self,
        *,
        directory: Path,
        settings: Mapping[str, Setting] | None = None,
        port: int | None = None,
        arguments: Sequence[str] = (),
    ) -> None:
        self.host = HOST
        self.port = free_port() if port is None else port
        self.directory = directory
        self.log_directory = directory / "data"
        self.settings: dict[str, Setting] = {
            "node.id": 1,
            "listeners": f"PLAINTEXT://{HOST}:{self.port}",
            "log.dirs": str(self.log_directory),
            **(settings or {}),
        }
        self._arguments = arguments
        self._process: subprocess.Popen[bytes] | None = None
        self._log_file = directory / "broker.log"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            error.add_note(f"the broker said:\n{self.last_log_lines()}")
        self.kill()

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, *, file_bytes_max: int | None = None) -> None:
        """Start it and wait until clients may come."""
        self.launch()
        if file_bytes_max is not None:
            self.limit_file_size(file_bytes_max)
        self.wait_until_serving()

    def launch(self) -> None:
        """Start the process only."""
        assert not self.is_running, "already running"
        self.directory.mkdir(parents=True, exist_ok=True)
        config = self.directory / "broker.toml"
        lines = [f"{json.dumps(key)} = {json.dumps(value)}" for key, value in self.settings.items()]
        config.write_text("\n".join(lines) + "\n")
        command = [sys.executable, "-m", "tidelog.cli.main", "broker", "--config", str(config)]
        command += self._arguments
        with self._log_file.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.directory
            )

    def wait_until_serving(self) -> None:
        """Until its Metadata names a live broker."""
        deadline_s = time.monotonic() + PATIENCE_S
        while not serves(self.host, self.port):
            if self.ended_within(POLL_INTERVAL_S):
                code = self._running().returncode
                raise BrokerFailed(f"the broker ended with {code}\n{self.last_log_lines()}")
            if time.monotonic() > deadline_s:
                raise BrokerFailed(f"the broker does not serve\n{self.last_log_lines()}")

    def stop(self) -> int:
        """SIGTERM: the graceful end. Gives the exit code."""
        process = self._running()
        process.send_signal(signal.SIGTERM)
        if not self.ended_within(PATIENCE_S):
            raise BrokerFailed(f"the broker ignores SIGTERM\n{self.last_log_lines()}")
        return process.returncode

    def kill(self) -> None:
        """kill -9, if it runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def ended_within(self, seconds: float) -> bool:
        """Whether the process is over, after waiting so long at most."""
        try:
            self._running().wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def exit_code_within(self, seconds: float = PATIENCE_S) -> int:
        """Its exit code; BrokerFailed when it goes on running."""
        if not self.ended_within(seconds):
            raise BrokerFailed(f"still running after {seconds:g} s\n{self.last_log_lines()}")
        return self._running().returncode

    def limit_file_size(self, file_bytes_max: int) -> None:
        """From now on a write beyond this size of any file fails in the middle (EFBIG)."""
        resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (file_bytes_max, file_bytes_max))

    def resident_bytes(self) -> int:
        """The memory that the process has now."""
        return self._memory("VmRSS")

    def resident_peak_bytes(self) -> int:
        """The most it ever had."""
        return self._memory("VmHWM")

    def log_text(self) -> str:
        return self._log_file.read_text(errors="replace") if self._log_file.exists() else ""

    def last_log_lines(self) -> str:
        return "\n".join(self.log_text().splitlines()[-LOG_LINES_SHOWN:])

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "the broker was not started"
        return self._process

    def _memory(self, name: str) -> int:
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
        raise BrokerFailed(f"no {name} of process {self.pid}")


def serves(host: str, port: int) -> bool:
    """Whether somebody there answers Metadata with at least one broker."""
    request = struct.pack(">hhih", 3, 1, 1, -1) + struct.pack(">i", 0)
    try:
        with socket.create_connection((host, port), timeout=ANSWER_TIMEOUT_S) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            answer = connection.makefile("rb").read(12)
    except OSError:
        return False
    return len(answer) == 12 and struct.unpack(">iii", answer)[2] > 0
