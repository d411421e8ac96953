"""The nodes of a cluster and their processes: everything that is known without asking a broker."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from tidelog.cluster.errors import ClusterError, ClusterUsageError, WaitTimeout
from tidelog.cluster.launcher import Launcher
from tidelog.cluster.processes import OsProcess
from tidelog.cluster.rules import listed

WAIT_TIMEOUT_S = 60.0
_POLL_INTERVAL_S = 0.01
_LOG_COLUMNS_MAX = 300


class ClusterNode(NamedTuple):
    """One node and the paths of what it writes; `pid` is None while it does not run."""

    id: int
    roles: tuple[str, ...]
    rack: str | None
    address: str
    pid: int | None
    log_path: Path
    data_path: Path


class Members:
    """The nodes of one cluster; they are known as soon as `launcher` is set."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        """Held by whoever changes what runs, so that a fault's timer and `close` do not meet."""
        self._launcher: Launcher | None = None

    @property
    def launcher(self) -> Launcher:
        """Starts and ends the processes."""
        if self._launcher is None:
            raise ClusterUsageError("the cluster has not been started")
        return self._launcher

    @launcher.setter
    def launcher(self, launcher: Launcher | None) -> None:
        self._launcher = launcher

    @property
    def is_started(self) -> bool:
        return self._launcher is not None

    @property
    def node_ids(self) -> tuple[int, ...]:
        return tuple(self.launcher.plan.by_id)

    @property
    def broker_ids(self) -> tuple[int, ...]:
        return self.launcher.plan.broker_ids

    def check_id(self, node_id: int) -> int:
        """The same id; ClusterUsageError if there is no such node."""
        if node_id not in self.launcher.plan.by_id:
            raise ClusterUsageError(
                f"there is no node {node_id}; the nodes are {id_list(self.node_ids)}"
            )
        return node_id

    def process(self, node_id: int) -> OsProcess | None:
        """The node's process if it runs."""
        return self.launcher.process(self.check_id(node_id))

    def running_processes(self, node_ids: Iterable[int]) -> list[OsProcess]:
        """The processes of these nodes; ClusterError if one does not run."""
        found = []
        for each in node_ids:
            process = self.process(each)
            if process is None:
                raise ClusterError(
                    f"{self.names([each])} does not run (log: {self.launcher.directory.log(each)})"
                )
            found.append(process)
        return found

    def node(self, node_id: int) -> ClusterNode:
        plan = self.launcher.plan.by_id[node_id]
        process = self.launcher.process(node_id)
        return ClusterNode(
            id=node_id,
            roles=plan.roles,
            rack=plan.rack,
            address=plan.address,
            pid=None if process is None else process.pid,
            log_path=self.launcher.directory.log(node_id),
            data_path=self.launcher.directory.data(node_id),
        )

    def names(self, node_ids: Sequence[int]) -> str:
        """For sentences: `broker 1`, `brokers 1 and 2`, `nodes 1 and 4`."""
        words = {self.launcher.plan.by_id[each].word for each in node_ids}
        word = words.pop() if len(words) == 1 else "node"
        return f"{word}{'' if len(node_ids) == 1 else 's'} {listed(node_ids)}"

    def last_log_lines(self, count: int) -> str:
        """The end of every node's log."""
        lines: list[str] = []
        for each in self.node_ids:
            last = self.launcher.directory.last_log_lines(each, count)
            lines += [f"node {each} said:", *(line[:_LOG_COLUMNS_MAX] for line in last)]
        return "\n".join(lines)


def wait_until(
    condition: Callable[[], bool],
    what: str | Callable[[], str],
    *,
    timeout_s: float = WAIT_TIMEOUT_S,
) -> None:
    """Evaluate a condition until it holds; WaitTimeout names what was awaited."""
    deadline_s = time.monotonic() + timeout_s
    pause = threading.Event()
    while not condition():
        if time.monotonic() > deadline_s:
            awaited = what if isinstance(what, str) else what()
            raise WaitTimeout(f"timed out after {timeout_s:g} s waiting for {awaited}")
        pause.wait(_POLL_INTERVAL_S)


def id_list(node_ids: Iterable[int]) -> str:
    """For sentences: `1, 2, 3`, or `none`."""
    return ", ".join(map(str, sorted(node_ids))) or "none"
