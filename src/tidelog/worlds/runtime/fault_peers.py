"""Those who called this node, under faults: clients are told by the client id of their requests.

What clients send and get goes through two streams each. Nodes that called act themselves
(fault_links.py); only their end is held back here, when it would come through a cut. A held answer
may carry slices of files: they are read when it is sent, as those of slow readers are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from tidelog.core.model.limits import MIB, UNANSWERED_REQUESTS_MAX
from tidelog.core.node.ports import Part
from tidelog.core.storage.disk import FileSlice
from tidelog.core.wire.headers import RequestHeader, read_request_header
from tidelog.core.wire.malformed import MalformedMessage
from tidelog.faults.hosts import Host
from tidelog.worlds.runtime.fault_journal import Journal
from tidelog.worlds.runtime.fault_scheduler import Acts, FaultScheduler, GatedServer
from tidelog.worlds.runtime.fault_stream import FaultStream, ItemKind
from tidelog.worlds.runtime.fault_table import FaultTable, LinkDirection
from tidelog.worlds.runtime.server import NodeEvents

HELD_BYTES_MAX = 4 * MIB
"""Of one connection: with that much held nothing more is read from the client."""
HELD_ITEMS_MAX = UNANSWERED_REQUESTS_MAX // 2
ORPHANED_BYTES_MAX = 64 * MIB
"""Requests held of connections that have ended: a client's kernel would give up, too."""

NAME_START, LENGTH_BYTES = 8, 2
"""Where a request says who sends it."""

Injection = Callable[[int, Host, RequestHeader, memoryview], bool]
"""Connection, who asks, and what: whether it was answered with an error instead."""


class GatedPeer:
    """One connection; its owner is a stranger until the first request."""

    __slots__ = (
        "client_id", "host", "incoming", "is_over", "name", "name_end", "number", "orphaned_bytes",
        "outgoing",
    )  # fmt: skip

    def __init__(self, table: FaultTable, number: int) -> None:
        self.number = number
        self.client_id: str | None = None
        self.host: Host | None = None
        self.name, self.name_end = b"?", NAME_START
        """The client id of the last request as it stands there: a stranger's is unlike any."""
        self.is_over = False
        """The real connection has ended, whether or not the node may know it."""
        self.orphaned_bytes = 0
        self.incoming: Acts = FaultStream(table, LinkDirection(None, table.node_id))
        self.outgoing: Acts = FaultStream(table, LinkDirection(table.node_id, None))

    @property
    def is_node(self) -> bool:
        return isinstance(self.host, int)

    def identify(self, client_id: str | None, table: FaultTable) -> None:
        self.client_id = client_id
        self.host = table.host_of(client_id)
        self.incoming.way = LinkDirection(self.host, table.node_id)
        self.outgoing.way = self.incoming.way.back


