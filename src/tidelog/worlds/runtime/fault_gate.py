"""The fault gate: it stands between a node and its server and lets faults happen to real sockets.

For the node it is the world (its outbox), for the server it is the node (its events). What no rule
concerns passes straight through. Everything else goes through two streams per connection
(fault_stream.py), which decide; the gate carries out what they let go, and wakes them by a timer.

Between nodes only the one who dialled acts: it knows the address and the purpose, and holds its own
requests or the answers that it receives. What the acceptor has to hide is the end of a connection:
that somebody hung up does not get through a cut either. Clients are known by their client id, and
faults between them and this node happen here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NoReturn, Protocol

from tidelog.core.model.limits import MIB, UNANSWERED_REQUESTS_MAX
from tidelog.core.model.trace import Trace
from tidelog.core.node.ports import Outbox, Part
from tidelog.core.storage.disk import File, FileSlice
from tidelog.core.wire.headers import RequestHeader, read_request_header
from tidelog.core.wire.malformed import MalformedMessage
from tidelog.worlds.runtime.clock import Clock
from tidelog.worlds.runtime.events import FaultsChanged
from tidelog.worlds.runtime.fault_rules import Rule
from tidelog.worlds.runtime.fault_stream import Kind, Stream
from tidelog.worlds.runtime.fault_table import FaultTable, Way
from tidelog.worlds.runtime.links import CONNECT_TIMEOUT_MS
from tidelog.worlds.runtime.server import NodeEvents

HELD_BYTES_MAX = 4 * MIB
"""Of one connection and direction: with that much held nothing more is read from the client."""
HELD_ANSWERS_MAX = UNANSWERED_REQUESTS_MAX // 2
ORPHANED_BYTES_MAX = 64 * MIB
"""Requests held of connections that have ended: a kernel would give up sending them some time."""

Act = Callable[[int], None]


class GatedServer(Outbox, Protocol):
    """The server as the gate uses it."""

    loop: asyncio.AbstractEventLoop
    fail: Callable[[BaseException | str], NoReturn]

    def begin_tick(self) -> int: ...
    def hold_reading(self, connection: int) -> None: ...
    def allow_reading(self, connection: int) -> None: ...


class _Link:
    """A connection that this node opened."""

    __slots__ = ("host", "incoming", "is_dialling", "number", "outgoing", "port", "purpose")

    def __init__(self, table: FaultTable, number: int, host: str, port: int, purpose: str) -> None:
        self.number = number
        self.host = host
        self.port = port
        self.purpose = purpose
        self.is_dialling = False
        way = Way(table.node_id, table.node_at(host, port), purpose)
        self.outgoing: Stream[Act] = Stream(table, way)
        self.incoming: Stream[Act] = Stream(table, way.back)

    def find_way(self, table: FaultTable) -> None:
        self.outgoing.way = Way(table.node_id, table.node_at(self.host, self.port), self.purpose)
        self.incoming.way = self.outgoing.way.back


class _Peer:
    """A connection that somebody opened to this node; a stranger until the first request."""

    __slots__ = ("client_id", "incoming", "is_known", "is_node", "is_over", "number", "outgoing")

    def __init__(self, table: FaultTable, number: int) -> None:
        self.number = number
        self.client_id: str | None = None
        self.is_known = False
        self.is_node = False
        self.is_over = False
        """The real connection has ended, whether or not the node may know it."""
        self.incoming: Stream[Act] = Stream(table, Way(None, table.node_id))
        self.outgoing: Stream[Act] = Stream(table, Way(table.node_id, None))

    def find_way(self, table: FaultTable) -> None:
        if self.is_known:
            host = table.host_of(self.client_id)
            self.is_node = isinstance(host, int)
            self.incoming.way = Way(host, table.node_id)
            self.outgoing.way = self.incoming.way.back


class FaultGate:
    """An Outbox for the node, NodeEvents for the server."""

    def __init__(
        self, *, server: GatedServer, table: FaultTable, clock: Clock, trace: Trace
    ) -> None:
        self.table = table
        self._server = server
        self._clock = clock
        self._trace = trace
        self._links: dict[int, _Link] = {}
        self._peers: dict[int, _Peer] = {}
        self._opening: dict[int, int] = {}
        """Links that the node waits for, with the time when they are unreachable."""
        self._waiting: dict[Stream[Act], None] = {}
        self._orphaned_bytes = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due_ms = 0
        self._is_stopped = False
        self.on_expired: Callable[[], None] = lambda: None
        """Told when rules ended by themselves."""
        self.arm = server.arm
        self.halt = server.halt

    def serve(self, node: NodeEvents) -> None:
        """From now on events go to this node."""
        self.node = node
        self.on_synced: Callable[[File, int, int], None] = node.on_synced
        self.on_sync_failed: Callable[[File, str, int], None] = node.on_sync_failed
        self.on_timer: Callable[[int], None] = node.on_timer
        self.end_of_tick: Callable[[int], None] = node.end_of_tick

    def stop(self) -> None:
        """The node has stopped: nothing is told or sent any more."""
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
        self._waiting.clear()

    @property
    def held_frames(self) -> int:
        return sum(stream.held_frames for stream in self._waiting)

    # The table.

    def load(
        self, rules: tuple[Rule, ...], peers: Mapping[str, int], counts: Mapping[str, int]
    ) -> None:
        """Before anything else: what this broker had when it was last there."""
        self.table.replace(rules, peers, counts)
        self.table.expire(self._wall_ms())
        self._on_table_changed((), "loaded")

    def replace(self, rules: tuple[Rule, ...], peers: Mapping[str, int]) -> None:
        before = self.table.rules
        self.table.replace(rules, peers)
        self._on_table_changed(before, "replaced")

    def expire(self) -> None:
        before = self.table.rules
        if self.table.expire(self._wall_ms()):
            self._on_table_changed(before, "expired")
            self.on_expired()

    def _on_table_changed(self, before: tuple[Rule, ...], because: str) -> None:
        after = self.table.rules
        self._trace.emit(
            FaultsChanged(
                because=because,
                added=tuple(str(rule) for rule in after if rule not in before),
                removed=tuple(str(rule) for rule in before if rule not in after),
                rules=len(after),
            )
        )
        now_ms = self._server.begin_tick()
        for link in self._links.values():
            link.find_way(self.table)
            self._interrupt_dialling(link, now_ms)
        for peer in self._peers.values():
            peer.find_way(self.table)
        for stream in self._waiting:
            stream.on_table_changed()
        self._release(now_ms)

    def _interrupt_dialling(self, link: _Link, now_ms: int) -> None:
        """A cut: the answer to the connect must not come through. It is asked again when healed."""
        table, way = self.table, link.outgoing.way
        if link.is_dialling and (table.is_cut(way) or table.is_cut(way.back)):
            link.is_dialling = False
            self._server.disconnect(link.number)
            link.outgoing.put_first(partial(self._dial, link), Kind.CONNECT, now_ms)
            self._waiting[link.outgoing] = None

    # What the node wishes: links.

    def connect(self, link: int, host: str, port: int, purpose: str) -> None:
        gated = self._links[link] = _Link(self.table, link, host, port, purpose)
        now_ms = self._server.begin_tick()
        self._opening[link] = now_ms + CONNECT_TIMEOUT_MS
        self._pass(gated.outgoing, partial(self._dial, gated), Kind.CONNECT, now_ms)

    def _dial(self, link: _Link, now_ms: int) -> None:
        link.is_dialling = True
        self._server.connect(link.number, link.host, link.port, link.purpose)

    def send(self, link: int, parts: Sequence[bytes | bytearray | memoryview]) -> None:
        gated = self._links.get(link)
        if gated is None:
            return
        if gated.outgoing.passes(Kind.FRAME):
            self._server.send(link, parts)
        else:
            self._put(gated.outgoing, lambda _: self._server.send(link, parts), Kind.FRAME)

    def disconnect(self, link: int) -> None:
        self._forget_link(link)
        self._server.disconnect(link)

    def _forget_link(self, link: int) -> None:
        gated = self._links.pop(link, None)
        self._opening.pop(link, None)
        if gated is not None:
            for stream in (gated.outgoing, gated.incoming):
                stream.clear()
                self._waiting.pop(stream, None)

    # What the server tells: links.

    def on_link_opened(self, link: int, now_ms: int) -> None:
        gated = self._links.get(link)
        if gated is not None:
            gated.is_dialling = False
            self._pass(gated.incoming, partial(self._tell_opened, link), Kind.OPENED, now_ms)

    def _tell_opened(self, link: int, now_ms: int) -> None:
        self._opening.pop(link, None)
        self.node.on_link_opened(link, now_ms)

    def on_link_closed(self, link: int, reason: str, now_ms: int) -> None:
        gated = self._links.get(link)
        if gated is not None:
            gated.is_dialling = False
            gated.outgoing.clear()
            tell = partial(self._tell_link_closed, link, reason)
            self._pass(gated.incoming, tell, Kind.CLOSED, now_ms)

    def _tell_link_closed(self, link: int, reason: str, now_ms: int) -> None:
        self._forget_link(link)
        self.node.on_link_closed(link, reason, now_ms)

    def on_answer(self, link: int, frame: memoryview, now_ms: int) -> None:
        gated = self._links.get(link)
        if gated is None:
            return
        if gated.incoming.passes(Kind.FRAME):
            self.node.on_answer(link, frame, now_ms)
            return
        kept = memoryview(bytearray(frame))
        self._put(
            gated.incoming,
            lambda now_ms: self.node.on_answer(link, kept, now_ms),
            Kind.FRAME,
            size_bytes=len(kept),
        )

    # What the server tells: those who called us.

    def on_connection_opened(self, connection: int, peer: str, now_ms: int) -> None:
        self._peers[connection] = _Peer(self.table, connection)
        self.node.on_connection_opened(connection, peer, now_ms)

    def on_frame(self, connection: int, frame: memoryview, now_ms: int) -> None:
        peer = self._peers[connection]
        header = self._identify(peer, frame)
        if peer.is_node or peer.incoming.passes(Kind.FRAME):
            self._to_node(peer, frame, header, now_ms)
            return
        kept = memoryview(bytearray(frame))
        self._put(
            peer.incoming,
            lambda now_ms: self._to_node(peer, kept, header, now_ms),
            Kind.FRAME,
            size_bytes=len(kept),
        )
        self._brake(peer)

    def _identify(self, peer: _Peer, frame: memoryview) -> RequestHeader | None:
        """Who it is, by the header of its request; what is malformed is the node's to refuse."""
        try:
            header = read_request_header(frame)
        except MalformedMessage:
            return None
        if not peer.is_known or header.client_id != peer.client_id:
            peer.client_id = header.client_id
            peer.is_known = True
            peer.find_way(self.table)
        return header

    def _to_node(
        self, peer: _Peer, frame: memoryview, header: RequestHeader | None, now_ms: int
    ) -> None:
        self.node.on_frame(peer.number, frame, now_ms)

    def on_connection_closed(self, connection: int, now_ms: int) -> None:
        peer = self._peers[connection]
        peer.is_over = True
        peer.incoming.is_stopped = False  # nobody is left to be braked
        peer.outgoing.clear()
        self._waiting.pop(peer.outgoing, None)
        if not peer.incoming.passes(Kind.CLOSED) and peer.incoming.held_bytes:
            if self._orphaned_bytes + peer.incoming.held_bytes > ORPHANED_BYTES_MAX:
                peer.incoming.clear()
            self._orphaned_bytes += peer.incoming.held_bytes
        orphaned_bytes = peer.incoming.held_bytes
        tell = partial(self._tell_connection_closed, connection, orphaned_bytes)
        self._pass(peer.incoming, tell, Kind.CLOSED, now_ms)

    def _tell_connection_closed(self, connection: int, orphaned_bytes: int, now_ms: int) -> None:
        self._orphaned_bytes -= orphaned_bytes
        peer = self._peers.pop(connection)
        self._waiting.pop(peer.incoming, None)
        self.node.on_connection_closed(connection, now_ms)

    # What the node wishes: answers.

    def reply(self, connection: int, parts: Sequence[Part]) -> None:
        peer = self._peers.get(connection)
        if peer is None or peer.is_over:
            return
        if peer.is_node or peer.outgoing.passes(Kind.FRAME):
            self._server.reply(connection, parts)
            return
        self._put(
            peer.outgoing,
            lambda now_ms: self._server.reply(connection, parts),
            Kind.FRAME,
            size_bytes=sum(_size_bytes(part) for part in parts),
        )
        self._brake(peer)

    def close(self, connection: int, reason: str) -> None:
        """After what was replied before; and what is cut hears nothing of it either."""
        peer = self._peers.get(connection)
        if peer is None or peer.is_over:
            return
        peer.incoming.clear()
        if peer.is_node:
            self._server.close(connection, reason)
        else:
            end = partial(self._close_now, connection, reason)
            self._pass(peer.outgoing, end, Kind.CLOSED, self._server.begin_tick())

    def _close_now(self, connection: int, reason: str, now_ms: int) -> None:
        self._server.close(connection, reason)

    def pause_reading(self, connection: int) -> None:
        peer = self._peers.get(connection)
        if peer is not None:
            peer.incoming.is_stopped = True
            self._server.pause_reading(connection)

    def resume_reading(self, connection: int) -> None:
        peer = self._peers.get(connection)
        if peer is not None:
            peer.incoming.is_stopped = False
            self._server.resume_reading(connection)
            if peer.incoming:
                self._arm_at(self._server.begin_tick())

    def _brake(self, peer: _Peer) -> None:
        """A client that goes on sending while nothing flows has to wait."""
        if (
            peer.incoming.held_bytes + peer.outgoing.held_bytes >= HELD_BYTES_MAX
            or len(peer.incoming) >= HELD_ANSWERS_MAX
            or len(peer.outgoing) >= HELD_ANSWERS_MAX
        ):
            self._server.hold_reading(peer.number)

    def _unbrake(self) -> None:
        for peer in self._peers.values():
            if not peer.incoming and not peer.outgoing and not peer.is_over:
                self._server.allow_reading(peer.number)

    # Waiting and time.

    def _pass(self, stream: Stream[Act], act: Act, kind: Kind, now_ms: int) -> None:
        if stream.passes(kind):
            act(now_ms)
        else:
            self._put(stream, act, kind)

    def _put(self, stream: Stream[Act], act: Act, kind: Kind, *, size_bytes: int = 0) -> None:
        stream.put(act, kind, self._server.begin_tick(), size_bytes=size_bytes)
        self._waiting[stream] = None
        self._arm()

    def _release(self, now_ms: int) -> None:
        """Carry out everything whose time has come."""
        for stream in list(self._waiting):
            while (act := stream.take(now_ms)) is not None:
                act(now_ms)
            if not stream:
                self._waiting.pop(stream, None)
        for link, opens_by_ms in list(self._opening.items()):
            if opens_by_ms <= now_ms and link in self._opening:
                self._server.disconnect(link)
                self._tell_link_closed(link, "unreachable", now_ms)
        self._unbrake()
        self._arm()

    def _arm(self) -> None:
        """A timer for the next thing that time alone brings about."""
        times = [look_at_ms for each in self._waiting if (look_at_ms := each.look_at_ms())]
        times += self._opening.values()
        end_ms = self.table.next_end_ms()
        if end_ms is not None:
            times.append(self._clock.now_ms() + end_ms - self._wall_ms())
        if times:
            self._arm_at(min(times))

    def _arm_at(self, due_ms: int) -> None:
        if self._is_stopped:
            return
        if self._timer is not None:
            if self._timer_due_ms <= due_ms:
                return
            self._timer.cancel()
        self._timer_due_ms = due_ms
        delay_ms = max(0, due_ms - self._clock.now_ms())
        self._timer = self._server.loop.call_later(delay_ms / 1000, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        try:
            self.expire()
            self._release(self._server.begin_tick())
        except Exception as error:
            self._server.fail(error)

    def _wall_ms(self) -> int:
        return self._clock.wall_ms(self._clock.now_ms())


def _size_bytes(part: Part) -> int:
    """In memory: slices of files stay in their files."""
    return 0 if isinstance(part, FileSlice) else len(part)
