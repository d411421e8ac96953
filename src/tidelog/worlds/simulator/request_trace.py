"""The request trace of a process: every request that its node was given, with the answer it gave.

It stands between the world and the node, on both sides: frames pass it on their way in, replies on
their way out. It keeps bytes and decodes them only when they are read. Requests that a node never
answers (Produce with acks=0) stay without an answer, and so do those whose connection ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from tidelog.core.node.node import Node
from tidelog.core.node.ports import Outbox, Part
from tidelog.core.storage.disk import DiskError, FileSlice, read_slice
from tidelog.core.wire.codec import decode
from tidelog.core.wire.headers import read_request_header, read_response_header
from tidelog.core.wire.messages import MESSAGES
from tidelog.core.wire.schema import Message
from tidelog.worlds.simulator.cluster import SimCluster, SimNodeLayout
from tidelog.worlds.simulator.network import Network
from tidelog.worlds.simulator.node_process import NodeFactory, NodeLike, Ports
from tidelog.worlds.simulator.world import SimWorld

_SIZE_BYTES = 4


class TracedExchange:
    """One request and its answer, as bytes until they are read."""

    __slots__ = ("_answer", "_frame", "answered_us", "at_us", "peer")

    def __init__(self, at_us: int, peer: str, frame: bytes) -> None:
        self.at_us = at_us
        self.peer = peer
        self.answered_us: int | None = None
        self._frame = frame
        self._answer: bytes | None = None

    @property
    def api_key(self) -> int:
        return int.from_bytes(self._frame[0:2], "big", signed=True)

    @property
    def version(self) -> int:
        return int.from_bytes(self._frame[2:4], "big", signed=True)

    @property
    def correlation_id(self) -> int:
        return int.from_bytes(self._frame[4:8], "big", signed=True)

    @property
    def request(self) -> Message:
        view = memoryview(self._frame)
        header = read_request_header(view)
        kind = MESSAGES[header.api_key][0]
        return decode(kind, view, header.api_version, header.body_position)

    @property
    def answer(self) -> Message | None:
        if self._answer is None:
            return None
        view = memoryview(self._answer)
        _, position = read_response_header(view, self.api_key, self.version)
        return decode(MESSAGES[self.api_key][1], view, self.version, position)

    def answered(self, at_us: int, answer: bytes) -> None:
        self.answered_us = at_us
        self._answer = answer


class RequestTrace:
    """All exchanges of one process over all its runs, in the order of the requests."""

    def __init__(self, world: SimWorld) -> None:
        self._world = world
        self.exchanges: list[TracedExchange] = []

    def of(self, make_node: NodeFactory) -> NodeFactory:
        """A factory whose nodes are traced."""

        def make(ports: Ports) -> NodeLike:
            outbox = _TracingOutbox(self, ports.outbox)
            node = make_node(replace(ports, outbox=cast("Outbox", outbox)))
            return cast("NodeLike", _TracingNode(self, node, outbox))

        return make

    def request_received(self, peer: str, frame: memoryview) -> TracedExchange:
        exchange = TracedExchange(self._world.now_us, peer, bytes(frame))
        self.exchanges.append(exchange)
        return exchange

    def answered(self, exchange: TracedExchange, parts: Sequence[Part]) -> None:
        exchange.answered(self._world.now_us, _joined(parts)[_SIZE_BYTES:])


class TracedCluster(SimCluster):
    """A cluster whose nodes are all traced. Only for observing it from outside."""

    def __init__(
        self,
        world: SimWorld,
        network: Network,
        *,
        nodes: Sequence[SimNodeLayout],
        settings: Mapping[str, str],
    ) -> None:
        self.traces = {node.node_id: RequestTrace(world) for node in nodes}
        super().__init__(world, network, nodes=nodes, settings=settings)

    def node(self, node_id: int) -> Node:
        """The broker's own object, without its trace."""
        traced = self.processes[node_id].node
        assert isinstance(traced, _TracingNode)
        assert isinstance(traced.node, Node)
        return traced.node

    def _factory(self, layout: SimNodeLayout) -> NodeFactory:
        return self.traces[layout.node_id].of(super()._factory(layout))


class _TracingOutbox:
    """The node's outbox; replies are matched with the requests of their connection."""

    def __init__(self, trace: RequestTrace, outbox: Outbox) -> None:
        self._trace = trace
        self._outbox = outbox
        self.unanswered: dict[tuple[int, int], TracedExchange] = {}

    def reply(self, connection: int, parts: Sequence[Part]) -> None:
        correlation_id = int.from_bytes(_joined(parts[:2])[4:8], "big", signed=True)
        exchange = self.unanswered.pop((connection, correlation_id), None)
        if exchange is not None:
            self._trace.answered(exchange, parts)
        self._outbox.reply(connection, parts)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._outbox, name)


class _TracingNode:
    """The node as the world sees it; frames are noted before the node gets them."""

    def __init__(self, trace: RequestTrace, node: NodeLike, outbox: _TracingOutbox) -> None:
        self._trace = trace
        self.node = node
        self._way_out = outbox
        self._peers: dict[int, str] = {}

    def on_connection_opened(self, connection: int, peer: str, now_ms: int) -> None:
        self._peers[connection] = peer
        self.node.on_connection_opened(connection, peer, now_ms)

    def on_frame(self, connection: int, frame: memoryview, now_ms: int) -> None:
        exchange = self._trace.request_received(self._peers[connection], frame)
        self._way_out.unanswered[(connection, exchange.correlation_id)] = exchange
        self.node.on_frame(connection, frame, now_ms)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.node, name)


def _joined(parts: Sequence[Part]) -> bytes:
    return b"".join(_slice(part) if isinstance(part, FileSlice) else bytes(part) for part in parts)


def _slice(part: FileSlice) -> bytes:
    """What the answer promises; a slice that cannot be read breaks the connection later on."""
    try:
        return read_slice(part)
    except DiskError:
        return b""
