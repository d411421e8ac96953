"""Programs that stream (`stream_program.py`), from the outside: start, hear, kill, stop, wake."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.process.waiting import PATIENCE_S, wait_until
from tests.spark.stream_fuses import Fuse
from tests.spark.stream_program import Wish

ROOT = Path(__file__).parents[2]
KILLED = -signal.SIGKILL
START_PATIENCE_S = 2 * PATIENCE_S
TOLD_LINES = 30


class Program:
    """A driver and its JVM, in a session of their own."""

    def __init__(self, directory: Path, *, master: str = "local[2]") -> None:
        self.said: list[str] = []
        self._errors = directory / f"errors-{len(list(directory.iterdir()))}.txt"
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.spark.stream_program", master],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                start_new_session=True,
            )
        self.pid = self._process.pid
        self._hearing = threading.Thread(target=self._hear, daemon=True)
        self._hearing.start()

    def _hear(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.said.append(line.strip())

    def go(self, wish: Wish) -> None:
        """When it has its session: what to do."""
        self.wait_for("session", within_s=START_PATIENCE_S)
        self.tell(json.dumps(asdict(wish)))

    def tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def arm(self, *fuses: Fuse) -> None:
        """Instead of those that it has."""
        self.tell(json.dumps(fuses))

    def wait_for(self, line: str, *, within_s: float = PATIENCE_S) -> None:
        """Until it says that."""
        wait_until(
            lambda: line in self.said or self._process.poll() is not None,
            f"{line!r} of {self.said}",
            within_s=within_s,
        )
        self._hearing.join(PATIENCE_S if self._process.poll() is not None else 0)
        assert line in self.said, self.story()

    def wait(self) -> int:
        """Until it has ended, and nobody is left of it; the exit code."""
        code = self._process.wait(START_PATIENCE_S)
        self.end()  # whoever outlives the driver keeps its output open
        self._hearing.join(PATIENCE_S)
        return code

    def count(self, event: str) -> int:
        return sum(each.split()[0] == event for each in self.said)

    def wait_for_count(self, event: str, count: int) -> None:
        wait_until(
            lambda: self.count(event) >= count or self._process.poll() is not None,
            f"{count} times {event} of {self.said}",
            within_s=START_PATIENCE_S,
        )
        assert self.count(event) >= count, self.story()

    def reason(self) -> str:
        """The name of the sink's error with which it stopped."""
        (line,) = [each for each in self.said if each.startswith("stopped ")]
        return line.split()[1]

    def signal(self, number: int) -> None:
        """To the driver and its JVM at once."""
        os.killpg(self.pid, number)

    def wait_until_stopped(self) -> None:
        wait_until(lambda: _state(self.pid) in "Tt", f"{self.pid} to be stopped: {self.said}")

    def story(self) -> str:
        """What it said, for whoever has to find out why."""
        errors = self._errors.read_text(errors="replace").splitlines()
        return "\n".join([*self.said[-TOLD_LINES:], "--", *errors[-TOLD_LINES:]])

    def end(self) -> None:
        """kill -9 of everybody in its session, until there is nobody."""

        def is_empty() -> bool:
            found = list(_session(self.pid))
            for pid in found:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            return not found

        wait_until(is_empty, f"the end of session {self.pid}")
        self._process.wait(PATIENCE_S)


class Programs:
    """Makes them, and ends them all; one is kept ready, since a start of Spark takes long."""

    def __init__(self, directory: Path, *, master: str = "local[2]") -> None:
        self._directory = directory
        self._master = master
        self._all: list[Program] = []
        self._ready: Program | None = None

    def go(self, wish: Wish, *, is_last: bool = False) -> Program:
        """One that does that; unless it is the last one, the next is started meanwhile."""
        program = self._ready or self._made()
        self._ready = None if is_last else self._made()
        program.go(wish)
        return program

    def _made(self) -> Program:
        self._all.append(Program(self._directory, master=self._master))
        return self._all[-1]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for each in self._all:
            each.end()


def _stat(pid: int) -> list[str]:
    """State, parent, group, session, ...; of nobody if it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ["X", "0", "0", "0"]
    return text.rpartition(")")[2].split()


def _state(pid: int) -> str:
    return _stat(pid)[0]


def _session(pid: int) -> Iterable[int]:
    """Who is alive in the session that this process led."""
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            state: Any
            state, _, _, session, *_ = _stat(int(each.name))
            if int(session) == pid and state not in "ZX":
                yield int(each.name)
