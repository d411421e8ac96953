"""A program in a terminal of its own: what it draws is kept, and keys reach all its processes."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import subprocess
import sys
import termios
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.process.waiting import PATIENCE_S

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
