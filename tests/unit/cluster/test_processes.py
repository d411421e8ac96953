"""Processes are known by pid and start time, so that a reused pid is nobody's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.process.waiting import wait_until
from tidelog.cluster import processes
from tidelog.cluster.processes import OsProcess

SLEEPER = [sys.executable, "-c", "import signal; print('here', flush=True); signal.pause()"]


@pytest.fixture
def sleeper(tmp_path: Path) -> OsProcess:
    started = processes.start(SLEEPER, directory=tmp_path, log=tmp_path / "log")
    wait_until(lambda: (tmp_path / "log").read_text(), "its first word", within_s=60)
    return started


def test_a_process_is_paused_resumed_and_killed(sleeper: OsProcess) -> None:
    assert sleeper.is_alive and not sleeper.is_paused
    assert sleeper.signal(processes.PAUSE)
    wait_until(lambda: sleeper.is_paused, "the pause", within_s=60)
    assert sleeper.signal(processes.RESUME)
    wait_until(lambda: not sleeper.is_paused, "the end of the pause", within_s=60)
    assert not sleeper.ended_within(0.05)
    assert sleeper.signal(processes.KILL)
    assert sleeper.ended_within(60)
    assert processes.exit_code(sleeper) == -processes.KILL
    assert not sleeper.signal(processes.KILL)


def test_whoever_has_the_pid_later_is_not_signalled(sleeper: OsProcess, tmp_path: Path) -> None:
    """The file names the pid of a living process that was started at another time."""
    processes.write_pid_file(tmp_path / "pid", OsProcess(sleeper.pid, "1"))
    found = processes.read_pid_file(tmp_path / "pid")
    assert found is not None
    assert not found.is_alive
    assert not found.is_paused
    assert not found.signal(processes.KILL)
    assert sleeper.is_alive
    sleeper.signal(processes.KILL)
    assert sleeper.ended_within(60)


def test_a_dead_child_that_nobody_has_noted_is_not_alive(tmp_path: Path) -> None:
    """A zombie still has its pid and its start time."""
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    found = processes._state_of(child.pid)
    assert found is not None
    zombie = OsProcess(child.pid, found[0])
    wait_until(lambda: not zombie.is_alive, "its end", within_s=60)
    assert os.path.exists(f"/proc/{child.pid}")
    child.wait()


def test_a_pid_file_is_read_as_written_and_nonsense_is_nobody(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    assert processes.read_pid_file(path) is None
    here = processes.this_process()
    processes.write_pid_file(path, here, kind="up")
    assert processes.read_pid_file(path) == here
    assert processes.pid_file_kind(path) == "up"
    assert here.is_alive
    path.write_text("what\n")
    assert processes.read_pid_file(path) is None
    assert processes.pid_file_kind(path) is None


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="threads are seen in /proc")
def test_a_process_whose_first_thread_is_dead_is_not_over(tmp_path: Path) -> None:
    """It still holds its sockets: whoever is started in its place would find its port taken."""
    program = """
import ctypes, sys, threading
threading.Thread(target=sys.stdin.read).start()
ctypes.PyDLL(None).pthread_exit(None)
"""
    reading, writing = os.pipe()
    command = [sys.executable, "-c", program]
    started = processes.start(command, directory=tmp_path, log=tmp_path / "log", stdin=reading)
    os.close(reading)
    try:
        stat = Path(f"/proc/{started.pid}/stat")
        wait_until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "Z", "a dead thread")
        assert started.is_alive
        started.signal(processes.KILL)
        assert started.ended_within(30.0)
    finally:
        os.close(writing)
