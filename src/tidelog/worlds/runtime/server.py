"""The server shell: sockets, the timer and sync results become events for one `Node`.

It decides nothing. Everything that is ready in one turn of the loop is one *tick*: its events go to
the node first, then `end_of_tick` once, then each connection that was replied to writes once. The
first event of a tick reads the clock and schedules the end of the tick with `call_soon`; asyncio
and uvloop both run that after the reads that are already waiting and before they sleep again.
"""

from __future__ import annotations

import asyncio
import mmap
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn, Protocol

from tidelog.core.model.limits import PARTIAL_FRAMES_BYTES_MAX
from tidelog.core.model.trace import Trace
from tidelog.core.node.ports import Part
from tidelog.core.storage.disk import File
from tidelog.core.wire.frames import FrameReader, PartialFrameBudget
from tidelog.worlds.runtime.answers import PIECE_BYTES
from tidelog.worlds.runtime.clock import MonotonicClock
from tidelog.worlds.runtime.connection import ReadStop, SocketConnection
from tidelog.worlds.runtime.events import (
    ConnectionClosed,
    ConnectionDropped,
    ConnectionOpened,
    ConnectionRefused,
    SocketTrouble,
)
from tidelog.worlds.runtime.links import Flushed, LinkEvents, OutgoingLinks
from tidelog.worlds.runtime.os_disk import OsDisk

SWEEP_INTERVAL_MS = 1_000
STALLED_MS = 5_000
"""How long a request may stop arriving while others wait for memory before it is dropped."""
STARVED_MS = 30_000
"""Maximum time a request may wait for memory: clients give up after 30 seconds, too."""


class NodeEvents(LinkEvents, Protocol):
    """What the shell tells a node: see core/node/node.py."""

    def on_connection_opened(self, connection: int, peer: str, now_ms: int) -> None: ...
    def on_connection_closed(self, connection: int, now_ms: int) -> None: ...
    def on_frame(self, connection: int, frame: memoryview, now_ms: int) -> None: ...
    def on_synced(self, file: File, size_bytes: int, now_ms: int) -> None: ...
    def on_sync_failed(self, file: File, reason: str, now_ms: int) -> None: ...
    def on_timer(self, now_ms: int) -> None: ...
    def end_of_tick(self, now_ms: int) -> None: ...


class Admission(NamedTuple):
    """How many connections are let in. Refused ones are closed, as Kafka does."""

    connections_max: int
    per_ip_max: int
    per_ip_overrides: Mapping[str, int] = {}

    def refusal(self, peer: str, *, open_in_all: int, open_from_peer: int) -> str | None:
        if open_in_all >= self.connections_max:
            return f"max.connections is {self.connections_max}"
        per_ip_max = self.per_ip_overrides.get(peer, self.per_ip_max)
        if open_from_peer >= per_ip_max:
            return f"max.connections.per.ip is {per_ip_max}"
        return None


class ServerLimits(NamedTuple):
    """What the settings say about connections."""

    request_bytes_max: int
    idle_ms_max: int | None
    admission: Callable[[], Admission]
    """Asked for every new connection: it may change while the broker runs."""
    tick_ms_max: int | None = None
    """Answers of a tick that took longer are not sent: the process was stopped in its midst, and
    others may lead by now (core/node/broker/session_watch.py). None: there is no such limit."""
    partial_frames_bytes_max: int = PARTIAL_FRAMES_BYTES_MAX