class GatedPeers:
    """The answering half of an Outbox, and what the server tells of connections."""

    def __init__(self, server: GatedServer, table: FaultTable, scheduler: FaultScheduler) -> None:
        self.node: NodeEvents
        self.inject: Injection | None = None
        self.journal: Journal | None = None
        self._server = server
        self._table = table
        self._scheduler = scheduler
        self._peers: dict[int, GatedPeer] = {}
        self._braked: dict[int, GatedPeer] = {}
        self._orphaned_bytes = 0

    def on_table_changed(self) -> None:
        for peer in self._peers.values():
            if peer.host is not None:
                peer.identify(peer.client_id, self._table)

    # What the server tells.

    def on_connection_opened(self, connection: int, peer: str, now_ms: int) -> None:
        self._peers[connection] = GatedPeer(self._table, connection)
        self.node.on_connection_opened(connection, peer, now_ms)

    def on_frame(self, connection: int, frame: memoryview, now_ms: int) -> None:
        peer = self._peers[connection]
        if not self._table.rules and self.journal is None:  # as almost always: be quick
            is_known = frame[NAME_START : peer.name_end] == peer.name
            if is_known and (peer.is_node or peer.incoming.passes(ItemKind.FRAME)):
                self.node.on_frame(connection, frame, now_ms)
                return
        try:
            header = read_request_header(frame)
        except MalformedMessage:
            header = None  # the node will refuse it, in its turn
        if header is not None and (peer.host is None or header.client_id != peer.client_id):
            peer.identify(header.client_id, self._table)
            peer.name_end = NAME_START + LENGTH_BYTES + len((header.client_id or "").encode())
            peer.name = bytes(frame[NAME_START : peer.name_end])
        if peer.is_node or peer.incoming.passes(ItemKind.FRAME):
            self._deliver(peer, frame, header, now_ms)
            return
        kept = memoryview(bytearray(frame))  # the buffer is used again after this call
        act = partial(self._deliver, peer, kept, header)
        self._scheduler.put(peer.incoming, act, ItemKind.FRAME, size_bytes=len(kept))
        self._brake(peer)

    def _deliver(
        self, peer: GatedPeer, frame: memoryview, header: RequestHeader | None, now_ms: int
    ) -> None:
        if header is not None and peer.host is not None:
            if self.journal is not None:
                self.journal.request(peer.number, header, frame)
            if self.inject is not None and self.inject(peer.number, peer.host, header, frame):
                return
        self.node.on_frame(peer.number, frame, now_ms)

    def on_connection_closed(self, connection: int, now_ms: int) -> None:
        """Answers have nobody to go to; requests that are held come before the end."""
        peer = self._peers[connection]
        peer.is_over = True
        self._braked.pop(connection, None)
        self._scheduler.forget(peer.outgoing)
        peer.incoming.is_stopped = False
        if self._orphaned_bytes + peer.incoming.held_bytes > ORPHANED_BYTES_MAX:
            self._scheduler.forget(peer.incoming)
        peer.orphaned_bytes = peer.incoming.held_bytes
        self._orphaned_bytes += peer.orphaned_bytes
        tell = partial(self._tell_closed, peer)
        self._scheduler.pass_on(peer.incoming, tell, ItemKind.CLOSED, now_ms)

    def _tell_closed(self, peer: GatedPeer, now_ms: int) -> None:
        self._orphaned_bytes -= peer.orphaned_bytes
        del self._peers[peer.number]
        if self.journal is not None:
            self.journal.closed(peer.number)
        self.node.on_connection_closed(peer.number, now_ms)

    # What the node wishes.

    def reply(self, connection: int, parts: Sequence[Part]) -> None:
        peer = self._peers.get(connection)
        if peer is None:
            return
        if self.journal is not None:
            self.journal.answer(connection, parts)
        if peer.is_over:
            return
        if peer.is_node or peer.outgoing.passes(ItemKind.FRAME):
            self._server.reply(connection, parts)
            return
        act = partial(self._reply_now, connection, parts)
        size_bytes = sum(_size_bytes(part) for part in parts)
        self._scheduler.put(peer.outgoing, act, ItemKind.FRAME, size_bytes=size_bytes)
        self._brake(peer)

    def _reply_now(self, connection: int, parts: Sequence[Part], now_ms: int) -> None:
        self._server.reply(connection, parts)

    def close(self, connection: int, reason: str) -> None:
        """After what was replied before; through a cut it is not noticed either."""
        peer = self._peers.get(connection)
        if peer is None or peer.is_over:
            return
        self._scheduler.forget(peer.incoming)  # the node takes no more of its requests
        act = partial(self._close_now, connection, reason)
        if peer.is_node:
            self._server.close(connection, reason)
        else:
            self._scheduler.pass_on(peer.outgoing, act, ItemKind.CLOSED, self._server.begin_tick())

    def _close_now(self, connection: int, reason: str, now_ms: int) -> None:
        self._server.close(connection, reason)

    def pause_reading(self, connection: int) -> None:
        peer = self._peers.get(connection)
        if peer is not None:
            peer.incoming.is_stopped = not peer.is_over
            self._server.pause_reading(connection)

    def resume_reading(self, connection: int) -> None:
        """What is held goes on from the timer: a wish never calls back into the node."""
        peer = self._peers.get(connection)
        if peer is not None:
            peer.incoming.is_stopped = False
            self._server.resume_reading(connection)
            self._scheduler.wake_at(peer.incoming.next_due_ms())

    # Brakes: a client that goes on sending while nothing flows has to wait.

    def _brake(self, peer: GatedPeer) -> None:
        held_items = max(len(peer.incoming), len(peer.outgoing))
        held_bytes = peer.incoming.held_bytes + peer.outgoing.held_bytes
        if held_items >= HELD_ITEMS_MAX or held_bytes >= HELD_BYTES_MAX:
            self._braked[peer.number] = peer
            self._server.hold_reading(peer.number)

    def release_brakes(self) -> None:
        for number, peer in list(self._braked.items()):
            if not peer.incoming and not peer.outgoing:
                del self._braked[number]
                self._server.allow_reading(number)


def _size_bytes(part: Part) -> int:
    """In memory: slices stay in their files."""
    return 0 if isinstance(part, FileSlice) else len(part)
