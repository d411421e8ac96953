"""A process on a host: it can be killed, paused, unplugged and started again over what is left.

Each start begins a new life (life.py) of the node over the same platter; what survives from one
life to the next is the platter alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tidelog.worlds.simulator.disk import SimDisk
from tidelog.worlds.simulator.life import Life, NodeFactory, NodeLike
from tidelog.worlds.simulator.network import Network
from tidelog.worlds.simulator.platter import Platter
from tidelog.worlds.simulator.world import World

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


class Process:
    """One broker process on one host with one platter."""

    def __init__(
        self,
        *,
        world: World,
        network: Network,
        name: str,
        make_node: NodeFactory,
        platter: Platter | None = None,
        disk_type: type[SimDisk] = SimDisk,
        sync_us_max: int = 3_000,
        check_every: int = 1,
    ) -> None:
        self.world = world
        self.network = network
        self.name = name
        self.platter = platter or Platter(world.random_for(f"{name}/platter"))
        self.life: Life | None = None
        self.halt_reason: str | None = None
        self.clock_offset_ms = WALL_START_MS
        self.sync_us_max = sync_us_max
        self.check_every = check_every
        self.on_ending: Callable[[str], None] | None = None
        """Told how a life is about to end, while its node can still be looked at."""
        self.on_ticked: Callable[[], None] | None = None
        """Told after each tick of the node: for observers."""
        self.random = world.random_for(f"{name}/process")
        self.runs = 0
        self._platters = 1
        self._has_power = True
        self._make_node = make_node
        self._disk_type = disk_type

    @property
    def is_up(self) -> bool:
        return self.life is not None

    @property
    def node(self) -> NodeLike:
        assert self.life is not None, f"{self.name} is not running"
        return self.life.node

    def start(self) -> None:
        """Run the node over what the platter holds."""
        assert self.life is None, f"{self.name} runs already"
        if not self._has_power:
            self._has_power = True
            self.network.power_back(self.name)
        self.runs += 1
        self.halt_reason = None
        self.emit(Started())
        self.life = Life(self, self._make_node, self._disk_type)
        self.life.begin()

    def kill(self) -> None:
        """kill -9: the kernel lives on, so whatever was appended stays."""
        self._end("killed")

    def lose_power(self) -> None:
        """The plug is pulled: only what is durable is sure to be there afterwards."""
        self._end_life("power lost")
        if self._has_power:
            self._has_power = False
            self.platter.lose_power()
            self.network.power_lost(self.name)
            self.emit(Stopped("power lost"))

    def stop(self) -> None:
        """SIGTERM: the node says goodbye properly, at once or when it has handed over."""
        assert self.life is not None, f"{self.name} is not running"
        self.life.begin_stop()

    def finish_stop(self) -> None:
        """The node is ready, or its time is up."""
        life = self.life
        assert life is not None
        life.finish_stop()
        if self.life is life:
            self._end("stopped")

    def wipe(self) -> None:
        """The disk is replaced by an empty one."""
        assert self.life is None, f"{self.name} uses its disk"
        self._platters += 1
        self.platter = Platter(self.world.random_for(f"{self.name}/platter/{self._platters}"))
        self.emit(Wiped())

    def pause(self) -> None:
        if self.life is not None and not self.life.is_paused:
            self.life.pause()
            self.emit(Paused())

    def wake(self) -> None:
        if self.life is not None and self.life.is_paused:
            self.emit(Woken())
            self.life.wake()

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
        if self._end_life(how):
            self.network.process_died(self.name, has_read_all=how == "stopped")
            self.emit(Stopped(how))

    def _end_life(self, how: str) -> bool:
        if self.life is None:
            return False
        if self.on_ending is not None:
            self.on_ending(how)
        self.life.end()
        self.life = None
        return True
