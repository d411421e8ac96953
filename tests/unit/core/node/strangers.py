"""Somebody who speaks to a node of a simulated cluster without being one of its nodes."""

from __future__ import annotations

from random import Random

from tidelog.core.node.connections.connection import Connection
from tidelog.core.node.node import Node
from tidelog.core.wire.links import IntroductionFailed
from tidelog.core.wire.member_proof import MemberProof
from tidelog.core.wire.schema import Message
from tidelog.core.wire.scram import Credentials
from tidelog.worlds.simulator.client import CallFailed, Outcome, WireClient
from tidelog.worlds.simulator.cluster import CLUSTER_SECRET, SimCluster, SimNodeLayout, host_of
from tidelog.worlds.simulator.network import Network
from tidelog.worlds.simulator.world import SimWorld

NAME = "stranger"


class Stranger:
    """A cluster with an active controller, and a client with one connection to it."""

    def __init__(
        self,
        *,
        nodes: int = 3,
        secret: str | None = CLUSTER_SECRET,
        secrets_of: dict[int, str] | None = None,
    ) -> None:
        self.world = SimWorld(seed=1)
        network = Network(self.world)
        self.cluster = SimCluster(
            self.world,
            network,
            nodes=[SimNodeLayout(node_id) for node_id in range(1, nodes + 1)],
            node_settings={
                node_id: {"tidelog.cluster.secret": text}
                for node_id, text in (secrets_of or {}).items()
            },
            has_secret=secret is not None,
        )
        self.cluster.start_all()
        self.world.run_until(lambda: self.controller is not None, within_ms=20_000)
        self.run(1_000)
        self._client = WireClient(
            world=self.world, network=network, name=NAME, server=host_of(self.active_controller)
        )

    @property
    def controller(self) -> int | None:
        running = self.cluster.running
        return next((key for key, node in running.items() if node.metadata.is_active), None)

    @property
    def active_controller(self) -> int:
        assert self.controller is not None
        return self.controller

    @property
    def node(self) -> Node:
        return self.cluster.node(self.active_controller)

    def connections(self) -> list[Connection]:
        return [each for each in self.node.connections.open.values() if NAME in each.peer]

    def run(self, ms: int = 100) -> None:
        self.world.run_for(ms)

    def ask(self, request: Message, version: int) -> Outcome:
        outcomes: list[Outcome] = []
        self._client.call(request, version, outcomes.append)
        self.world.run_until(lambda: bool(outcomes), within_ms=10_000)
        return outcomes[0]

    def prove(self, secret: str = CLUSTER_SECRET) -> IntroductionFailed | CallFailed | None:
        """Become a member; what it failed of, if it failed."""
        proof = MemberProof(Credentials.of(secret), user=NAME, random=Random(7))
        requests = list(proof.begin())
        while requests:
            answer = self.ask(*requests.pop(0))
            if isinstance(answer, CallFailed):
                return answer
            try:
                requests += proof.on_answer(answer)
            except IntroductionFailed as error:
                return error
        return None
