"""Spark's driver as a process of its own, `tidelog pipeline run`, which can be killed like one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from tidelog.demo.errors import WITHIN_S, DemoFailed
from tidelog.demo.scratch import spark_scratch

MASTER = "local[2]"


class DriverProcess:
    """One run of the pipeline; the next one goes on where it was."""

    def __init__(self, file: Path, errors: Path, scratch: Path) -> None:
        """It lives in a session of its own, so that it and its JVM can be killed together, and
        ends when its standard input does: also if we are killed. What a killed Spark leaves
        behind is in `scratch`."""
        command = [sys.executable, "-m", "tidelog.cli.main", "pipeline", "run", str(file)]
        command += ["--master", MASTER, "--json", "--stop-with-stdin"]
        self._errors = errors
        with errors.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=spark_scratch(scratch),
                start_new_session=True,
            )
        self.is_started = False
        """All its queries run."""
        self._ended: dict[str, Any] | None = None
        assert self._process.stdout is not None
        self._thread = threading.Thread(
            target=self._listen, args=(self._process.stdout,), name="driver-ear", daemon=True
        )
        self._thread.start()

    def check(self) -> None:
        """DemoFailed if it has ended by itself."""
        if self._process.poll() is not None:
            self._thread.join()
            raise DemoFailed(f"the pipeline has ended: {self._last_words()}")

    def kill(self) -> None:
        """kill -9 of the driver, its JVM and its Python workers."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        """Let batches finish, and end."""
        self._process.terminate()
        try:
            code = self._process.wait(WITHIN_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise DemoFailed(f"the pipeline did not stop within {WITHIN_S:.0f} s") from None
        self._thread.join()
        if code != 0:
            raise DemoFailed(f"the pipeline did not stop cleanly: {self._last_words()}")

    def close(self) -> None:
        """Nothing is left of it."""
        self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _listen(self, said: IO[bytes]) -> None:
        for line in said:
            with suppress(ValueError):  # a line that the kill has cut
                event = json.loads(line)
                if event["event"] == "started":
                    self.is_started = True
                elif event["event"] == "ended":
                    self._ended = event

    def _last_words(self) -> str:
        if self._ended is not None and self._ended["reason"]:
            return str(self._ended["reason"])
        lines = self._errors.read_text(errors="replace").split("\n")
        said = [line for line in lines if line.strip()]
        return said[-1] if said else f"exit code {self._process.returncode}"
