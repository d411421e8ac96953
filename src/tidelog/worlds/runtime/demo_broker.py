"""The demo's broker: one process on a directory that outlives it, to be frozen, killed, restarted.

What it has written can be read from its files at any time, which is how a dead one is questioned.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.record_batch import batches

HOST = "127.0.0.1"
START_WITHIN_S = 60
_LOOK_EVERY_S = 0.01


class BrokerFailed(Exception):
    """It did not start."""


class DemoBroker:
    """Start, freeze, kill, and start again on the same port. Its answers wait for the disk."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0
        self.log_path = directory / "broker.log"

    @property
    def address(self) -> str:
        return f"{HOST}:{self._port}"

    def start(self) -> None:
        """Run it and wait until it says where it listens."""
        ready = self._directory / "ready"
        ready.unlink(missing_ok=True)
        config = self._directory / "broker.toml"
        config.write_text(
            '"node.id" = 1\n'
            f'"listeners" = "PLAINTEXT://{self.address}"\n'
            f'"log.dirs" = "{self._directory / "data"}"\n'
            '"tidelog.fsync" = "group"\n'
        )
        command = [sys.executable, "-m", "tidelog.cli.main", "broker", "--config", str(config)]
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "--ready-file", str(ready)], stdout=log, stderr=log
            )
        self._port = self._told_port(self._process, ready)

    def freeze(self) -> None:
        """It does nothing more; what it has written and sent stays written and sent."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()

    def stop(self) -> None:
        """The graceful end of one that still runs, whatever was done to it."""
        if self._process is not None and self._process.poll() is None:
            self.thaw()
            self._process.terminate()
            self._process.wait(timeout=START_WITHIN_S)

    def written_end_offset(self, partition: TopicPartition) -> int:
        """Where the log in its files ends; a batch that is not all there does not count."""
        segments = sorted((self._directory / "data" / str(partition)).glob("*.log"))
        if not segments:
            return 0
        end_offset = int(segments[-1].stem)
        for _, header in batches(segments[-1].read_bytes()):
            end_offset = header.end_offset
        return end_offset

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def _told_port(self, process: subprocess.Popen[bytes], ready: Path) -> int:
        for _ in range(int(START_WITHIN_S / _LOOK_EVERY_S)):
            if ready.exists() and (told := ready.read_text().strip()):
                return int(told.rsplit(":", 1)[1])
            try:
                process.wait(timeout=_LOOK_EVERY_S)
            except subprocess.TimeoutExpired:
                continue
            raise BrokerFailed(f"the broker did not start: see {self.log_path}")
        raise BrokerFailed(f"the broker did not start within {START_WITHIN_S} s: {self.log_path}")
