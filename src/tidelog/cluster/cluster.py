"""A cluster of real broker processes on this machine, and everything that can be done to it.

    with tidelog.Cluster(brokers=4, racks=["a", "b"]) as cluster:
        producer = SomeKafkaClient({"bootstrap.servers": cluster.bootstrap_servers})
        cluster.kill(cluster.leader("orders", 0))
        cluster.wait_isr("orders", 0, {2, 3})

When the block is entered every broker is registered, unfenced and known to all others. When it is
left nothing runs any more; if the program itself is killed, the brokers end as well.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, NamedTuple, Self

from tidelog.cluster import processes
from tidelog.cluster.directory import Directory
from tidelog.cluster.errors import ClusterError, ClusterUsageError, WaitedInVain
from tidelog.cluster.launching import Launcher
from tidelog.cluster.layout import ClusterPlan, NodePlan, Setting, check_nodes, plan_nodes
from tidelog.cluster.ports import free_ports
from tidelog.cluster.profiles import DEFAULT_PROFILE, profile_settings

if TYPE_CHECKING:
    from tidelog.client.admin.topics import PartitionDescription
    from tidelog.cluster.observing import Observer

START_WITHIN_S = 60.0
WAIT_WITHIN_S = 60.0
ANSWER_WITHIN_S = 20.0
_LOOK_AGAIN_S = 0.01
_ROUND_S = 0.5
_LOG_LINES_NOTED = 15


class Node(NamedTuple):
    """One node and where to find what is its own; `pid` is None while it does not run."""

    id: int
    roles: tuple[str, ...]
    rack: str | None
    address: str
    pid: int | None
    log_path: Path
    data_path: Path


class Cluster:
    """Made with what is wanted, started by `start` or by entering it, ended by `close`."""

    def __init__(
        self,
        brokers: int = 3,
        *,
        racks: Sequence[str] = (),
        controllers: int | None = None,
        nodes: Sequence[NodePlan] | None = None,
        profile: str = DEFAULT_PROFILE,
        data: str | Path | None = None,
        port: int = 0,
        settings: Mapping[str, Setting] | None = None,
        settings_of: Mapping[int, Mapping[str, Setting]] | None = None,
        faults: bool = True,
        keep: bool = False,
    ) -> None:
        """Nothing is started yet.

        `controllers` asks for so many nodes that only vote, beside brokers that do not. `nodes`
        says it all by hand instead. `data` is a directory that outlives the cluster; without it
        everything is in a temporary one, which is removed at the end unless `keep` says otherwise.
        With `port` the nodes listen there and on the following ports; 0 takes free ones.
        `settings` have Kafka's names; `settings_of` are those of single nodes, by id.
        """
        planned = check_nodes(nodes) if nodes is not None else None
        if planned is None:
            planned = plan_nodes(brokers=brokers, racks=racks, controllers=controllers)
        profile_settings(profile)
        unknown = sorted(set(settings_of or {}) - {node.id for node in planned})
        if unknown:
            raise ClusterUsageError(f"settings_of: there is no node {unknown[0]}")
        if not 0 <= port < 2**16 - len(planned):
            raise ClusterUsageError(f"port: from 0 to {2**16 - 1 - len(planned)}, not {port}")
        self._port = port
        self._is_temporary = data is None
        self._keeps = keep or data is not None
        self._given_data = None if data is None else Path(data)
        self._wanted = ClusterPlan(
            cluster_id=f"local-{uuid.uuid4().hex[:12]}",
            nodes=tuple(
                replace(node, settings={**node.settings, **(settings_of or {}).get(node.id, {})})
                for node in planned
            ),
            profile=profile,
            settings=dict(settings or {}),
            has_faults=faults,
        )
        self._plan: ClusterPlan | None = None
        self._launcher: Launcher | None = None
        self._observer: Observer | None = None
        self._lock = threading.RLock()
        self._pause = threading.Event()

    @classmethod
    def attach(cls, data: str | Path) -> Cluster:
        """A cluster that somebody else has started, or that is down, by its data directory."""
        directory = Directory(Path(data))
        plan = directory.read_plan()
        found = cls(nodes=plan.nodes, profile=plan.profile, data=data, faults=plan.has_faults)
        found._wanted = plan
        found._adopt(directory, plan)
        return found

    # Beginning and end.

    def start(self, *, detached: bool = False, timeout_s: float = START_WITHIN_S) -> None:
        """Start every node and wait until all brokers know each other.

        A detached cluster goes on when this process ends. If anything goes wrong nothing is left
        running.
        """
        directory = Directory(self._make_data())
        try:
            directory.make()
            launcher = Launcher(directory, self._wanted)
            launcher.claim()
            try:
                self._start(launcher, detached=detached, timeout_s=timeout_s)
            except BaseException:
                launcher.kill(launcher.plan.by_id)
                launcher.let_go()
                raise
        except BaseException:
            self._remove_data()
            raise
        if detached:
            launcher.let_go()

    def close(self) -> None:
        """Stop every node; without lasting data there is nothing to stop gently."""
        with self._lock:
            if self._launcher is None:
                return
            if self._observer is not None:
                self._observer.close()
                self._observer = None
            if self._keeps:
                self._launcher.stop(self._launcher.plan.by_id)
            else:
                self._launcher.kill(self._launcher.plan.by_id)
            self._launcher.clean_up()
            self._launcher.let_go()
            self._launcher = None
            self._remove_data()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None and self._launcher is not None:
            error.add_note(self.last_log_lines())
        self.close()

    # Who is in it.

    @property
    def data(self) -> Path:
        return self._running.directory.root

    @property
    def bootstrap_servers(self) -> str:
        return self._running.plan.bootstrap_servers

    @property
    def node_ids(self) -> tuple[int, ...]:
        return tuple(self._running.plan.by_id)

    @property
    def broker_ids(self) -> tuple[int, ...]:
        return self._running.plan.broker_ids

    @property
    def nodes(self) -> dict[int, Node]:
        return {each: self._node(each) for each in self.node_ids}

    def is_running(self, node_id: int) -> bool:
        return self._running.process(self._known(node_id)) is not None

    def is_paused(self, node_id: int) -> bool:
        process = self._running.process(self._known(node_id))
        return process is not None and process.is_paused

    def last_log_lines(self, count: int = _LOG_LINES_NOTED) -> str:
        """The end of what each node said."""
        directory = self._running.directory
        return "\n".join(
            "\n".join([f"node {each} said:", *directory.last_log_lines(each, count)])
            for each in self.node_ids
        )

    # What it says of itself.

    def controller(self) -> int | None:
        """The active controller; None: nobody knows of one."""
        told = self.observer.quorum(self._running.responsive())
        return None if told is None else told.leader_id

    def leader(self, topic: str, partition: int = 0) -> int | None:
        """Who leads now; None: nobody does."""
        return self._partition(topic, partition).leader_id

    def isr(self, topic: str, partition: int = 0) -> frozenset[int]:
        return frozenset(self._partition(topic, partition).isr)

    def replicas(self, topic: str, partition: int = 0) -> tuple[int, ...]:
        """In the order of preference."""
        return self._partition(topic, partition).replicas

    def followers(self, topic: str, partition: int = 0) -> tuple[int, ...]:
        """Those that hold the partition and do not lead it, in sync or not."""
        told = self._partition(topic, partition)
        return tuple(each for each in told.replicas if each != told.leader_id)

    def unfenced(self) -> frozenset[int]:
        """The brokers that may lead, as the active controller says, or whoever answers."""
        return self.observer.unfenced(self._running.responsive())

    # What is done to processes.

    def kill(self, *node_ids: int) -> None:
        """kill -9: no good-byes, and the page cache survives."""
        with self._lock:
            self._must_run(node_ids)
            self._running.kill(node_ids)

    def stop(self, *node_ids: int) -> None:
        """SIGTERM: what it leads is handed over first."""
        with self._lock:
            self._must_run(node_ids)
            self._running.stop(node_ids)

    def restart(self, *node_ids: int, wait: bool = True) -> None:
        """Start those that are down; stop those that run, and start them again.

        Comes back when they listen, which says nothing about the cluster: see `wait_unfenced`.
        """
        with self._lock:
            for each in node_ids:
                self._known(each)
            self._running.stop(node_ids)
            self._running.start(node_ids)
        if wait:
            self._running.wait_until_listening(node_ids, timeout_s=START_WITHIN_S)

    def pause(self, *node_ids: int) -> None:
        """SIGSTOP: it holds its connections and says nothing."""
        self._must_run(node_ids)
        found = self._processes(node_ids)
        for process in found:
            process.signal(processes.PAUSE)
        for process in found:
            self.wait_until(lambda one=process: one.is_paused or not one.is_alive, "a pause")  # type: ignore[misc]

    def resume(self, *node_ids: int) -> None:
        """SIGCONT."""
        self._must_run(node_ids)
        for process in self._processes(node_ids):
            process.signal(processes.RESUME)

    # Waiting.

    def wait_until(
        self, condition: Callable[[], bool], what: str, *, timeout_s: float = WAIT_WITHIN_S
    ) -> None:
        """Look again and again; WaitedInVain when it takes longer than that."""
        deadline_s = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > deadline_s:
                raise WaitedInVain(f"waited {timeout_s:g} s in vain for {what}")
            self._pause.wait(_LOOK_AGAIN_S)

    def wait_ready(self, *, timeout_s: float = WAIT_WITHIN_S) -> None:
        """Until every broker runs, and says that all brokers are unfenced."""
        self._wait_formed(self._running, timeout_s)

    def wait_unfenced(
        self, broker_ids: Iterable[int] | None = None, *, timeout_s: float = WAIT_WITHIN_S
    ) -> None:
        """Until exactly these brokers may lead; all, if none are named."""
        wanted = frozenset(self.broker_ids if broker_ids is None else broker_ids)
        seen: list[frozenset[int]] = [frozenset()]

        def is_so() -> bool:
            seen[0] = self.unfenced()
            return seen[0] == wanted

        self._wait(is_so, lambda: f"brokers {_ids(wanted)}: it is {_ids(seen[0])}", timeout_s)

    def wait_leader(
        self,
        topic: str,
        partition: int = 0,
        leader: int | Literal["anyone"] | None = "anyone",
        *,
        timeout_s: float = WAIT_WITHIN_S,
    ) -> int | None:
        """Until this broker leads, or anyone that runs; None: until nobody does. Says who it is."""
        seen: list[int | None] = [None]

        def is_so() -> bool:
            told = self._look(topic, partition)
            seen[0] = None if told is None else told.leader_id
            if leader == "anyone":
                return seen[0] is not None and self.is_running(seen[0])
            return told is not None and seen[0] == leader

        name = f"{topic}-{partition}"
        self._wait(is_so, lambda: f"leader {leader} of {name}: it is {seen[0]}", timeout_s)
        return seen[0]

    def wait_isr(
        self,
        topic: str,
        partition: int = 0,
        isr: Iterable[int] | None = None,
        *,
        timeout_s: float = WAIT_WITHIN_S,
    ) -> None:
        """Until exactly these are in sync; without names, all replicas."""
        seen: list[frozenset[int] | None] = [None]

        def is_so() -> bool:
            told = self._look(topic, partition)
            seen[0] = None if told is None else frozenset(told.isr)
            return told is not None and seen[0] == frozenset(told.replicas if isr is None else isr)

        wanted = "all replicas" if isr is None else _ids(isr)
        name = f"{topic}-{partition}"
        self._wait(
            is_so, lambda: f"{wanted} in sync for {name}: it is {_ids(seen[0] or ())}", timeout_s
        )

    # Inside.

    @property
    def observer(self) -> Observer:
        """For questions of one's own to several nodes at once."""
        from tidelog.cluster.observing import Observer  # after the brokers have been started

        with self._lock:
            if self._observer is None:
                self._observer = Observer(self._running.plan)
            return self._observer

    @property
    def _running(self) -> Launcher:
        if self._launcher is None:
            raise ClusterUsageError("the cluster has not been started")
        return self._launcher

    def _adopt(self, directory: Directory, plan: ClusterPlan) -> None:
        self._plan = plan
        self._launcher = Launcher(directory, plan)

    def _start(self, launcher: Launcher, *, detached: bool, timeout_s: float) -> None:
        directory = launcher.directory
        self._plan = launcher.plan = self._settle_plan(directory)
        running = launcher.running()
        if running:
            raise ClusterError(
                f"the cluster in {directory.root} is running already (node {_ids(running)})"
            )
        directory.write_plan(launcher.plan)
        if not detached:
            launcher.hold_lifeline()
        launcher.start(launcher.plan.by_id)
        self._launcher = launcher
        self._wait_formed(launcher, timeout_s)

    def _settle_plan(self, directory: Directory) -> ClusterPlan:
        """What was planned the first time, or what is wanted, with ports."""
        wanted = self._wanted
        ports = [node.port for node in wanted.nodes]
        if self._port:
            ports = [self._port + index for index in range(len(ports))]
        elif not all(ports):
            ports = free_ports(len(ports))
        nodes = zip(wanted.nodes, ports, strict=True)
        return replace(wanted, nodes=tuple(replace(node, port=port) for node, port in nodes))

    def _wait_formed(self, launcher: Launcher, timeout_s: float) -> None:
        from tidelog.cluster.observing import unfenced

        brokers = frozenset(launcher.plan.broker_ids)
        known: dict[int, frozenset[int]] = {}

        def is_formed() -> bool:
            launcher.check_alive(launcher.plan.by_id)
            told = self.observer.clusters(brokers, timeout_s=_ROUND_S)
            known.clear()
            known.update((node_id, unfenced(each)) for node_id, each in told.items())
            return all(known.get(each) == brokers for each in brokers)

        def late() -> str:
            lost = sorted(each for each in brokers if known.get(each) != brokers)
            logs = ", ".join(str(launcher.directory.log(each)) for each in lost)
            return f"brokers {_ids(lost)} to know all others (logs: {logs})"

        self._wait(is_formed, late, timeout_s)

    def _wait(
        self, condition: Callable[[], bool], what: Callable[[], str], timeout_s: float
    ) -> None:
        """As `wait_until`, with words that are chosen at the end."""
        try:
            self.wait_until(condition, "", timeout_s=timeout_s)
        except WaitedInVain:
            raise WaitedInVain(f"waited {timeout_s:g} s in vain for {what()}") from None

    def _look(self, topic: str, partition: int) -> PartitionDescription | None:
        from tidelog.cluster.observing import partition_of

        return partition_of(self.observer.topic(self._running.responsive(), topic), partition)

    def _partition(self, topic: str, partition: int) -> PartitionDescription:
        """A partition that must be there."""
        deadline_s = time.monotonic() + ANSWER_WITHIN_S
        while True:
            told = self.observer.topic(self._running.responsive(), topic)
            if told is not None and partition in told.partitions:
                return told.partitions[partition]
            if told is not None and time.monotonic() > deadline_s - ANSWER_WITHIN_S / 2:
                raise ClusterError(f"there is no partition {topic}-{partition}")
            if time.monotonic() > deadline_s:
                raise ClusterError(f"no node answers who could tell of {topic}-{partition}")
            self._pause.wait(_LOOK_AGAIN_S)

    def _node(self, node_id: int) -> Node:
        node = self._running.plan.by_id[node_id]
        process = self._running.process(node_id)
        return Node(
            id=node_id,
            roles=node.roles,
            rack=node.rack,
            address=node.address,
            pid=None if process is None else process.pid,
            log_path=self._running.directory.log(node_id),
            data_path=self._running.directory.data(node_id),
        )

    def _known(self, node_id: int) -> int:
        if node_id not in self._running.plan.by_id:
            raise ClusterUsageError(f"there is no node {node_id}; one of {_ids(self.node_ids)}")
        return node_id

    def _must_run(self, node_ids: Iterable[int]) -> None:
        for each in node_ids:
            if self._running.process(self._known(each)) is None:
                raise ClusterError(f"node {each} does not run")

    def _processes(self, node_ids: Iterable[int]) -> list[processes.Process]:
        found = [self._running.process(each) for each in node_ids]
        return [each for each in found if each is not None]

    def _make_data(self) -> Path:
        if self._given_data is not None:
            return self._given_data
        self._made = Path(tempfile.mkdtemp(prefix="tidelog-"))
        return self._made

    def _remove_data(self) -> None:
        if self._is_temporary and not self._keeps:
            shutil.rmtree(self._made, ignore_errors=True)


def _ids(node_ids: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(node_ids))) or "nobody"
