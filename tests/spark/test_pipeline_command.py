"""`tidelog pipeline run` as a person runs it: watched, stopped by Ctrl-C, killed, and resumed."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import struct
import subprocess
import sys
import termios
import threading
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

import tidelog
from tests.process.command_line import COMMAND
from tests.process.waiting import PATIENCE_S, wait_until
from tests.spark.orders import Orders, check_tables, pipeline_file, rows_of
from tests.spark.topics import NewTopic
from tidelog.cli.pipeline.show import HEADER

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("spark-command")]
START_WITHIN_S = 3 * PATIENCE_S
"""A Spark of its own, which shares the machine with the session of the other tests."""


def test_a_run_is_watched_stopped_killed_and_resumed(
    tidelog3: tidelog.Cluster, new_topic: NewTopic, tmp_path: Path
) -> None:
    """Three runs on one checkpoint; the last one finishes, and every order is there once."""
    orders = Orders(tidelog3.bootstrap_servers, new_topic(tidelog3, partitions=2))
    file = pipeline_file(tmp_path, orders.topic, source="max_offsets_per_trigger = 100")
    valid = tmp_path / "orders-data" / "valid_orders"
    arguments = ["pipeline", "run", str(file), "--bootstrap", orders.servers]
    arguments += ["--master", "local[2]"]

    orders.write(range(200))
    with Terminal("tidelog.cli.main", *arguments, directory=tmp_path) as terminal:
        wait_until(lambda: rows_of(valid), "the first orders", within_s=START_WITHIN_S)
        for drawn in (*HEADER, f"{orders.topic}-1: "):
            wait_until(
                partial(lambda text: text in terminal.text, drawn), f"{drawn!r} in the table"
            )
        terminal.press(CTRL_C)
        assert terminal.wait() == 0, terminal.text
        assert "orders: stopped" in terminal.text
        assert "Traceback" not in terminal.text and "KeyboardInterrupt" not in terminal.text

    orders.write(range(200, 400))
    before = len(rows_of(valid))
    process = subprocess.Popen(
        [*COMMAND, *arguments, "--json"], stdout=subprocess.DEVNULL, start_new_session=True
    )
    try:
        wait_until(lambda: len(rows_of(valid)) > before, "more orders", within_s=START_WITHIN_S)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    orders.write(range(400, 500))
    done = subprocess.run(
        [*COMMAND, *arguments, "--json", "--available-now"],
        capture_output=True,
        text=True,
        timeout=START_WITHIN_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    check_tables(tmp_path, orders)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert (events[0]["event"], events[-1]["event"]) == ("started", "ended")
    assert events[-1]["ending"] == "finished"
    last = {each["sink"]: each["behind"] for each in events if each["event"] == "batch"}
    nothing = {f"{orders.topic}-0": 0, f"{orders.topic}-1": 0}
    assert last == dict.fromkeys(("valid_orders", "revenue", "dead_letters"), nothing)


CTRL_C = b"\x03"
_ROWS, _COLUMNS = 50, 200
_WITHOUT_A_SIZE = {
    name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")
}
"""The size is that of this terminal, not of the one in which the tests run."""


class Terminal:
    """`with Terminal("tidelog.cli.main", ...) as terminal`: a session with a pseudo-terminal."""

    def __init__(self, module: str, *arguments: str, directory: Path) -> None:
        self._end, near = os.openpty()
        fcntl.ioctl(near, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=near,
            stdout=near,
            stderr=near,
            cwd=directory,
            env={**_WITHOUT_A_SIZE, "TERM": "xterm"},
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
        os.close(near)
        self._drawn = bytearray()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def text(self) -> str:
        """All that was drawn so far, one picture after the other."""
        return bytes(self._drawn).decode(errors="replace")

    def press(self, key: bytes) -> None:
        """The terminal makes a signal of Ctrl-C, for every process in the foreground."""
        os.write(self._end, key)

    def wait(self) -> int:
        """The exit code, when everything has been drawn."""
        code = self.process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self._reader.join(PATIENCE_S)
        os.close(self._end)

    def _read(self) -> None:
        while True:
            try:
                piece = os.read(self._end, 65_536)
            except OSError:  # everybody who had the terminal is gone
                return
            if not piece:
                return
            self._drawn += piece


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
