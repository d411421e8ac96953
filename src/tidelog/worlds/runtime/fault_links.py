"""Links under faults: this node dialled, so it knows whom and what for, and acts for both ways.

Its own requests and the connect stand in the outgoing stream, answers and the other side's end in
the incoming one. A connect into a cut hangs, whichever direction is cut: no answer means no
connection, and the kernel of the other side must not get to say "refused" either. It is tried
again when the cut heals, and is unreachable when the usual time is up.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tidelog.worlds.runtime.fault_scheduler import Acts, FaultScheduler, GatedServer
from tidelog.worlds.runtime.fault_stream import FaultStream, ItemKind
from tidelog.worlds.runtime.fault_table import FaultTable, LinkDirection
from tidelog.worlds.runtime.links import CONNECT_TIMEOUT_MS, LinkEvents


class GatedLink:
    __slots__ = ("host", "incoming", "is_dialling", "number", "outgoing", "port", "purpose")

    def __init__(self, table: FaultTable, number: int, host: str, port: int, purpose: str) -> None:
        self.number = number
        self.host = host
        self.port = port
        self.purpose = purpose
        self.is_dialling = False
        """The server was asked to connect and has not said what became of it."""
        way = self._way(table)
        self.outgoing: Acts = FaultStream(table, way)
        self.incoming: Acts = FaultStream(table, way.back)

    def find_way(self, table: FaultTable) -> None:
        """The table may know more addresses now, or fewer."""
        self.outgoing.way = self._way(table)
        self.incoming.way = self.outgoing.way.back

    def _way(self, table: FaultTable) -> LinkDirection:
        return LinkDirection(table.node_id, table.node_at(self.host, self.port), self.purpose)


class GatedLinks:
    """Wires for the node, LinkEvents for the server."""

    def __init__(self, server: GatedServer, table: FaultTable, scheduler: FaultScheduler) -> None:
        self.node: LinkEvents
        self._server = server
        self._table = table
        self._scheduler = scheduler
        self._links: dict[int, GatedLink] = {}
        self._opening: dict[int, int] = {}
        """Links that the node waits for, with the time when they are unreachable."""

    def on_table_changed(self) -> None:
        for link in self._links.values():
            link.find_way(self._table)
            self._interrupt_dialling(link)

    def _interrupt_dialling(self, link: GatedLink) -> None:
        """A cut: what the other side says to the connect must not come through."""
        table, way = self._table, link.outgoing.way
        if link.is_dialling and (table.is_cut(way) or table.is_cut(way.back)):
            link.is_dialling = False
            self._server.disconnect(link.number)
            self._scheduler.put_first(link.outgoing, partial(self._dial, link), ItemKind.CONNECT)

    def give_up(self, now_ms: int) -> None:
        """Tell which links did not open in time."""
        for link, opens_by_ms in list(self._opening.items()):
            if opens_by_ms <= now_ms and link in self._opening:
                self._server.disconnect(link)
                self._tell_closed(link, "unreachable", now_ms)
        self._scheduler.wake_at(*self._opening.values())

    # What the node wishes.

    def connect(self, link: int, host: str, port: int, purpose: str) -> None:
        now_ms = self._server.begin_tick()
        gated = self._links[link] = GatedLink(self._table, link, host, port, purpose)
        self._opening[link] = now_ms + CONNECT_TIMEOUT_MS
        self._scheduler.wake_at(self._opening[link])
        self._scheduler.pass_on(
            gated.outgoing, partial(self._dial, gated), ItemKind.CONNECT, now_ms
        )

    def _dial(self, link: GatedLink, now_ms: int) -> None:
        link.is_dialling = True
        self._server.connect(link.number, link.host, link.port, link.purpose)

    def send(self, link: int, parts: Sequence[bytes | bytearray | memoryview]) -> None:
        gated = self._links.get(link)
        if gated is None:
            return
        if gated.outgoing.passes(ItemKind.FRAME):
            self._server.send(link, parts)
        else:
            act = partial(self._send_now, link, parts)
            self._scheduler.put(gated.outgoing, act, ItemKind.FRAME)

    def _send_now(
        self, link: int, parts: Sequence[bytes | bytearray | memoryview], now_ms: int
    ) -> None:
        self._server.send(link, parts)

    def disconnect(self, link: int) -> None:
        """What is held dies with it."""
        self._forget(link)
        self._server.disconnect(link)

    def _forget(self, link: int) -> None:
        self._opening.pop(link, None)
        gated = self._links.pop(link, None)
        if gated is not None:
            self._scheduler.forget(gated.outgoing)
            self._scheduler.forget(gated.incoming)

    # What the server tells.

    def on_link_opened(self, link: int, now_ms: int) -> None:
        gated = self._links.get(link)
        if gated is not None:
            gated.is_dialling = False
            tell = partial(self._tell_opened, link)
            self._scheduler.pass_on(gated.incoming, tell, ItemKind.OPENED, now_ms)

    def _tell_opened(self, link: int, now_ms: int) -> None:
        self._opening.pop(link, None)
        self.node.on_link_opened(link, now_ms)

    def on_link_closed(self, link: int, reason: str, now_ms: int) -> None:
        gated = self._links.get(link)
        if gated is not None:
            gated.is_dialling = False
            self._scheduler.forget(gated.outgoing)
            tell = partial(self._tell_closed, link, reason)
            self._scheduler.pass_on(gated.incoming, tell, ItemKind.CLOSED, now_ms)

    def _tell_closed(self, link: int, reason: str, now_ms: int) -> None:
        self._forget(link)
        self.node.on_link_closed(link, reason, now_ms)

    def on_answer(self, link: int, frame: memoryview, now_ms: int) -> None:
        gated = self._links.get(link)
        if gated is None:
            return
        if gated.incoming.passes(ItemKind.FRAME):
            self.node.on_answer(link, frame, now_ms)
        else:
            kept = memoryview(bytearray(frame))  # the buffer is used again after this call
            act = partial(self.node.on_answer, link, kept)
            self._scheduler.put(gated.incoming, act, ItemKind.FRAME, size_bytes=len(kept))
