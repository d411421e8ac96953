"""The fault gate: it stands between a node and its server and lets faults happen to real sockets.

For the node it is the world (its outbox), for the server it is the node (its events). What no rule
concerns passes straight through. Everything else goes through two streams per connection
(fault_stream.py), which decide by the table of rules (fault_table.py); links to other nodes are in
fault_links.py, those who called in fault_peers.py, and fault_scheduler.py has the timer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.model.trace import Trace
from tidelog.core.node.connections.connection import Connections
from tidelog.core.node.connections.request import Request
from tidelog.core.wire.headers import RequestHeader
from tidelog.faults.hosts import Host
from tidelog.faults.rules import FaultRule
from tidelog.worlds.runtime.clock import MonotonicClock
from tidelog.worlds.runtime.events import FaultsChanged
from tidelog.worlds.runtime.fault_answers import error_answer, wants_no_answer
from tidelog.worlds.runtime.fault_journal import Journal
from tidelog.worlds.runtime.fault_links import GatedLinks
from tidelog.worlds.runtime.fault_peers import GatedPeers
from tidelog.worlds.runtime.fault_scheduler import FaultScheduler, GatedServer
from tidelog.worlds.runtime.fault_table import FaultTable
from tidelog.worlds.runtime.server import NodeEvents


class GatedNode(NodeEvents, Protocol):
    """The node as the gate uses it."""

    connections: Connections
    held_replicas: frozenset[tuple[int, TopicPartition]]


class FaultGate:
    """An Outbox for the node, NodeEvents for the server."""

    def __init__(
        self, *, server: GatedServer, table: FaultTable, clock: MonotonicClock, trace: Trace
    ) -> None:
        self.table = table
        self.on_counted: Callable[[], None] = lambda: None
        """Called when the table changed without a command: rules ended, errors were answered."""
        self._server = server
        self._clock = clock
        self._trace = trace
        self._scheduler = FaultScheduler(server, clock, self.on_wake)
        self._links = links = GatedLinks(server, table, self._scheduler)
        self._peers = peers = GatedPeers(server, table, self._scheduler)
        self.arm, self.halt = server.arm, server.halt
        self.connect, self.send, self.disconnect = links.connect, links.send, links.disconnect
        self.on_link_opened, self.on_link_closed = links.on_link_opened, links.on_link_closed
        self.on_answer = links.on_answer
        self.on_connection_opened = peers.on_connection_opened
        self.on_connection_closed = peers.on_connection_closed
        self.on_frame = peers.on_frame
        self.reply, self.close = peers.reply, peers.close
        self.pause_reading, self.resume_reading = peers.pause_reading, peers.resume_reading

    def serve(self, node: GatedNode) -> None:
        """From now on events go to this node."""
        self._node = self._links.node = self._peers.node = node
        self.on_synced, self.on_sync_failed = node.on_synced, node.on_sync_failed
        self.on_timer, self.end_of_tick = node.on_timer, node.end_of_tick

    def stop(self) -> None:
        """The node has stopped: nothing is delivered or sent any more."""
        self._scheduler.stop()
        self.record(None)

    @property
    def held_frames(self) -> int:
        return self._scheduler.held_frames

    def record(self, path: str | None) -> None:
        """Keep a journal from now on, or no longer; OSError if it cannot be written."""
        journal = None if path is None else Journal(path)
        if self._peers.journal is not None:
            self._peers.journal.close()
        self._peers.journal = journal

    @property
    def recorded_path(self) -> str | None:
        return None if self._peers.journal is None else self._peers.journal.path

    def _inject(
        self, connection: int, source: Host, header: RequestHeader, frame: memoryview
    ) -> bool:
        """Answer with an error instead of the node; in its turn among the node's own answers."""
        answered_by = None
        for rule in self.table.error_rules(source, header.api_key):
            message = error_answer(header, frame, ErrorCode[rule.error])
            if message is not None and self.table.is_refused_by(rule) and answered_by is None:
                answered_by = rule
                answer = message
        peer = self._node.connections.open.get(connection)
        if answered_by is None or peer is None or peer.is_failed:
            return False
        api_key, version, correlation_id, client_id, position = header
        request = Request(peer, api_key, version, correlation_id, client_id, frame[position:])
        peer.add(request)
        if wants_no_answer(header, frame):
            request.close(f"fault {answered_by.id}, and nobody waits for an answer")
        else:
            request.answer(answer)
        self.on_counted()
        return True

    # The table.

    def load(
        self, rules: tuple[FaultRule, ...], peers: Mapping[str, int], counts: Mapping[str, int]
    ) -> None:
        """Before anything else: what this broker had when it was last there."""
        self.table.replace(rules, peers, counts)
        self.table.expire(self._wall_ms())
        self._on_table_changed((), "loaded")

    def replace(self, rules: tuple[FaultRule, ...], peers: Mapping[str, int]) -> None:
        before = self.table.rules
        self.table.replace(rules, peers)
        self._on_table_changed(before, "replaced")

    def on_wake(self) -> None:
        """Time has passed: rules end, what was late comes, connects are given up."""
        before = self.table.rules
        if self.table.expire(self._wall_ms()):
            self._on_table_changed(before, "expired")
            self.on_counted()
        else:
            self._flow_on()

    def _on_table_changed(self, before: tuple[FaultRule, ...], because: str) -> None:
        after = self.table.rules
        self._trace.emit(
            FaultsChanged(
                because=because,
                added=tuple(str(rule) for rule in after if rule not in before),
                removed=tuple(str(rule) for rule in before if rule not in after),
                rules=len(after),
            )
        )
        self._node.held_replicas = self.table.held_replicas()
        self._peers.inject = self._inject if self.table.has_errors else None
        self._links.on_table_changed()
        self._peers.on_table_changed()
        for stream in self._scheduler.streams:
            stream.on_table_changed()
        self._flow_on()

    def _flow_on(self) -> None:
        now_ms = self._server.begin_tick()
        self._scheduler.release(now_ms)
        self._links.give_up(now_ms)
        self._peers.release_brakes()
        end_ms = self.table.next_end_ms()
        if end_ms is not None:
            self._scheduler.wake_at(now_ms + end_ms - self._wall_ms())

    def _wall_ms(self) -> int:
        return self._clock.wall_ms(self._clock.now_ms())
