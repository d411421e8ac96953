"""One run of a broker process: a node over the simulated ports, from its start to its end.

It is a host process that also listens: bytes of a connection go through the real frame
reader to the node, and answers leave at the end of the tick. A node that is asked to stop may need
time to hand over what it leads, so the process runs on until it is ready or time is up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Protocol

from tidelog.core.model.trace import Trace
from tidelog.core.node.metadata.node_identity import CannotStart
from tidelog.core.node.ports import Outbox, Part
from tidelog.core.storage.disk import Disk, DiskError, File
from tidelog.core.wire.frames import FrameReader
from tidelog.worlds.simulator.connection import ServerConnection
from tidelog.worlds.simulator.disk import SimDisk, SimFile
from tidelog.worlds.simulator.host_process import HostProcess, Machine
from tidelog.worlds.simulator.network import End
from tidelog.worlds.simulator.world import Scheduled

if TYPE_CHECKING:
    from tidelog.worlds.simulator.process import SimProcess

REQUEST_BYTES_MAX = 4 * 1024 * 1024
SLOW_SEND_CHANCE = 0.1
SLOW_SEND_US_MAX = 20_000
STOP_WITHIN_MS = 5_000
"""A stopping node that is not ready by then is stopped as it is, as a real one is killed."""


class NodeLike(Machine, Protocol):
    """The events that a node takes; core.node.node.Node is one."""

    def start(self, now_ms: int) -> None: ...
    def on_connection_opened(self, connection: int, peer: str, now_ms: int) -> None: ...
    def on_connection_closed(self, connection: int, now_ms: int) -> None: ...
    def on_frame(self, connection: int, frame: memoryview, now_ms: int) -> None: ...
    def on_synced(self, file: File, size_bytes: int, now_ms: int) -> None: ...
    def on_sync_failed(self, file: File, reason: str, now_ms: int) -> None: ...
    def begin_stop(self, now_ms: int) -> None: ...
    @property
    def is_ready_to_stop(self) -> bool: ...
    def stop(self, now_ms: int) -> None: ...
    def check(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Everything a node may hold on to."""

    disk: Disk
    outbox: Outbox
    trace: Trace
    random: Random
    wall_ms: Callable[[int], int]


NodeFactory = Callable[[Ports], NodeLike]


@dataclass(frozen=True, slots=True)
class ConnectionClosedByNode:
    """The process closed a connection of its own will."""

    connection: int
    reason: str


