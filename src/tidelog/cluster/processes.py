"""Processes by what cannot be reused: a pid together with the moment when it was started.

A broker may be the child of this process or of another launcher, so what is known of it stands in
its pid file. A pid alone may be reused by another process; no process is signalled before its
start time has been compared.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tidelog.cluster.errors import ClusterError

_POLL_INTERVAL_S = 0.005
_DEAD = ("Z", "X", "x")
_STOPPED = ("T", "t")
_DYING = "D"


class OsProcess(NamedTuple):
    """One process that was started at one moment."""

    pid: int
    started: str
    """The moment, in whatever form the system gives it; only good for comparing."""

    @property
    def is_alive(self) -> bool:
        found = _state_of(self.pid)
        return found is not None and found[0] == self.started and found[1] not in _DEAD

    @property
    def is_paused(self) -> bool:
        found = _state_of(self.pid)
        return found is not None and found[0] == self.started and found[1] in _STOPPED

    def signal(self, number: int) -> bool:
        """Returns whether the process was there to be signalled."""
        if not self.is_alive:
            return False
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        except PermissionError:
            raise ClusterError(f"process {self.pid} belongs to another user") from None
        return True

    def ended_within(self, seconds: float) -> bool:
        """Returns whether it is over, after waiting at most this long."""
        deadline_s = time.monotonic() + seconds
        while self.is_alive:
            if time.monotonic() > deadline_s:
                return False
            _pause.wait(_POLL_INTERVAL_S)
        reap()
        return True


_pause = threading.Event()
_children: dict[int, subprocess.Popen[bytes]] = {}
"""Those of this process, by pid; kept until they have been collected."""


def start(
    command: list[str], *, directory: Path, log: Path, stdin: int = subprocess.DEVNULL
) -> OsProcess:
    """In a session of its own: Ctrl-C at a terminal is the launcher's affair."""
    reap()
    with log.open("ab") as file:
        child = subprocess.Popen(
            command,
            stdin=stdin,
            stdout=file,
            stderr=file,
            cwd=directory,
            start_new_session=True,
        )
    _children[child.pid] = child
    found = _state_of(child.pid)
    return OsProcess(child.pid, found[0] if found is not None else "over")


def exit_code(process: OsProcess) -> int | None:
    """Of a child of this process that has ended."""
    child = _children.get(process.pid)
    return None if child is None else child.poll()


def reap() -> None:
    """Collect children that have ended, so that they do not stay as zombies."""
    for child in list(_children.values()):
        child.poll()


def write_pid_file(path: Path, process: OsProcess, *, kind: str = "broker") -> None:
    """Complete as soon as it is there."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    temporary.write_text(f"{process.pid}\n{process.started}\n{kind}\n")
    temporary.replace(path)


def read_pid_file(path: Path) -> OsProcess | None:
    """The process started last, alive or not; None without a readable file."""
    try:
        pid, started, _ = path.read_text().splitlines()
        return OsProcess(int(pid), started)
    except (OSError, ValueError):
        return None


def pid_file_kind(path: Path) -> str | None:
    """What kind of process that is."""
    try:
        return path.read_text().splitlines()[2]
    except (OSError, IndexError):
        return None


def this_process() -> OsProcess:
    found = _state_of(os.getpid())
    assert found is not None
    return OsProcess(os.getpid(), found[0])


def _state_of(pid: int) -> tuple[str, str] | None:
    """(start time, state) of the process with this pid now."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return _state_from_ps(pid) if not _HAS_PROC else None
    state, threads = fields[0].decode(), int(fields[17])
    if state in _DEAD and threads > 1:
        state = _DYING  # its first thread is dead, the others still hold files and ports
    return fields[19].decode(), state


_HAS_PROC = os.path.exists("/proc/self/stat")


def _state_from_ps(pid: int) -> tuple[str, str] | None:
    """Where there is no /proc."""
    with suppress(OSError):
        output = subprocess.run(
            ["ps", "-o", "lstart=,state=", "-p", str(pid)], capture_output=True, text=True
        ).stdout.split()
        if output:
            return " ".join(output[:-1]), output[-1][:1]
    return None


KILL = signal.SIGKILL
TERMINATE = signal.SIGTERM
PAUSE = signal.SIGSTOP
RESUME = signal.SIGCONT
