"""A cluster of real broker processes on this machine, and everything that can be done to it.

    with tidelog.Cluster(brokers=4, racks=["a", "b"]) as cluster:
        producer = SomeKafkaClient({"bootstrap.servers": cluster.bootstrap_servers})
        cluster.kill(cluster.leader("orders", 0))
        cluster.wait_isr("orders", 0, {2, 3})

When the block is entered every broker is registered, unfenced and known to all others. When it is
left nothing runs any more; if the program itself is killed, the brokers end as well. What can be
asked and waited for is in looking.py, the faults are in breaking.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tidelog.cluster import processes
from tidelog.cluster.breaking import START_WITHIN_S, Breaking
from tidelog.cluster.directory import Directory
from tidelog.cluster.errors import ClusterError
from tidelog.cluster.launching import STOP_WITHIN_S, Launcher
from tidelog.cluster.layout import ClusterPlan, NodePlan, Setting
from tidelog.cluster.members import ids
from tidelog.cluster.planning import Wish

PROGRAM = "program"
UP = "up"
"""The kinds of launchers that stay: a program of somebody's, and `tidelog up`."""


class Cluster(Breaking):
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
        """Nothing is started yet. What is not said is as it was in `data`, or by default:

        Three brokers without racks, of which all vote (see layout.py). `controllers` asks for so
        many nodes that only vote, beside brokers that do not; `nodes` says it all by hand. The
        profile is `tidelog` (see profiles.py). `data` is a directory that outlives the cluster;
        without it everything is in a temporary one, which is removed at the end unless `keep`.
        With `port` the nodes listen there and on the following ports; 0 takes free ones.
        `settings` have Kafka's names; `settings_of` are those of single nodes, by id. Without
        `faults` there are no fault gates, and only processes can be disturbed.
        """
        super().__init__()
        self._wish = Wish(
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
        self._wish.check()
        self._keeps = keep or data is not None
        self._given_data = None if data is None else Path(data)
        self._made_data: Path | None = None
        self._is_new = False

    @classmethod
    def attach(cls, data: str | Path) -> Cluster:
        """A cluster that somebody else has started, or that is down, by its data directory."""
        found = cls(data=data)
        directory = Directory(Path(data))
        found._launcher = Launcher(directory, directory.read_plan())
        return found

    # Beginning and end.

    def start(
        self, *, detached: bool = False, kind: str = PROGRAM, timeout_s: float = START_WITHIN_S
    ) -> None:
        """Start every node and wait until all brokers know each other.

        A detached cluster goes on when this process ends. If anything goes wrong nothing is left
        running.
        """
        self.launch(kind=None if detached else kind)
        try:
            self.wait_ready(timeout_s=timeout_s)
        except BaseException:
            self.give_up()
            raise
        if detached:
            self.launcher.let_go()

    def launch(self, *, kind: str | None) -> None:
        """Start the processes only; without a kind of launcher they outlive this process."""
        directory = Directory(self._make_data())
        try:
            directory.make()
            launcher = Launcher(directory, _NOBODY)
            launcher.claim()
        except BaseException:
            self._remove_data()
            raise
        try:
            self._is_new = not directory.has_plan
            launcher.plan = self._wish.settle(None if self._is_new else directory.read_plan())
            _refuse_running(launcher)
        except BaseException:
            launcher.let_go()
            self._remove_data()
            raise
        self._launcher = launcher
        try:
            directory.write_plan(launcher.plan)
            self.book.clear()
            self.gates.forget(self.node_ids)
            if kind is not None:
                launcher.hold_lifeline(kind)
            launcher.start(launcher.plan.by_id)
        except BaseException:
            self.give_up()
            raise

    def give_up(self) -> None:
        """After a start that did not succeed: nothing is left running.

        Of a cluster that never was nothing stays but its logs, so that another may be planned.
        """
        self._close_observer()
        self.launcher.kill(self.node_ids)
        if self._is_new:
            self.launcher.forget_plan()
        self.launcher.let_go()
        self._launcher = None
        self._remove_data()

    def close(self) -> None:
        """Stop every node; without lasting data there is nothing to stop gently."""
        for timer in self._timers:
            timer.cancel()
        with self._lock:
            if self._launcher is None:
                return
            self._close_observer()  # Ctrl-C may have come while it was being used
            if self._keeps:
                self.stop_all()
            else:
                self._launcher.kill(self.node_ids)
            self._close_observer()
            self.book.clear()
            self._launcher.clean_up()
            self._launcher.let_go()
            self._launcher = None
            self._remove_data()

    def shut_down(self, *, kills: bool = False) -> None:
        """End all of it, whoever started it; its data stays. A `tidelog up` ends as well."""
        launcher = self.launcher
        if kills:
            launcher.kill(self.node_ids)
        holder = launcher.launcher
        if holder is not None and launcher.launcher_kind == UP:
            holder.signal(processes.TERMINATE)
            holder.ended_within(STOP_WITHIN_S)
        self.stop_all()
        self._close_observer()
        self.book.clear()
        launcher.clean_up()

    def stop_all(self) -> None:
        """SIGTERM, with the active controller last: it lets the others go without a wait.

        Without a controller a broker that wants to leave waits a second for one.
        """
        launcher = self.launcher
        running = launcher.running()
        told = self.observer.quorum(launcher.responsive(), timeout_s=1.0) if running else None
        controller = None if told is None else told.leader_id
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
        if error is not None and self._launcher is not None:
            error.add_note(self.last_log_lines())
        self.close()

    # Inside.

    def _close_observer(self) -> None:
        if self._observer is not None:
            self._observer.close()
            self._observer = None

    def _make_data(self) -> Path:
        if self._given_data is not None:
            return self._given_data
        import tempfile

        self._made_data = Path(tempfile.mkdtemp(prefix="tidelog-"))
        return self._made_data

    def _remove_data(self) -> None:
        if self._made_data is not None and not self._keeps:
            import shutil

            shutil.rmtree(self._made_data, ignore_errors=True)
            self._made_data = None


_NOBODY = ClusterPlan(cluster_id="", nodes=(), profile="")


def _refuse_running(launcher: Launcher) -> None:
    running = launcher.running()
    if running:
        raise ClusterError(
            f"the cluster in {launcher.directory.root} is running already (nodes {ids(running)})"
        )
