"""Connections as the node sees them: answers leave in the order in which requests came."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from tidelog.core.model.limits import UNANSWERED_REQUESTS_MAX
from tidelog.core.node.connections.request import Request
from tidelog.core.node.ports import Outbox
from tidelog.core.wire.scram import ScramServer

RESUME_BELOW = UNANSWERED_REQUESTS_MAX // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionFailed:
    """The node drops a connection: the peer sent something that cannot be answered."""

    connection: int
    peer: str
    reason: str


class Connection:
    """One peer. Invariant: at most UNANSWERED_REQUESTS_MAX requests are in the queue."""

    __slots__ = (
        "client_software", "connections", "has_begun_proof", "held", "id", "is_failed",
        "is_flushing", "is_member", "is_paused", "peer", "proof", "queue",
    )  # fmt: skip

    def __init__(self, connections: Connections, id_: int, peer: str) -> None:
        self.connections = connections
        self.id = id_
        self.peer = peer
        self.queue: deque[Request] = deque()
        self.client_software: tuple[str, str] | None = None
        self.is_member = False
        """Whether it has proved to be of another node of the cluster; it stays so."""
        self.proof: ScramServer | None = None
        """Of a connection that is about to prove it."""
        self.has_begun_proof = False
        self.held: deque[bytearray] | None = None
        """Requests that came behind one that must be finished first; None: there is none."""
        self.is_paused = False
        self.is_flushing = False
        self.is_failed = False

    def add(self, request: Request) -> None:
        self.queue.append(request)
        if len(self.queue) >= UNANSWERED_REQUESTS_MAX and not self.is_paused:
            self.is_paused = True
            if self.held is None:
                self.connections.outbox.pause_reading(self.id)

    def hold(self) -> None:
        """What comes from now on waits; no more is read from the peer than is on its way."""
        assert self.held is None, "held once"
        self.held = deque()
        if not self.is_paused:
            self.connections.outbox.pause_reading(self.id)

    def release(self) -> deque[bytearray]:
        """What has come meanwhile, in order."""
        assert self.held is not None
        held, self.held = self.held, None
        if not self.is_paused and not self.is_failed:
            self.connections.outbox.resume_reading(self.id)
        return held

    def begin_proof(self, proof: ScramServer) -> None:
        self.proof, self.has_begun_proof = proof, False

    def continue_proof(self, message: bytes) -> bytes:
        """The answer to the first step, or to the second, which makes it a member.

        Raises BadProof, after which only another handshake could begin anew.
        """
        proof, self.proof = self.proof, None
        assert proof is not None
        if not self.has_begun_proof:
            answer = proof.first(message)
            self.proof, self.has_begun_proof = proof, True
            return answer
        answer = proof.final(message)
        self.is_member = True
        return answer

    def on_answered(self) -> None:
        if not self.is_flushing:
            self.is_flushing = True
            self.connections.to_flush.append(self)

    def fail(self, reason: str) -> None:
        """Answer what was ready before, then drop the connection."""
        if not self.is_failed:
            self.is_failed = True
            self.connections.failed.append((self, reason))

    def drop_parked(self) -> None:
        """Nobody waits for these answers any more."""
        for request in self.queue:
            if request.parked is not None and request.parts is None:
                request.parked.drop()

    def flush(self) -> None:
        """Hand over every answer that has its turn."""
        self.is_flushing = False
        queue, outbox = self.queue, self.connections.outbox
        while queue:
            parts = queue[0].parts
            if parts is None:
                break
            queue.popleft()
            if parts:
                outbox.reply(self.id, parts)
        if self.is_paused and len(queue) < RESUME_BELOW:
            self.is_paused = False
            if self.held is None:
                outbox.resume_reading(self.id)


class Connections:
    """All peers, and those among them that have answers to send in this tick."""

    def __init__(self, outbox: Outbox) -> None:
        self.outbox = outbox
        self.open: dict[int, Connection] = {}
        self.to_flush: list[Connection] = []
        self.failed: list[tuple[Connection, str]] = []

    def add(self, id_: int, peer: str) -> None:
        assert id_ not in self.open, "a connection opens once"
        self.open[id_] = Connection(self, id_, peer)

    def remove(self, id_: int) -> Connection | None:
        connection = self.open.pop(id_, None)
        if connection is not None:
            connection.is_failed = True
            connection.drop_parked()
        return connection

    def drop_answered(self, api_key: int, reason: str) -> list[ConnectionFailed]:
        """Drop the connections with answers to such requests that have not left yet."""
        dropped = []
        for connection in self.to_flush:
            is_answered = any(
                request.api_key == api_key and request.parts for request in connection.queue
            )
            if is_answered and connection.id in self.open:
                dropped.append(self._drop(connection, reason))
        return dropped

    def flush(self) -> list[ConnectionFailed]:
        """Send what is ready; the connections that had to be dropped."""
        while self.to_flush:
            ready, self.to_flush = self.to_flush, []
            for connection in ready:
                if connection.id in self.open:
                    connection.flush()
        dropped = []
        for connection, reason in self.failed:
            if connection.id in self.open:
                dropped.append(self._drop(connection, reason))
        self.failed.clear()
        return dropped

    def _drop(self, connection: Connection, reason: str) -> ConnectionFailed:
        self.remove(connection.id)
        self.outbox.close(connection.id, reason)
        return ConnectionFailed(connection=connection.id, peer=connection.peer, reason=reason)
