"""A cluster of real broker processes on this machine, and everything that can be done to it.

    with tidelog.Cluster(brokers=4, racks=["a", "b"]) as cluster:
        producer = SomeKafkaClient({"bootstrap.servers": cluster.bootstrap_servers})
        cluster.kill(cluster.leader("orders", 0))
        cluster.wait_isr("orders", 0, {2, 3})

When the block is entered every broker is registered, unfenced and known to all others. When it is
left nothing runs any more; if the program itself is killed, the brokers end as well.

The verbs stand here; the work is done by three parts: members.py (nodes and processes), queries.py
(what brokers answer, and waiting for it) and fault_injector.py (faults and their undoing).
"""

# Size: one class has every verb that users call, each with its documentation.

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

from tidelog.cluster import processes
from tidelog.cluster.cluster_options import ClusterOptions
from tidelog.cluster.directory import ClusterDirectory
from tidelog.cluster.durations import in_words
from tidelog.cluster.errors import ClusterError, ClusterUsageError
from tidelog.cluster.fault_injector import START_TIMEOUT_S, Fault, FaultInjector
from tidelog.cluster.launcher import STOP_TIMEOUT_S, Launcher
from tidelog.cluster.layout import ClusterPlan, NodePlan, Setting
from tidelog.cluster.members import WAIT_TIMEOUT_S, ClusterNode, Members, id_list, wait_until
from tidelog.cluster.queries import ANYONE, Queries
from tidelog.cluster.rules import RuleFields, isolation, rules_for
from tidelog.cluster.targets import Target, resolve_host
from tidelog.faults.hosts import CLIENTS

if TYPE_CHECKING:
    from tidelog.client.admin.topics import PartitionDescription
    from tidelog.cluster.status import ClusterStatus

PROGRAM = "program"
UP = "up"
"""The kinds of launchers that stay: a Python program, and `tidelog up`."""
STATUS_TIMEOUT_S = 3.0
_LOG_LINES_SHOWN = 8


