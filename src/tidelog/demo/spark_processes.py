"""Spark in processes of its own: the pipeline's driver, its progress, and the audit.

The driver is `tidelog pipeline run`, which can be killed like any process. How far it has come is
read from Spark's checkpoint. The audit is `tidelog audit --json` over journal, topic and sink.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from tidelog.demo.errors import WITHIN_S, DemoFailed
from tidelog.demo.pipeline_file import QUICK_JAVA

MASTER = "local[2]"
_SOURCE_LINE = 2
"""Of an offsets file: the version, the settings, then the end of each source."""
_AUDIT_FOUND_SOMETHING = 1


class DriverProcess:
    """One run of the pipeline; the next one continues from its checkpoint."""

    def __init__(self, file: Path, errors: Path, scratch: Path) -> None:
        """It has a session of its own, so that it and its JVM can be killed together, and ends
        when its standard input does: also if the demo is killed. What a killed Spark leaves
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
            target=self._read_events,
            args=(self._process.stdout,),
            name="driver-events",
            daemon=True,
        )
        self._thread.start()

    def check(self) -> None:
        """DemoFailed if it has ended by itself."""
        if self._process.poll() is not None:
            self._thread.join()
            raise DemoFailed(f"the pipeline has ended: {self._reason()}")

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
            raise DemoFailed(f"the pipeline did not stop cleanly: {self._reason()}")

    def close(self) -> None:
        """Kill it, and close its pipes."""
        self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _read_events(self, output: IO[bytes]) -> None:
        for line in output:
            with suppress(ValueError):  # a line cut off by the kill
                event = json.loads(line)
                if event["event"] == "started":
                    self.is_started = True
                elif event["event"] == "ended":
                    self._ended = event

    def _reason(self) -> str:
        if self._ended is not None and self._ended["reason"]:
            return str(self._ended["reason"])
        lines = self._errors.read_text(errors="replace").split("\n")
        written = [line for line in lines if line.strip()]
        return written[-1] if written else f"exit code {self._process.returncode}"


class PipelineProgress:
    """Of one sink's query: a batch is first planned in `offsets`, then committed in `commits`."""

    def __init__(self, checkpoint: Path, sink: str) -> None:
        self._offsets = checkpoint / "sinks" / sink / "offsets"
        self._commits = checkpoint / "sinks" / sink / "commits"

    @property
    def done(self) -> int | None:
        """The newest batch that is done."""
        return _newest(self._commits)

    @property
    def under_way(self) -> int | None:
        """The batch that is planned and not done."""
        planned, done = _newest(self._offsets), self.done
        return planned if planned is not None and planned != done else None

    @property
    def records(self) -> int:
        """How many records of the topic the committed batches have read."""
        return sum(self._positions().values())

    def has_reached(self, ends: Mapping[int, int]) -> bool:
        """Returns whether the committed batches reach these offsets, by partition."""
        positions = self._positions()
        return bool(positions) and all(positions.get(each, 0) >= end for each, end in ends.items())

    def batch_ends(self) -> list[dict[int, int]]:
        """Where each batch that is done ended, by partition: all of them, from the first."""
        done = self.done
        return [
            positions_in((self._offsets / str(each)).read_text())
            for each in range(0 if done is None else done + 1)
        ]

    def _positions(self) -> dict[int, int]:
        done = self.done
        return {} if done is None else positions_in((self._offsets / str(done)).read_text())


def positions_in(offsets: str) -> dict[int, int]:
    """The end of a batch by partition, from its offsets file; its one source reads one topic."""
    by_topic = json.loads(offsets.splitlines()[_SOURCE_LINE])
    by_index = next(of for topic, of in by_topic.items() if not topic.startswith("("))
    return {int(index): int(offset) for index, offset in by_index.items()}


def _newest(directory: Path) -> int | None:
    if not directory.is_dir():
        return None
    numbers = [int(each.name) for each in directory.iterdir() if each.name.isdecimal()]
    return max(numbers, default=None)


def run_audit(arguments: Sequence[str]) -> dict[str, Any]:
    """The audit's document, whatever it found; DemoFailed if it could not run."""
    command = [sys.executable, "-m", "tidelog.cli.main", "audit", "--json", "--master", MASTER]
    command += ["--conf", f"spark.driver.extraJavaOptions={QUICK_JAVA}"]
    process = subprocess.Popen(
        [*command, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(timeout=2 * WITHIN_S)
    except subprocess.TimeoutExpired:
        raise DemoFailed(f"the audit did not end within {2 * WITHIN_S:.0f} s") from None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.returncode not in (0, _AUDIT_FOUND_SOMETHING) or not output.strip():
        lines = [line for line in errors.split("\n") if line.strip()]
        raise DemoFailed(lines[-1] if lines else f"the audit ended with {process.returncode}")
    document: dict[str, Any] = json.loads(output)
    return document


def spark_scratch(directory: Path) -> dict[str, str]:
    """The environment of a program whose Spark keeps temporary files there: blocks and artifacts,
    unpacked libraries, and the sockets to Python, whose names must not be long."""
    options = os.environ.get("SPARK_SUBMIT_OPTS", "")
    return {
        **os.environ,
        "SPARK_LOCAL_DIRS": str(directory),
        "SPARK_SUBMIT_OPTS": f'{options} "-Djava.io.tmpdir={directory}"'.strip(),
    }
