"""Starting and ending the broker processes of one data directory; knows nothing of Kafka.

A launcher that stays (a program, `tidelog up` in the foreground) holds the lifeline: a pipe whose
other end is the standard input of every broker, whoever started it. When the launcher is gone,
however it went, the brokers see the end of their input and stop.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from tidelog.cluster import processes
from tidelog.cluster.directory import ClusterDirectory, take_lock, write_whole
from tidelog.cluster.errors import ClusterError
from tidelog.cluster.layout import ClusterPlan, node_settings
from tidelog.cluster.ports import is_free
from tidelog.cluster.processes import OsProcess

STOP_TIMEOUT_S = 30.0
KILL_TIMEOUT_S = 30.0
_POLL_INTERVAL_S = 0.005
_LOG_LINES_SHOWN = 1


class Launcher:
    """The processes of one cluster, started here or elsewhere."""

    def __init__(self, directory: ClusterDirectory, plan: ClusterPlan) -> None:
        self.directory = directory
        self.plan = plan
        self._lock: int | None = None
        self._lifeline: int | None = None
        self._pause = threading.Event()

    # One launcher at a time.

    def claim(self) -> None:
        """One launcher at a time; the claim ends with the process or with `let_go`."""
        path = self.directory.root / "lock"
        try:
            self._lock = take_lock(path)
        except OSError as error:
            raise ClusterError(f"cannot use {path}: {error.strerror}") from error
        if self._lock is None:
            raise ClusterError(f"another program is running the cluster in {self.directory.root}")

    def let_go(self) -> None:
        for descriptor in (self._lock, self._lifeline):
            if descriptor is not None:
                os.close(descriptor)
        if self._lifeline is not None:
            self.directory.launcher_path.unlink(missing_ok=True)
        self._lock = self._lifeline = None

    def hold_lifeline(self, kind: str) -> None:
        """From now on the brokers live no longer than this process, which is of this kind."""
        path = self.directory.lifeline_path
        path.unlink(missing_ok=True)
        os.mkfifo(path, 0o600)
        self._lifeline = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        process = processes.this_process()
        processes.write_pid_file(self.directory.launcher_path, process, kind=kind)

    @property
    def launcher(self) -> OsProcess | None:
        """The process that holds the lifeline, if it lives."""
        found = processes.read_pid_file(self.directory.launcher_path)
        return found if found is not None and found.is_alive else None

    @property
    def launcher_kind(self) -> str | None:
        """`up` or `program`."""
        if self.launcher is None:
            return None
        return processes.pid_file_kind(self.directory.launcher_path)

    # What runs.

    def process(self, node_id: int) -> OsProcess | None:
        """The node's process if it runs."""
        found = processes.read_pid_file(self.directory.pid(node_id))
        return found if found is not None and found.is_alive else None

    def running(self) -> list[int]:
        return [node.id for node in self.plan.nodes if self.process(node.id) is not None]

    def responsive(self) -> list[int]:
        """Those that run and are not paused."""
        found = {node.id: self.process(node.id) for node in self.plan.nodes}
        return [each for each, one in found.items() if one is not None and not one.is_paused]

    # Starting.

    def start(self, node_ids: Iterable[int]) -> None:
        """Start the processes only; ClusterError if a port is taken, and nothing was started."""
        nodes = [self.plan.by_id[each] for each in node_ids]
        for node in nodes:
            if not is_free(node.port):
                raise ClusterError(
                    f"port {node.port} is in use, which is {node.word} {node.id}'s; "
                    f"end the program that listens there, or choose other ports"
                )
        for node in nodes:
            self._start_one(node.id)

    def _start_one(self, node_id: int) -> None:
        directory = self.directory
        node = self.plan.by_id[node_id]
        try:
            directory.node(node_id).mkdir(parents=True, exist_ok=True)
            directory.ready(node_id).unlink(missing_ok=True)
            settings = node_settings(
                self.plan,
                node,
                data=str(directory.data(node_id)),
                secret_file=str(directory.secret_path),
            )
            lines = [f"{json.dumps(key)} = {json.dumps(each)}" for key, each in settings.items()]
            write_whole(directory.config(node_id), "\n".join(lines) + "\n")
            stdin = self._open_lifeline()
            try:
                started = processes.start(
                    self._command(node_id),
                    directory=directory.node(node_id),
                    log=directory.log(node_id),
                    stdin=stdin,
                )
            finally:
                if stdin != subprocess.DEVNULL:
                    os.close(stdin)
            processes.write_pid_file(directory.pid(node_id), started)
        except OSError as error:
            raise ClusterError(f"cannot start node {node_id}: {error}") from error

    def _command(self, node_id: int) -> list[str]:
        directory = self.directory
        command = [sys.executable, "-m", "tidelog.cli.main", "broker"]
        command += ["--config", str(directory.config(node_id))]
        command += ["--ready-file", str(directory.ready(node_id))]
        if self.plan.has_faults:
            command += ["--faults", str(directory.gate(node_id))]
        if self.launcher is not None:
            command.append("--stop-with-stdin")
        return command

    def _open_lifeline(self) -> int:
        """The brokers' end of it, or nothing if no launcher stays."""
        if self.launcher is None:
            return subprocess.DEVNULL
        reading = os.open(self.directory.lifeline_path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        os.set_blocking(reading, True)
        return reading

    def wait_until_listening(self, node_ids: Iterable[int], *, timeout_s: float) -> None:
        """Until each of them accepts connections, which says nothing of the cluster."""
        deadline_s = time.monotonic() + timeout_s
        for node_id in node_ids:
            while not self.directory.ready(node_id).exists():
                self.check_alive([node_id])
                if time.monotonic() > deadline_s:
                    raise ClusterError(f"node {node_id} does not serve{self.last_words(node_id)}")
                self._pause.wait(_POLL_INTERVAL_S)

    def check_alive(self, node_ids: Iterable[int]) -> None:
        """ClusterError with the reason, if one of them has ended."""
        for node_id in node_ids:
            found = processes.read_pid_file(self.directory.pid(node_id))
            if found is not None and not found.is_alive:
                code = processes.exit_code(found)
                how = "ended" if code is None else f"ended with exit code {code}"
                node = self.plan.by_id[node_id]
                raise ClusterError(f"{node.word} {node_id} {how}{self.last_words(node_id)}")

    def last_words(self, node_id: int) -> str:
        """The last line of a node's log, and where the log is."""
        lines = self.directory.last_log_lines(node_id, _LOG_LINES_SHOWN)
        last_line = f": {lines[-1]}" if lines else ""
        return f"{last_line} (log: {self.directory.log(node_id)})"

    # Ending.

    def kill(self, node_ids: Iterable[int]) -> None:
        """kill -9, and wait until they are gone."""
        found = [one for each in node_ids if (one := self.process(each)) is not None]
        for one in found:
            one.signal(processes.KILL)
        for one in found:
            if not one.ended_within(KILL_TIMEOUT_S):
                raise ClusterError(f"process {one.pid} does not end although it was killed")
        processes.reap()

    def stop(self, node_ids: Iterable[int], *, timeout_s: float = STOP_TIMEOUT_S) -> list[int]:
        """SIGTERM to all at once; those that had to be killed in the end."""
        node_ids = list(node_ids)
        found = {each: one for each in node_ids if (one := self.process(each)) is not None}
        for one in found.values():
            one.signal(processes.TERMINATE)
            one.signal(processes.RESUME)
        deadline_s = time.monotonic() + timeout_s
        late = [
            each
            for each, one in found.items()
            if not one.ended_within(max(0.0, deadline_s - time.monotonic()))
        ]
        self.kill(late)
        processes.reap()
        return late

    def forget_plan(self) -> None:
        """Of a cluster that never was: another one may be planned here."""
        self.directory.plan_path.unlink(missing_ok=True)
        if self.plan.nodes:
            import shutil

            for node in self.plan.nodes:
                shutil.rmtree(self.directory.data(node.id), ignore_errors=True)

    def clean_up(self) -> None:
        """After the end of all: what no longer means anything."""
        for node in self.plan.nodes:
            for path in (self.directory.pid(node.id), self.directory.ready(node.id)):
                path.unlink(missing_ok=True)
        self.directory.lifeline_path.unlink(missing_ok=True)
        if self.directory.sockets is not None:
            for left in list_directory(self.directory.sockets):
                left.unlink(missing_ok=True)
            with suppress(OSError):
                self.directory.sockets.rmdir()


def list_directory(path: Path) -> list[Path]:
    """What is in it; nothing if it is not there."""
    try:
        return list(path.iterdir())
    except OSError:
        return []