class Cluster:
    """Made with what is wanted, started by `start` or by entering it, ended by `close`."""

    def __init__(
        self,
        brokers: int | None = None,
        *,
        racks: Sequence[str] | None = None,
        controllers: int | None = None,
        nodes: Sequence[NodePlan] | None = None,
        profile: str | None = None,
        data: str | Path | None = None,
        port: int = 0,
        settings: Mapping[str, Setting] | None = None,
        settings_of: Mapping[int, Mapping[str, Setting]] | None = None,
        faults: bool = True,
        keep: bool = False,
    ) -> None:
        """Nothing is started yet. What is not given is as it was in `data`, or by default:

        Three brokers without racks, of which all vote (see layout.py). `controllers` asks for this
        many nodes that only vote, beside brokers that do not; `nodes` gives every node by hand. The
        profile is `tidelog` (see profiles.py). `data` is a directory that outlives the cluster;
        without it everything is in a temporary one, which is removed at the end unless `keep`.
        With `port` the nodes listen there and on the following ports; 0 takes free ones.
        `settings` have Kafka's names; `settings_of` are those of single nodes, by id. Without
        `faults` there are no fault gates, and only processes can be disturbed.
        """
        self._options = ClusterOptions(
            brokers=brokers,
            racks=racks,
            controllers=controllers,
            nodes=nodes,
            profile=profile,
            port=port,
            settings=settings,
            settings_of=settings_of,
            has_faults=faults,
        )
        self._options.check()
        self._keeps_data = keep or data is not None
        self._given_data = None if data is None else Path(data)
        self._temporary_data: Path | None = None
        self._is_new = False
        self.members = Members()
        self.queries = Queries(self.members)
        self.injector = FaultInjector(self.members, self)

    @classmethod
    def attach(cls, data: str | Path) -> Cluster:
        """A cluster that another program has started, or that is down, by its data directory."""
        found = cls(data=data)
        directory = ClusterDirectory(Path(data))
        found.members.launcher = Launcher(directory, directory.read_plan())
        return found

    # Beginning and end.

    def start(
        self, *, detached: bool = False, kind: str = PROGRAM, timeout_s: float = START_TIMEOUT_S
    ) -> None:
        """Start every node and wait until all brokers know each other.

        A detached cluster goes on when this process ends. If anything goes wrong nothing is left
        running.
        """
        self.launch(kind=None if detached else kind)
        try:
            self.wait_ready(timeout_s=timeout_s)
        except BaseException:
            self.abandon_start()
            raise
        if detached:
            self.launcher.let_go()

    def launch(self, *, kind: str | None) -> None:
        """Start the processes only; without a kind of launcher they outlive this process."""
        directory = ClusterDirectory(self._make_data())
        try:
            directory.make()
            launcher = Launcher(directory, _EMPTY_PLAN)
            launcher.claim()
        except BaseException:
            self._remove_data()
            raise
        try:
            self._is_new = not directory.has_plan
            launcher.plan = self._options.settle(None if self._is_new else directory.read_plan())
            _refuse_running(launcher)
        except BaseException:
            launcher.let_go()
            self._remove_data()
            raise
        self.members.launcher = launcher
        try:
            directory.make_secret()
            directory.write_plan(launcher.plan)
            self.injector.registry.clear()
            self.injector.gates.forget(self.node_ids)
            if kind is not None:
                launcher.hold_lifeline(kind)
            launcher.start(launcher.plan.by_id)
        except BaseException:
            self.abandon_start()
            raise

    def abandon_start(self) -> None:
        """After a start that did not succeed: nothing is left running.

        Of a cluster that never was only its logs stay, so that another may be planned.
        """
        self.queries.close()
        self.launcher.kill(self.node_ids)
        if self._is_new:
            self.launcher.forget_plan()
        self.launcher.let_go()
        self.members.launcher = None
        self._remove_data()

    def close(self) -> None:
        """Stop every node; without lasting data there is nothing to stop gently."""
        self.injector.cancel_timers()
        with self.members.lock:
            if not self.members.is_started:
                return
            self.queries.close()  # Ctrl-C may have come while it was being used
            if self._keeps_data:
                self.stop_all()
            else:
                self.launcher.kill(self.node_ids)
            self.queries.close()
            self.injector.registry.clear()
            self.launcher.clean_up()
            self.launcher.let_go()
            self.members.launcher = None
            self._remove_data()

    def shut_down(self, *, kills: bool = False) -> None:
        """End all of it, whoever started it; its data stays. A `tidelog up` ends as well."""
        launcher = self.launcher
        if kills:
            launcher.kill(self.node_ids)
        holder = launcher.launcher
        if holder is not None and launcher.launcher_kind == UP:
            holder.signal(processes.TERMINATE)
            holder.ended_within(STOP_TIMEOUT_S)
        self.stop_all()
        self.queries.close()
        self.injector.registry.clear()
        launcher.clean_up()

    def stop_all(self) -> None:
        """SIGTERM, with the active controller last: it lets the others go without a wait.

        Without a controller a broker that wants to leave waits a second for one.
        """
        launcher = self.launcher
        quorum = None
        if launcher.running():
            quorum = self.queries.fanout.quorum(launcher.responsive(), timeout_s=1.0)
        controller = None if quorum is None else quorum.leader_id
        if controller is not None:
            launcher.stop(each for each in self.broker_ids if each != controller)
            launcher.stop(each for each in self.broker_ids if each == controller)
        launcher.stop(self.node_ids)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None and self.members.is_started:
            error.add_note(self.last_log_lines())
        self.close()

    # The nodes.

    @property
    def launcher(self) -> Launcher:
        """Starts and ends the processes."""
        return self.members.launcher

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
        return self.members.node_ids

    @property
    def broker_ids(self) -> tuple[int, ...]:
        return self.members.broker_ids

    @property
    def racks(self) -> dict[str, tuple[int, ...]]:
        """The nodes of each rack."""
        return self.launcher.plan.racks

    @property
    def nodes(self) -> dict[int, ClusterNode]:
        return {each: self.members.node(each) for each in self.node_ids}

    def is_running(self, node_id: int) -> bool:
        return self.members.process(node_id) is not None

    def is_paused(self, node_id: int) -> bool:
        process = self.members.process(node_id)
        return process is not None and process.is_paused

    @property
    def has_majority(self) -> bool:
        """Whether enough voters run for a controller to be elected."""
        voters = [node.id for node in self.launcher.plan.nodes if node.is_controller]
        return 2 * len(set(voters).intersection(self.launcher.responsive())) > len(voters)

    def last_log_lines(self, count: int = _LOG_LINES_SHOWN) -> str:
        """The end of every node's log."""
        return self.members.last_log_lines(count)

    # What the brokers say now.

    def controller(self) -> int | None:
        """The active controller; None: no node knows of one."""
        return self.queries.controller()

    def leader(self, topic: str, partition: int = 0) -> int | None:
        """The leader now; None: there is none."""
        return self.partition(topic, partition).leader_id

    def leader_epoch(self, topic: str, partition: int = 0) -> int | None:
        return self.partition(topic, partition).leader_epoch

    def isr(self, topic: str, partition: int = 0) -> frozenset[int]:
        return frozenset(self.partition(topic, partition).isr)

    def replicas(self, topic: str, partition: int = 0) -> tuple[int, ...]:
        """In the order of preference."""
        return self.partition(topic, partition).replicas

    def followers(self, topic: str, partition: int = 0) -> tuple[int, ...]:
        """Those that hold the partition and do not lead it, in sync or not."""
        found = self.partition(topic, partition)
        return tuple(each for each in found.replicas if each != found.leader_id)

    def partition(self, topic: str, partition: int = 0) -> PartitionDescription:
        """Everything about a partition; ClusterError if there is none, or no node answers."""
        return self.queries.partition(topic, partition)

    def unfenced(self) -> frozenset[int]:
        """The brokers that may lead, as the active controller says, or whoever answers."""
        return self.queries.unfenced()

    def status(self, *, timeout_s: float = STATUS_TIMEOUT_S) -> ClusterStatus:
        """Nodes, partitions and faults in one value; no node is waited for longer than that."""
        from tidelog.cluster.status_snapshot import take_snapshot

        fanout, registry = self.queries.fanout, self.injector.registry
        return take_snapshot(self.launcher, fanout, registry, timeout_s=timeout_s)

    # Waiting; each ends with WaitTimeout when it takes longer than `timeout_s`.

    def wait_ready(
        self,
        *,
        timeout_s: float = WAIT_TIMEOUT_S,
        on_step: Callable[[str], None] | None = None,
    ) -> None:
        """Until every node runs, and every broker says that all brokers are unfenced."""
        self.queries.wait_ready(timeout_s=timeout_s, on_step=on_step)

    def wait_unfenced(
        self, broker_ids: Iterable[int] | None = None, *, timeout_s: float = WAIT_TIMEOUT_S
    ) -> None:
        """Until exactly these brokers may lead; all, if none are named."""
        self.queries.wait_unfenced(broker_ids, timeout_s=timeout_s)

    def wait_leader(
        self,
        topic: str,
        partition: int = 0,
        leader: int | Literal["anyone"] | None = ANYONE,
        *,
        timeout_s: float = WAIT_TIMEOUT_S,
    ) -> int | None:
        """Until this broker leads, or anyone that runs; None: until there is no leader.

        Returns the leader.
        """
        return self.queries.wait_leader(topic, partition, leader, timeout_s=timeout_s)

    def wait_isr(
        self,
        topic: str,
        partition: int = 0,
        isr: Iterable[int] | None = None,
        *,
        timeout_s: float = WAIT_TIMEOUT_S,
    ) -> None:
        """Until exactly these are in sync; without names, all replicas."""
        self.queries.wait_isr(topic, partition, isr, timeout_s=timeout_s)

    def wait_until(
        self,
        condition: Callable[[], bool],
        what: str | Callable[[], str],
        *,
        timeout_s: float = WAIT_TIMEOUT_S,
    ) -> None:
        """Until a condition of your own holds; `what` names it in the WaitTimeout."""
        wait_until(condition, what, timeout_s=timeout_s)

    # Faults. Targets are node ids or words such as `rack:a` and `leader:orders-0` (targets.py);
    # between two ends also `clients`, `client:NAME` and `*`. `for_s` undoes a fault by itself.

    def kill(self, *targets: Target, for_s: float | None = None) -> Fault:
        """kill -9: nothing is handed over, and the page cache survives."""
        return self.injector.end_processes("kill", targets, self.launcher.kill, for_s=for_s)

    def stop(self, *targets: Target, for_s: float | None = None) -> Fault:
        """SIGTERM: what they lead is handed over first."""
        return self.injector.end_processes("stop", targets, self.launcher.stop, for_s=for_s)

    def restart(self, *targets: Target, wait: bool = True) -> tuple[int, ...]:
        """Start those that are down; stop those that run, and start them again.

        Comes back when they listen, which says nothing about the cluster: see `wait_unfenced`.
        """
        return self.injector.restart(targets, wait=wait)

    def pause(self, *targets: Target, for_s: float | None = None) -> Fault:
        """SIGSTOP: they hold their connections and say nothing."""
        return self.injector.pause(targets, for_s=for_s)

    def resume(self, *targets: Target) -> tuple[int, ...]:
        """SIGCONT."""
        return self.injector.resume(targets)

    def isolate(self, *targets: Target, clients: bool = False, for_s: float | None = None) -> Fault:
        """Cut these nodes off from all other nodes, and from clients if asked for."""
        nodes = self.resolve(*targets)
        rules = rules_for("cut", isolation(nodes, self.node_ids, clients=clients))
        others = " and clients" if clients else ""
        text = f"isolated {self.members.names(nodes)} from all other nodes{others}"
        return self.injector.inject("isolate", text, rules, for_s=for_s)

    def cut(
        self, source: Target, target: Target, *, one_way: bool = False, for_s: float | None = None
    ) -> Fault:
        """Nothing that one sends reaches the other, nor back unless it is one way."""
        return self.injector.between("cut", source, target, one_way=one_way, for_s=for_s)

    def delay(
        self,
        source: Target,
        target: Target,
        *,
        ms: int,
        jitter_ms: int = 0,
        one_way: bool = False,
        for_s: float | None = None,
    ) -> Fault:
        """Everything arrives later by `ms`, and up to `jitter_ms` more; in order."""
        if ms < 0 or jitter_ms < 0 or ms + jitter_ms == 0:
            raise ClusterUsageError(f"delay: from 1 ms on, not {ms} ms (jitter {jitter_ms} ms)")
        by = in_words(ms) + (f" to {in_words(ms + jitter_ms)}" if jitter_ms else "")
        return self.injector.between(
            "delay",
            source,
            target,
            words=f" by {by}",
            one_way=one_way,
            for_s=for_s,
            delay_ms=ms,
            jitter_ms=jitter_ms,
        )

    def drop(
        self,
        source: Target,
        target: Target,
        *,
        chance: float,
        one_way: bool = False,
        for_s: float | None = None,
    ) -> Fault:
        """Packets get lost with this chance: as TCP sends again, what follows waits 200 ms."""
        if not 0 < chance <= 1:
            raise ClusterUsageError(f"drop: a chance above 0 and up to 1, not {chance}")
        words = f" {chance:.0%}"
        return self.injector.between(
            "drop", source, target, words=words, one_way=one_way, for_s=for_s, chance=chance
        )

    def hold(
        self, source: Target, target: Target, purpose: str, *, for_s: float | None = None
    ) -> Fault:
        """Withhold what source sends to target on links of one purpose, one way: `replica`
        (follower and leader), `quorum` (voters) or `controller` (broker and controller)."""
        words = f" ({purpose} links)"
        return self.injector.between(
            "hold", source, target, words=words, one_way=True, for_s=for_s, purpose=purpose
        )

    def hold_replica(
        self, broker: Target, topic: str, partition: int = 0, *, for_s: float | None = None
    ) -> Fault:
        """Leaders give this follower nothing of that partition; nothing else is disturbed."""
        nodes = self.resolve(broker)
        self.partition(topic, partition)
        rules: list[RuleFields] = [
            {"what": "hold-replica", "replica": each, "topic": topic, "partition": partition}
            for each in nodes
        ]
        text = f"held back {topic}-{partition} from {self.members.names(nodes)}"
        return self.injector.inject("hold-replica", text, rules, for_s=for_s)

    def error(
        self,
        broker: Target,
        api: str,
        error: str,
        *,
        nth: int = 1,
        times: int = 1,
        source: Target = CLIENTS,
        for_s: float | None = None,
    ) -> Fault:
        """The n-th request of this kind from now on, and `times` in all, is answered with an error
        and not handled. It counts requests of clients; of others with `source`."""
        nodes = self.resolve(broker)
        rules: list[RuleFields] = [
            {"what": "error", "api": api, "error": error, "nth": nth, "times": times}
            | {"from": host, "to": each}
            for host in resolve_host(source, self)
            for each in nodes
        ]
        which = f"request {nth}" if times == 1 else f"requests {nth} to {nth + times - 1}"
        names = self.members.names(nodes)
        text = f"{names}: {which} for {api} from {source} will be answered {error}"
        return self.injector.inject("error", text, rules, for_s=for_s)

    def faults(self) -> list[Fault]:
        """The active faults, whoever made them."""
        return self.injector.active()

    def heal(self, fault: Fault | str | None = None) -> list[Fault]:
        """Undo one fault, or all: links are whole, paused nodes go on, dead ones are started."""
        if isinstance(fault, str):
            return [self.injector.undo(fault, must_exist=True)] if fault else []
        if fault is not None:
            return [self.injector.undo(fault.id)]
        return [self.injector.undo(each.id) for each in self.faults()]

    def resolve(self, *targets: Target) -> tuple[int, ...]:
        """The nodes that these targets mean now."""
        return self.injector.resolve(*targets)

    # Inside.

    def _make_data(self) -> Path:
        if self._given_data is not None:
            return self._given_data
        import tempfile

        self._temporary_data = Path(tempfile.mkdtemp(prefix="tidelog-"))
        return self._temporary_data

    def _remove_data(self) -> None:
        if self._temporary_data is not None and not self._keeps_data:
            import shutil

            shutil.rmtree(self._temporary_data, ignore_errors=True)
            self._temporary_data = None


_EMPTY_PLAN = ClusterPlan(cluster_id="", nodes=(), profile="")


def _refuse_running(launcher: Launcher) -> None:
    running = launcher.running()
    if running:
        raise ClusterError(
            f"the cluster in {launcher.directory.root} is running already "
            f"(nodes {id_list(running)})"
        )
