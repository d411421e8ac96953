"""A cluster as a conversation needs it: nodes with addresses, which stop and come back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from tests.golden.broker import Connection, SocketBroker, SocketConnection

FIRST_NODE = 1


class ClusterNode(Protocol):
    """One broker and controller process."""

    node_id: int
    host: str
    port: int
    controller_port: int
    """Where it speaks as a controller: the same port, if it has one listener for all."""
    secret: str | None
    """What whoever speaks as a node has to prove first, if anything."""

    def start(self) -> None:
        """Start it; it may still have to find the others."""

    def stop(self) -> None:
        """The graceful end, leaders moved away first."""


class Cluster(SocketBroker):
    """Several nodes; where a talk does not say which, it speaks with the first."""

    def __init__(self, nodes: Sequence[ClusterNode]) -> None:
        self.nodes = {node.node_id: node for node in nodes}
        first = self.nodes[FIRST_NODE]
        ports = {node.port: f"<port:{node.node_id}>" for node in nodes}
        ports |= {node.controller_port: f"<port:{node.node_id}>" for node in nodes}
        super().__init__(first.host, first.port, port_names=ports)

    def connect_to(self, node_id: int, *, as_controller: bool = False) -> Connection:
        node = self.nodes[node_id]
        port = node.controller_port if as_controller else node.port
        return SocketConnection(node.host, port, secret=node.secret)

    def stop(self, node_id: int) -> None:
        self.nodes[node_id].stop()

    def start(self, node_id: int) -> None:
        self.nodes[node_id].start()


class SimpleNode:
    """A node made of its address and two functions."""

    def __init__(
        self,
        node_id: int,
        *,
        host: str,
        port: int,
        controller_port: int,
        start: Callable[[], None],
        stop: Callable[[], object],
        secret: str | None = None,
    ) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.controller_port = controller_port
        self.secret = secret
        self._start = start
        self._stop = stop

    def start(self) -> None:
        self._start()

    def stop(self) -> None:
        self._stop()
