"""What lies between the brokers of a test: their outboxes, and the way to a controller by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.unit.core.node.broker_clients import Client
from tidelog.core.node.ports import Part
from tidelog.core.storage.disk import FileSlice, read_slice
from tidelog.core.wire.messages.api_56_alter_partition import AlterPartitionRequest

if TYPE_CHECKING:
    from tests.unit.core.node.brokers import Brokers


@dataclass
class ControllerRequest:
    """A broker's question to the controller, not answered yet."""

    asker: int
    request: AlterPartitionRequest
    then: Callable[[Any, int], None]


class Channel:
    """Stands for the way to the controller."""

    def __init__(self, cluster: Brokers, asker: int) -> None:
        self._cluster = cluster
        self._asker = asker

    def ask(self, request: Any, version: int, then: Any, *, now_ms: int, **_: object) -> None:
        self._cluster.controller_requests.append(ControllerRequest(self._asker, request, then))


class Outbox:
    """One broker's way into the little network."""

    def __init__(self, cluster: Brokers, node_id: int) -> None:
        self.cluster = cluster
        self.node_id = node_id
        self.deadline_ms: int | None = None
        self.halted: str | None = None
        self.peers: dict[int, Client | tuple[int, int]] = {}
        """Who is on the other side of a connection: a client, or (broker, its link)."""
        self.links: dict[int, tuple[int, int]] = {}
        """(broker, connection) behind a link that this broker opened."""

    def reply(self, connection: int, parts: Sequence[Part]) -> None:
        data = b"".join(read_slice(p) if isinstance(p, FileSlice) else bytes(p) for p in parts)
        peer = self.peers.get(connection)
        if isinstance(peer, Client):
            peer.on_answer(data[4:])
        elif peer is not None:
            self.cluster.post(self.node_id, peer[0], "answer", (peer[1], data[4:]))

    def close(self, connection: int, reason: str) -> None:
        peer = self.peers.pop(connection, None)
        if isinstance(peer, tuple):
            self.cluster.post(self.node_id, peer[0], "closed", (peer[1], "closed"))

    def pause_reading(self, connection: int) -> None: ...

    def resume_reading(self, connection: int) -> None: ...

    def arm(self, deadline_ms: int) -> None:
        if self.deadline_ms is None or deadline_ms < self.deadline_ms:
            self.deadline_ms = deadline_ms

    def halt(self, reason: str) -> None:
        self.halted = reason

    def connect(self, link: int, host: str, port: int, purpose: str) -> None:
        assert purpose == "replica", purpose
        target = int(host.removeprefix("host-"))
        if target not in self.cluster.nodes:
            self.cluster.post(target, self.node_id, "closed", (link, "refused"))
            return
        connection = self.cluster.new_connection(target, (self.node_id, link))
        self.links[link] = (target, connection)
        self.cluster.post(target, self.node_id, "opened", (link,))

    def send(self, link: int, parts: Sequence[bytes | bytearray | memoryview]) -> None:
        target, connection = self.links[link]
        data = b"".join(bytes(part) for part in parts)
        self.cluster.post(self.node_id, target, "frame", (connection, data[4:]))

    def disconnect(self, link: int) -> None:
        target, connection = self.links.pop(link, (0, 0))
        if target in self.cluster.nodes:
            self.cluster.post(self.node_id, target, "left", (connection,))
