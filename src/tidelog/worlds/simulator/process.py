"""A process on a host: it can be killed, paused, unplugged and started again over what is left.

Each start makes a new NodeProcess (node_process.py) over the same DurableStore; nothing else
survives from one run to the next.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tidelog.worlds.simulator.disk import SimDisk
from tidelog.worlds.simulator.durable_store import DurableStore
from tidelog.worlds.simulator.network import Network
from tidelog.worlds.simulator.node_process import NodeFactory, NodeLike, NodeProcess
from tidelog.worlds.simulator.world import SimWorld

WALL_START_MS = 1_700_000_000_000


@dataclass(frozen=True, slots=True)
class Started:
    """A process runs."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """A process ended; how is one of a closed set of words."""

    how: str


@dataclass(frozen=True, slots=True)
class Wiped:
    """All that a process ever wrote is gone."""


@dataclass(frozen=True, slots=True)
class Halted:
    """The node itself asked for its end."""

    reason: str


@dataclass(frozen=True, slots=True)
class Paused:
    """The process stands still; what happens to it queues up."""


@dataclass(frozen=True, slots=True)
class Woken:
    """The process goes on."""


class SimProcess:
    """A broker on one host with one disk, which can be started again and again."""

    def __init__(
        self,
        *,
        world: SimWorld,
        network: Network,
        name: str,
        make_node: NodeFactory,
        store: DurableStore | None = None,
        disk_type: type[SimDisk] = SimDisk,
        sync_us_max: int = 3_000,
        check_every: int = 1,
    ) -> None:
        self.world = world
        self.network = network
        self.name = name
        self.store = store or DurableStore(world.random_for(f"{name}/platter"))
        self.running: NodeProcess | None = None
        self.halt_reason: str | None = None
        self.clock_offset_ms = WALL_START_MS
        self.sync_us_max = sync_us_max
        self.check_every = check_every
        self.on_ending: Callable[[str], None] | None = None
        """Called with how the run is about to end, while its node can still be read."""
        self.on_ticked: Callable[[], None] | None = None
        """Called after each tick of the node: for observers."""
        self.random = world.random_for(f"{name}/process")
        self.runs = 0
        self._stores_made = 1
        self._has_power = True
        self._make_node = make_node
        self._disk_type = disk_type

    @property
    def is_up(self) -> bool:
        return self.running is not None

    @property
    def node(self) -> NodeLike:
        assert self.running is not None, f"{self.name} is not running"
        return self.running.node

    def start(self) -> None:
        """Run the node over what the store holds."""
        assert self.running is None, f"{self.name} runs already"
        if not self._has_power:
            self._has_power = True
            self.network.power_back(self.name)
        self.runs += 1
        self.halt_reason = None
        self.emit(Started())
        self.running = NodeProcess(self, self._make_node, self._disk_type)
        self.running.begin()

    def kill(self) -> None:
        """kill -9: the kernel lives on, so whatever was appended stays."""
        self._end("killed")

    def lose_power(self) -> None:
        """The plug is pulled: only what is durable is sure to be there afterwards."""
        self._end_running("power lost")
        if self._has_power:
            self._has_power = False
            self.store.lose_power()
            self.network.power_lost(self.name)
            self.emit(Stopped("power lost"))

    def stop(self) -> None:
        """SIGTERM: the node shuts down in order, at once or when it has handed over."""
        assert self.running is not None, f"{self.name} is not running"
        self.running.begin_stop()

    def finish_stop(self) -> None:
        """The node is ready, or its time is up."""
        running = self.running
        assert running is not None
        running.finish_stop()
        if self.running is running:
            self._end("stopped")

    def wipe(self) -> None:
        """The disk is replaced by an empty one."""
        assert self.running is None, f"{self.name} uses its disk"
        self._stores_made += 1
        self.store = DurableStore(self.world.random_for(f"{self.name}/platter/{self._stores_made}"))
        self.emit(Wiped())

    def pause(self) -> None:
        if self.running is not None and not self.running.is_paused:
            self.running.pause()
            self.emit(Paused())

    def wake(self) -> None:
        if self.running is not None and self.running.is_paused:
            self.emit(Woken())
            self.running.wake()

    def halted(self, reason: str) -> None:
        """The node asked for its own end."""
        self.halt_reason = reason
        self.emit(Halted(reason))
        self._end("halted")

    def emit(self, event: object) -> None:
        self.world.trace.emit(self.name, event)

    def wall_ms(self, now_ms: int) -> int:
        return now_ms + self.clock_offset_ms

    def _end(self, how: str) -> None:
        if self._end_running(how):
            self.network.process_died(self.name, has_read_all=how == "stopped")
            self.emit(Stopped(how))

    def _end_running(self, how: str) -> bool:
        if self.running is None:
            return False
        if self.on_ending is not None:
            self.on_ending(how)
        self.running.end()
        self.running = None
        return True