class NodeProcess(HostProcess):
    """From start to end, never reused. It is also the node's Outbox."""

    def __init__(
        self, process: SimProcess, make_node: NodeFactory, disk_type: type[SimDisk]
    ) -> None:
        super().__init__(
            world=process.world, network=process.network, host=process.name, random=process.random
        )
        self._process = process
        self._connections: dict[int, ServerConnection] = {}
        self._replying: list[ServerConnection] = []
        self._next_connection = 1
        self._halt_reason: str | None = None
        self._stop_limit: Scheduled | None = None
        self._ticks = 0
        self.disk = disk_type(
            world=process.world,
            store=process.store,
            name=process.name,
            random=process.world.random_for(f"{process.name}/sync/{process.runs}"),
            on_synced=self._on_synced,
            on_sync_failed=self._on_sync_failed,
            sync_us_max=process.sync_us_max,
        )
        self.machine = self.node = make_node(
            Ports(
                disk=self.disk,
                outbox=self,
                trace=process.world.trace.of(process.name),
                random=process.world.random_for(f"{process.name}/node/{process.runs}"),
                wall_ms=process.wall_ms,
            )
        )

    def begin(self) -> None:
        self.network.listen(self.host, self._accept)
        try:
            self._run_event(lambda: self.node.start(self.world.now_ms))
        except (DiskError, CannotStart) as error:
            self._process.halted(f"cannot start: {error}")

    def begin_stop(self) -> None:
        """The node may hand over first; the process ends when it is ready."""
        if self.is_paused:
            self.wake()
        if self._stop_limit is None and not self.is_over:
            self._stop_limit = self.world.after(STOP_WITHIN_MS * 1_000, self._process.finish_stop)
            self._run_event(lambda: self.node.begin_stop(self.world.now_ms))
            self._stop_if_ready()

    def finish_stop(self) -> None:
        """Ready, or out of time: the last words, and what is still to be sent."""
        self._forget_stop_limit()
        self.node.stop(self.world.now_ms)
        self.flush()

    def end(self) -> None:
        super().end()
        self.disk.detach()
        self._forget_stop_limit()

    # The outbox: what a listening process has besides links.

    def reply(self, connection: int, parts: Sequence[Part]) -> None:
        known = self._connections.get(connection)
        if known is not None:
            if not known.replies:
                self._replying.append(known)
            known.replies.append(parts)

    def close(self, connection: int, reason: str) -> None:
        known = self._connections.get(connection)
        if known is not None:
            self._process.emit(ConnectionClosedByNode(connection, reason))
            known.close_after_replies()
            self.world.after(0, lambda: self.deliver(lambda: self.connection_closed(connection)))

    def pause_reading(self, connection: int) -> None:
        if connection in self._connections:
            self._connections[connection].is_reading = False

    def resume_reading(self, connection: int) -> None:
        known = self._connections.get(connection)
        if known is not None and not known.is_reading:
            known.is_reading = True
            self.world.after(0, lambda: self.deliver(known.read_on))

    def halt(self, reason: str) -> None:
        if self._halt_reason is None:
            self._halt_reason = reason

    # Events of the process, each as one step.

    def flush(self) -> None:
        super().flush()
        if self.is_over:
            return
        self._ticks += 1
        if self._ticks % self._process.check_every == 0:
            self.node.check()
        if self._process.on_ticked is not None:
            self._process.on_ticked()
        if self._stop_limit is not None:
            self._stop_if_ready()

    def deliver_frame(self, connection: int, frame: memoryview) -> None:
        self.node.on_frame(connection, frame, self.world.now_ms)

    def connection_closed(self, number: int) -> None:
        if self._connections.pop(number, None) is not None:
            self.node.on_connection_closed(number, self.world.now_ms)

    def connection_failed(self, number: int, reason: str) -> None:
        """Drop a connection and inform the node."""
        known = self._connections.get(number)
        if known is not None:
            self._process.emit(ConnectionClosedByNode(number, reason))
            self.connection_closed(number)
            known.close_after_replies()

    def slow_send_us(self) -> int:
        if self.random.random() < SLOW_SEND_CHANCE:
            return self.random.randint(0, SLOW_SEND_US_MAX)
        return 0

    def after(self, delay_us: int, action: Callable[[], None]) -> None:
        self.world.after(delay_us, action)

    # Inside.

    def _send_all(self) -> None:
        super()._send_all()
        replying, self._replying = self._replying, []
        for known in replying:
            known.send_replies()

    def _is_ending(self) -> bool:
        if self._halt_reason is not None and not self.is_over:
            self._process.halted(self._halt_reason)
        return self.is_over

    def _forget_stop_limit(self) -> None:
        if self._stop_limit is not None:
            self._stop_limit.cancel()
            self._stop_limit = None

    def _stop_if_ready(self) -> None:
        if not self.is_over and self.node.is_ready_to_stop:
            self._process.finish_stop()

    def _on_synced(self, file: SimFile, size_bytes: int) -> None:
        self.deliver(lambda: self.node.on_synced(file, size_bytes, self.world.now_ms))

    def _on_sync_failed(self, file: SimFile, reason: str) -> None:
        self.deliver(lambda: self.node.on_sync_failed(file, reason, self.world.now_ms))

    def _accept(self, end: End) -> ServerConnection:
        number = self._next_connection
        self._next_connection += 1
        known = ServerConnection(self, number, end, FrameReader(REQUEST_BYTES_MAX, self.budget))
        self._connections[number] = known
        peer = end.remote
        self.deliver(lambda: self.node.on_connection_opened(number, peer, self.world.now_ms))
        return known
