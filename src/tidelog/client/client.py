"""A client: its connections, its metadata of the cluster, and the machines that use both.

Invariant: requests leave in `end_of_tick` and in reaction to events of the host, never while a
program is calling, so that a program's calls of one turn share requests.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Protocol

from tidelog.client.cluster_metadata import ClusterMetadata
from tidelog.client.config import ClientConfig
from tidelog.client.connections import NodeConnections, NodeKey
from tidelog.client.metadata_refresh import MetadataRefresh
from tidelog.client.node_choice import least_loaded
from tidelog.core.model.trace import NullTrace, Trace
from tidelog.core.wire.links import Links, Wires


class ClientWires(Wires, Protocol):
    """What a client asks of its world. Calls never block and never call back."""

    def arm(self, deadline_ms: int) -> None:
        """Call `on_timer` at or soon after this time. An earlier deadline replaces a later one."""


class ClientMachine(Protocol):
    """Something that works with a client's connections."""

    def run(self, now_ms: int) -> None:
        """Do what can be done now."""

    def deadlines_ms(self) -> Iterable[int | None]:
        """When there is something to do even if nothing happens; past ones do not count."""


class Client:
    """Inputs: on_link_opened, on_link_closed, on_answer, on_timer; then end_of_tick."""

    def __init__(
        self,
        wires: ClientWires,
        config: ClientConfig,
        *,
        random: Random,
        trace: Trace | None = None,
    ) -> None:
        self.config = config
        self.random = random
        self.trace: Trace = trace if trace is not None else NullTrace()
        self._wires = wires
        self._links = Links(wires, client_id=config.client_id)
        self.metadata = ClusterMetadata(config.bootstrap)
        self.connections = NodeConnections(
            self._links, config, random=random, on_lost=self._on_lost
        )
        self.refresh = MetadataRefresh(
            self.metadata, self.connections, config, random=random, trace=self.trace
        )
        self._machines: list[ClientMachine] = []
        self._armed_ms: int | None = None
        self.is_closed = False

    def attach(self, machine: ClientMachine) -> None:
        self._machines.append(machine)

    def detach(self, machine: ClientMachine) -> None:
        self._machines.remove(machine)

    def is_attached(self, machine: ClientMachine) -> bool:
        return machine in self._machines

    def close(self) -> None:
        """Drop every connection; whoever waits for an answer gets none."""
        self.is_closed = True
        self._links.close_all()

    def usable_node(self, now_ms: int) -> NodeKey | None:
        """Any node that can be asked now; None: wait, a connection is on its way or pausing."""
        chosen = least_loaded(self.metadata, self.connections, self.random, now_ms)
        if chosen is None:
            # Wakes up for the first pause that ends.
            for key, address in self.metadata.nodes():
                self.connections.make_usable(key, address, now_ms)
            return None
        return chosen[0] if self.connections.make_usable(*chosen, now_ms) else None

    # Events of the host

    def on_link_opened(self, link: int, now_ms: int) -> None:
        self._links.on_link_opened(link, now_ms)

    def on_link_closed(self, link: int, reason: str, now_ms: int) -> None:
        self._links.on_link_closed(link, reason, now_ms)

    def on_answer(self, link: int, frame: memoryview, now_ms: int) -> None:
        self._links.on_answer(link, frame, now_ms)

    def on_timer(self, now_ms: int) -> None:
        self._armed_ms = None
        self._links.expire(now_ms)
        self.connections.expire(now_ms)

    def end_of_tick(self, now_ms: int) -> None:
        """Let every machine do what it can, then ask to be woken for the next deadline."""
        if self.is_closed:
            return
        self.connections.begin_pass()
        self.refresh.run(now_ms)
        for machine in tuple(self._machines):
            machine.run(now_ms)
        self.refresh.run(now_ms)
        deadline_ms = self._next_deadline_ms(now_ms)
        if deadline_ms is not None and (self._armed_ms is None or deadline_ms < self._armed_ms):
            self._armed_ms = deadline_ms
            self._wires.arm(deadline_ms)

    def _next_deadline_ms(self, now_ms: int) -> int | None:
        """What is due already waits for something to happen, not for time to pass."""
        deadlines = [self._links.next_deadline_ms, self.refresh.next_deadline_ms()]
        deadlines.extend(self.connections.deadlines_ms())
        for machine in self._machines:
            deadlines.extend(machine.deadlines_ms())
        later = [each for each in deadlines if each is not None and each > now_ms]
        return min(later, default=None)

    def _on_lost(self, key: NodeKey, now_ms: int) -> None:
        self.refresh.on_lost(key, now_ms)