class Server:
    """The outbox of a node and the owner of its connections."""

    def __init__(
        self,
        *,
        loop: asyncio.AbstractEventLoop,
        clock: MonotonicClock,
        trace: Trace,
        limits: ServerLimits,
        fail: Callable[[BaseException | str], NoReturn],
    ) -> None:
        """`fail` ends the process: the node broke a promise to itself."""
        self.loop = loop
        self.fail = fail
        loop.set_exception_handler(self._on_loop_error)
        self.request_bytes_max = limits.request_bytes_max
        self.budget = PartialFrameBudget(
            limits.partial_frames_bytes_max,
            request_bytes_max=limits.request_bytes_max,
            new_buffer=_untouched_memory,
        )
        self.piece = memoryview(bytearray(PIECE_BYTES))
        """Shared by all connections while they send slices."""
        self.now_ms = 0
        self.in_tick = False
        self.dirty: list[Flushed] = []
        """Connections and links that have something to send or to close at the end of the tick."""
        self.starved: dict[FrameReader, SocketConnection] = {}
        self.connections: dict[int, SocketConnection] = {}
        self._clock = clock
        self._trace = trace
        self._limits = limits
        self._by_ip: dict[str, int] = {}
        self._next_number = 1
        self._listeners: list[asyncio.Server] = []
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due_ms = 0
        self._disk: OsDisk | None = None
        self._all_closed: asyncio.Event | None = None
        self._links = OutgoingLinks(self, trace=trace, new_buffer=_untouched_memory)
        self.connect = self._links.connect
        self.send = self._links.send
        self.disconnect = self._links.disconnect
        self.on_tick_ended: Callable[[], None] | None = None

    def serve(self, node: NodeEvents, disk: OsDisk | None) -> None:
        """From now on events go to this node."""
        self._node = self._links.events = node
        self._disk = disk
        self.on_frame: Callable[[int, memoryview, int], None] = node.on_frame
        self.loop.call_later(SWEEP_INTERVAL_MS / 1000, self.sweep)

    async def listen(self, listening: socket.socket, *, backlog: int) -> None:
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # connections inherit it
        self._listeners.append(
            await self.loop.create_server(
                lambda: SocketConnection(self), sock=listening, backlog=backlog
            )
        )

    def stop_accepting(self) -> None:
        for listener in self._listeners:
            listener.close()

    def leave_node(self) -> None:
        """Settle the tick that is under way; from then on the node hears nothing more."""
        for connection in self.connections.values():
            connection.stop_reading(ReadStop.CLOSING)
        self.on_tick_ended = None
        self._end_tick()
        self._node = self._links.events = stopped = _StoppedNode()
        self.on_frame = stopped.on_frame

    async def close_connections(self, reason: str, *, within_ms: int) -> None:
        """Flush what can be flushed, then drop them all."""
        self._flush_dirty()
        for connection in list(self.connections.values()):
            connection.close(reason, is_fault=False)
        self._flush_dirty()
        if self.connections:
            self._all_closed = asyncio.Event()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._all_closed.wait(), within_ms / 1000)
        for connection in list(self.connections.values()):
            connection.abort(reason, is_fault=False)
        self._links.drop_all()
        await asyncio.sleep(0)

    # Ticks.

    def begin_tick(self) -> int:
        """The time of the running tick; an event of the outer world calls this first."""
        if not self.in_tick:
            self.in_tick = True
            self.now_ms = self._clock.now_ms()
            self.loop.call_soon(self._end_tick)
        return self.now_ms

    def _end_tick(self) -> None:
        self.in_tick = False
        try:
            self._node.end_of_tick(self.now_ms)
        except Exception as error:
            self.fail(error)
        self._flush_tick()
        if self.starved:
            for reader in self.budget.feed():
                self.starved.pop(reader).allow_reading(ReadStop.STARVED)
        self._links.feed()
        if self.on_tick_ended is not None:
            self.on_tick_ended()

    def _flush_tick(self) -> None:
        """Like `_flush_dirty`, but nothing of a tick in which the process was stopped. The clock is
        read before each connection is written to, so that little time is left to be stopped in."""
        tick_ms_max = self._limits.tick_ms_max
        if tick_ms_max is None:
            self._flush_dirty()
            return
        late_ms = self.now_ms + tick_ms_max
        dirty = self.dirty
        if dirty:
            self.dirty = []
            for each in dirty:
                if isinstance(each, SocketConnection) and self._clock.now_ms() >= late_ms:
                    each.abort("paused before its answers left", is_fault=False)
                else:
                    each.flush()

    def _flush_dirty(self) -> None:
        dirty = self.dirty
        if dirty:
            self.dirty = []
            for each in dirty:
                each.flush()

    # What connections and the disk tell.

    def opened(self, connection: SocketConnection) -> None:
        refusal = self._limits.admission().refusal(
            connection.peer,
            open_in_all=len(self.connections),
            open_from_peer=self._by_ip.get(connection.peer, 0),
        )
        if refusal is not None:
            self._trace.emit(ConnectionRefused(peer=connection.peer, reason=refusal))
            connection.abort(refusal)
            return
        now_ms = self.begin_tick()
        connection.number = self._next_number
        connection.active_ms = now_ms
        self._next_number += 1
        self.connections[connection.number] = connection
        self._by_ip[connection.peer] = self._by_ip.get(connection.peer, 0) + 1
        self._trace.emit(ConnectionOpened(connection=connection.number, peer=connection.peer))
        try:
            self._node.on_connection_opened(connection.number, connection.peer, now_ms)
        except Exception as error:
            self.fail(error)

    def lost(self, connection: SocketConnection) -> None:
        self.starved.pop(connection.reader, None)
        if self.connections.pop(connection.number, None) is None:
            return
        if self._all_closed is not None and not self.connections:
            self._all_closed.set()
        self._by_ip[connection.peer] -= 1
        if not self._by_ip[connection.peer]:
            del self._by_ip[connection.peer]
        kind = ConnectionDropped if connection.is_fault else ConnectionClosed
        reason = connection.close_reason or ""
        self._trace.emit(kind(connection=connection.number, peer=connection.peer, reason=reason))
        try:
            self._node.on_connection_closed(connection.number, self.begin_tick())
        except Exception as error:
            self.fail(error)

    def on_disk_results(self) -> None:
        """The sync threads have news. Runs in the loop's thread."""
        if self._disk is None:
            return
        results = self._disk.collect()
        if not results:
            return
        now_ms = self.begin_tick()
        try:
            for result in results:
                if result.reason is None:
                    self._node.on_synced(result.file, result.size_bytes, now_ms)
                else:
                    self._node.on_sync_failed(result.file, result.reason, now_ms)
        except Exception as error:
            self.fail(error)

    # What the node wishes (the Outbox port).

    def reply(self, connection: int, parts: Sequence[Part]) -> None:
        known = self.connections.get(connection)
        if known is not None:
            known.reply(parts)

    def close(self, connection: int, reason: str) -> None:
        known = self.connections.get(connection)
        if known is not None:
            known.close(reason, is_fault=False)  # the node has told its trace

    def pause_reading(self, connection: int) -> None:
        known = self.connections.get(connection)
        if known is not None:
            known.stop_reading(ReadStop.NODE)

    def resume_reading(self, connection: int) -> None:
        known = self.connections.get(connection)
        if known is not None:
            known.allow_reading(ReadStop.NODE)

    def hold_reading(self, connection: int) -> None:
        """For a fault gate: beside the node's own wishes."""
        known = self.connections.get(connection)
        if known is not None:
            known.stop_reading(ReadStop.FAULT)

    def allow_reading(self, connection: int) -> None:
        known = self.connections.get(connection)
        if known is not None:
            known.allow_reading(ReadStop.FAULT)

    def arm(self, deadline_ms: int) -> None:
        if self._timer is not None:
            if self._timer_due_ms <= deadline_ms:
                return
            self._timer.cancel()
        self._timer_due_ms = deadline_ms
        delay_ms = max(0, deadline_ms - self._clock.now_ms())
        self._timer = self.loop.call_later(delay_ms / 1000, self._on_timer)

    def halt(self, reason: str) -> None:
        self.fail(reason)

    # Time, and what goes wrong.

    def _on_loop_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """What a callback let escape. Trouble with a socket is told, anything else is fatal."""
        error = context.get("exception")
        if isinstance(error, OSError):
            self._trace.emit(SocketTrouble(reason=f"{context.get('message')}: {error}"))
        else:
            self.fail(error or str(context.get("message")))

    def _on_timer(self) -> None:
        self._timer = None
        now_ms = self.begin_tick()
        if now_ms < self._timer_due_ms:
            self.arm(self._timer_due_ms)  # the loop's clock ran ahead of ours by a fraction
            return
        try:
            self._node.on_timer(now_ms)
        except Exception as error:
            self.fail(error)

    def sweep(self) -> None:
        """Every second: the idle, the stalled, spare memory, and the wall clock's corrections."""
        self.loop.call_later(SWEEP_INTERVAL_MS / 1000, self.sweep)
        self._clock.measure()
        now_ms = self._clock.now_ms()
        idle_ms_max = self._limits.idle_ms_max
        for connection in list(self.connections.values()):
            quiet_ms = now_ms - connection.active_ms
            if idle_ms_max is not None and quiet_ms > idle_ms_max:
                connection.abort(f"idle for {quiet_ms} ms", is_fault=False)
            elif not self.starved:
                continue
            elif quiet_ms > STALLED_MS and connection.is_stalled:
                connection.abort("a request stopped half-way while others waited for memory")
            elif quiet_ms > STARVED_MS and connection.reader.starved:
                connection.abort(f"no memory for a request within {STARVED_MS} ms")
        for budget in (self.budget, self._links.budget):
            if not budget.used_bytes:
                budget.trim()


class _StoppedNode:
    """Takes every event and does nothing: the node has stopped."""

    def _ignore(self, *_: object) -> None:
        return None

    on_connection_opened = on_connection_closed = on_frame = _ignore
    on_link_opened = on_link_closed = on_answer = _ignore
    on_synced = on_sync_failed = on_timer = end_of_tick = _ignore


def _untouched_memory(size_bytes: int) -> memoryview:
    """Pages that the system provides when they are first written to."""
    return memoryview(mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
