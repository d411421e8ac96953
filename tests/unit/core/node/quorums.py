"""Nodes in the simulated world, looked at as a metadata quorum."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from tidelog.core.metadata.records import ConfigRecord
from tidelog.core.node.api import HANDLERS
from tidelog.core.node.connections.forwarded_requests import LocalRequest
from tidelog.core.node.node import Node
from tidelog.core.quorum.values import LogPosition
from tidelog.core.wire.messages.api_01_fetch import FetchRequest
from tidelog.core.wire.schema import Message
from tidelog.worlds.simulator.cluster import SimCluster, SimNodeLayout, three_nodes
from tidelog.worlds.simulator.network import Network
from tidelog.worlds.simulator.world import SimWorld

A = TypeVar("A", bound=Message)
SETTING = "max.connections"
BROKER = 4
METADATA_DIRECTORY = "data/__cluster_metadata-0"


class QuorumCluster:
    """A cluster, and words for what its metadata quorum does."""

    def __init__(
        self,
        seed: int = 1,
        *,
        nodes: Sequence[SimNodeLayout] | None = None,
        settings: Mapping[str, str] | None = None,
        is_started: bool = True,
    ) -> None:
        self.world = SimWorld(seed=seed)
        self.cluster = SimCluster(
            self.world, Network(self.world), nodes=nodes or three_nodes(), settings=settings
        )
        self.done: list[str] = []
        self.lost: list[str] = []
        if is_started:
            self.cluster.start_all()
            self.until(lambda: self.leader is not None)

    # Looking

    @property
    def leaders(self) -> list[int]:
        running = self.cluster.running
        return [key for key in running if running[key].metadata.is_active]

    @property
    def leader(self) -> int | None:
        """The active controller of the newest epoch."""
        return max(self.leaders, key=lambda key: self.node(key).quorum.quorum_epoch, default=None)

    def node(self, node_id: int) -> Node:
        return self.cluster.node(node_id)

    def value_on(self, node_id: int) -> str | None:
        return self.node(node_id).image.cluster_config().get(SETTING)

    def log_of(self, node_id: int) -> bytes:
        """The bytes of a node's metadata log, from whichever segments."""
        segments = self.node(node_id).metadata.log.files.segments
        return b"".join(segment.file.read(0, segment.file.size_bytes) for segment in segments)

    def events(self, kind: str) -> list[str]:
        return [line for line in self.world.trace.lines() if f" {kind}(" in line]

    # Doing

    def until(self, condition: Callable[[], bool], *, within_ms: int = 10_000) -> None:
        self.world.run_until(condition, within_ms=within_ms)

    def run(self, ms: int) -> None:
        self.world.run_for(ms)

    def propose(self, value: str, *, at: int | None = None) -> int:
        """A setting gets a value, if the quorum agrees; the end offset of the record."""
        leader = self.leader if at is None else at
        assert leader is not None
        metadata = self.node(leader).metadata
        record = ConfigRecord(resource_type=BROKER, resource_name="", name=SETTING, value=value)
        metadata.propose(
            [record],
            lambda: self.done.append(value),
            otherwise=lambda: self.lost.append(value),
            now_ms=self.world.now_ms,
        )
        return metadata.log.log_end_offset

    def agree_on(self, value: str) -> None:
        self.propose(value)
        self.until(lambda: all(self.value_on(key) == value for key in self.cluster.running))

    def ask(self, node_id: int, question: Message, kind: type[A]) -> A:
        """Another node's or a client's question in its newest version, answered at once."""
        answers: list[Message] = []
        request = LocalRequest(question, max(HANDLERS[question.api_key].versions), answers.append)
        node = self.node(node_id)
        if isinstance(question, FetchRequest):  # its handler reads bytes; this is what is behind it
            node.quorum.fetch_server.handle(request, self.world.now_ms)
        else:
            HANDLERS[question.api_key].handle(node, request, self.world.now_ms)
        (answer,) = answers
        assert isinstance(answer, kind)
        return answer

    def take_snapshot(self) -> LogPosition:
        """Agree on records until the first node has made a snapshot of them."""
        snapshots = self.node(1).metadata.snapshots
        while snapshots.newest is None:
            self.agree_on("1")
            self.agree_on("2")
        return snapshots.newest

    def come_to_rest(self) -> None:
        """One leader, and every running node has the same log and knows that it is committed."""

        def is_at_rest() -> bool:
            nodes = self.cluster.running.values()
            ends = {node.metadata.log.log_end_offset for node in nodes}
            committed = {node.metadata.committed_end_offset for node in nodes}
            return self.leader is not None and len(ends) == 1 and committed == ends

        self.until(is_at_rest, within_ms=20_000)
