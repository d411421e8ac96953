"""Who is in a cluster, and which of them live: what can be said without asking any broker."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from tidelog.cluster import processes
from tidelog.cluster.errors import ClusterError, ClusterUsageError, WaitedInVain
from tidelog.cluster.launching import Launcher
from tidelog.cluster.processes import Process

WAIT_WITHIN_S = 60.0
_LOOK_AGAIN_S = 0.01
_LOG_LINES_NOTED = 8
_LOG_COLUMNS_NOTED = 300


class Node(NamedTuple):
    """One node and where to find what is its own; `pid` is None while it does not run."""

    id: int
    roles: tuple[str, ...]
    rack: str | None
    address: str
    pid: int | None
    log_path: Path
    data_path: Path


class Members:
    """The nodes of a cluster that has been started, here or elsewhere."""

    def __init__(self) -> None:
        self._launcher: Launcher | None = None
        self._lock = threading.RLock()
        self._pause = threading.Event()

    @property
    def data(self) -> Path:
        """The cluster's directory."""
        return self.launcher.directory.root

    @property
    def bootstrap_servers(self) -> str:
        """All brokers, as clients want it."""
        return self.launcher.plan.bootstrap_servers

    @property
    def node_ids(self) -> tuple[int, ...]:
        return tuple(self.launcher.plan.by_id)

    @property
    def broker_ids(self) -> tuple[int, ...]:
        return self.launcher.plan.broker_ids

    @property
    def racks(self) -> dict[str, tuple[int, ...]]:
        """The nodes of each rack."""
        return self.launcher.plan.racks

    @property
    def nodes(self) -> dict[int, Node]:
        return {each: self._node(each) for each in self.node_ids}

    def is_running(self, node_id: int) -> bool:
        return self.launcher.process(self.known(node_id)) is not None

    def is_paused(self, node_id: int) -> bool:
        process = self.launcher.process(self.known(node_id))
        return process is not None and process.is_paused

    @property
    def has_majority(self) -> bool:
        """Whether so many voters run that there can be a controller."""
        voters = [node.id for node in self.launcher.plan.nodes if node.is_controller]
        return 2 * len(set(voters).intersection(self.launcher.responsive())) > len(voters)

    def last_log_lines(self, count: int = _LOG_LINES_NOTED) -> str:
        """The end of what each node said."""
        told = []
        for each in self.node_ids:
            lines = self.launcher.directory.last_log_lines(each, count)
            told += [f"node {each} said:", *(line[:_LOG_COLUMNS_NOTED] for line in lines)]
        return "\n".join(told)

    def reap(self) -> None:
        """Take note of nodes that have ended; for whoever watches for long."""
        processes.reap()

    def wait_until(
        self,
        condition: Callable[[], bool],
        what: str | Callable[[], str],
        *,
        timeout_s: float = WAIT_WITHIN_S,
    ) -> None:
        """Look again and again; WaitedInVain when it takes longer than that."""
        deadline_s = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > deadline_s:
                told = what if isinstance(what, str) else what()
                raise WaitedInVain(f"waited {timeout_s:g} s in vain for {told}")
            self._pause.wait(_LOOK_AGAIN_S)

    # For the rooms next door.

    @property
    def launcher(self) -> Launcher:
        """Who starts and ends the processes."""
        if self._launcher is None:
            raise ClusterUsageError("the cluster has not been started")
        return self._launcher

    def known(self, node_id: int) -> int:
        """The same id, if there is such a node."""
        if node_id not in self.launcher.plan.by_id:
            raise ClusterUsageError(
                f"there is no node {node_id}; the nodes are {ids(self.node_ids)}"
            )
        return node_id

    def must_run(self, node_ids: Iterable[int]) -> list[Process]:
        """Their processes; ClusterError if one has none."""
        found = []
        for each in node_ids:
            process = self.launcher.process(self.known(each))
            if process is None:
                raise ClusterError(
                    f"{self.name_of(each)} does not run (log: {self.launcher.directory.log(each)})"
                )
            found.append(process)
        return found

    def name_of(self, node_id: int) -> str:
        return f"{self.launcher.plan.by_id[node_id].word} {node_id}"

    def _node(self, node_id: int) -> Node:
        node = self.launcher.plan.by_id[node_id]
        process = self.launcher.process(node_id)
        return Node(
            id=node_id,
            roles=node.roles,
            rack=node.rack,
            address=node.address,
            pid=None if process is None else process.pid,
            log_path=self.launcher.directory.log(node_id),
            data_path=self.launcher.directory.data(node_id),
        )


def ids(node_ids: Iterable[int]) -> str:
    """For sentences: `1, 2, 3`."""
    return ", ".join(map(str, sorted(node_ids))) or "nobody"
