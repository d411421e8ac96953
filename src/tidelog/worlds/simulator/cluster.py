"""A simulated cluster: one process with one disk per node, and every fault by the node's number.

Hosts are named after their nodes (`node-1`). Every node's configuration names the voters: all nodes
with the role `controller`. Faults are the verbs of a story: kill, stop, pause, lose_power, wipe,
cut, isolate, hold, and what undoes each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tidelog.core.node.node import Node
from tidelog.core.node.settings import NodeSettings
from tidelog.worlds.simulator.disk import SimDisk
from tidelog.worlds.simulator.network import Network
from tidelog.worlds.simulator.node_process import NodeFactory, Ports
from tidelog.worlds.simulator.process import SimProcess
from tidelog.worlds.simulator.world import SimWorld

CLUSTER_ID = "c2ltdWxhdGVkLWNsdXN0ZQ"
CLUSTER_SECRET = "the secret of all simulated clusters"
PORT = 9092
BROKER, CONTROLLER = "broker", "controller"


class SimNodeLayout(NamedTuple):
    """One node of a cluster, as it is configured."""

    node_id: int
    rack: str | None = None
    roles: Sequence[str] = (BROKER, CONTROLLER)


def host_of(node_id: int) -> str:
    return f"node-{node_id}"


def three_nodes() -> tuple[SimNodeLayout, ...]:
    return tuple(SimNodeLayout(node_id) for node_id in (1, 2, 3))


class SimCluster:
    """The processes of a cluster over one world and one network."""

    def __init__(
        self,
        world: SimWorld,
        network: Network,
        *,
        nodes: Sequence[SimNodeLayout] = three_nodes(),
        settings: Mapping[str, str] | None = None,
        node_settings: Mapping[int, Mapping[str, str]] | None = None,
        disk_type: type[SimDisk] = SimDisk,
        sync_us_max: int = 3_000,
        check_every: int = 1,
        has_secret: bool = True,
    ) -> None:
        """`settings` are for all nodes, `node_settings` for single ones, above those."""
        self.world = world
        self.network = network
        self.layout = {node.node_id: node for node in nodes}
        secret = {"tidelog.cluster.secret": CLUSTER_SECRET} if has_secret else {}
        self._settings = {**secret, **(settings or {})}
        self._node_settings = {key: dict(value) for key, value in (node_settings or {}).items()}
        self.processes = {
            node.node_id: SimProcess(
                world=world,
                network=network,
                name=host_of(node.node_id),
                make_node=self._factory(node),
                disk_type=disk_type,
                sync_us_max=sync_us_max,
                check_every=check_every,
            )
            for node in nodes
        }

    # Looking at it.

    @property
    def node_ids(self) -> list[int]:
        return list(self.processes)

    @property
    def voters(self) -> list[int]:
        return [node.node_id for node in self.layout.values() if CONTROLLER in node.roles]

    @property
    def bootstrap_servers(self) -> str:
        brokers = (node.node_id for node in self.layout.values() if BROKER in node.roles)
        return ",".join(f"{host_of(node_id)}:{PORT}" for node_id in brokers)

    @property
    def running(self) -> dict[int, Node]:
        """The nodes whose processes run, paused ones included."""
        return {key: self.node(key) for key, process in self.processes.items() if process.is_up}

    def process(self, node_id: int) -> SimProcess:
        return self.processes[node_id]

    def node(self, node_id: int) -> Node:
        """The broker's own object: for reading what it knows, never for changing it."""
        node = self.processes[node_id].node
        assert isinstance(node, Node)
        return node

    def texts(self, node_id: int) -> dict[str, str]:
        """The settings of one node, by Kafka's names."""
        layout = self.layout[node_id]
        texts = {
            "node.id": str(node_id),
            "process.roles": ",".join(layout.roles),
            "listeners": f"PLAINTEXT://{host_of(node_id)}:{PORT}",
            "log.dirs": "data",
            "controller.quorum.voters": ",".join(
                f"{voter}@{host_of(voter)}:{PORT}" for voter in self.voters
            ),
        }
        if layout.rack is not None:
            texts["broker.rack"] = layout.rack
        return texts | self._settings | self._node_settings.get(node_id, {})

    def configure(self, node_id: int, settings: Mapping[str, str]) -> None:
        """Change a node's file; it is read at the next start."""
        self._node_settings.setdefault(node_id, {}).update(settings)

    # What happens to processes.

    def start(self, node_id: int) -> None:
        self.processes[node_id].start()

    def start_all(self) -> None:
        """Every node that does not run, in the order of the layout."""
        for process in self.processes.values():
            if not process.is_up:
                process.start()

    def kill(self, node_id: int) -> None:
        self.processes[node_id].kill()

    def stop(self, node_id: int, *, within_ms: int = 30_000) -> None:
        """SIGTERM, and wait until the process is over."""
        self.begin_stop(node_id)
        process = self.processes[node_id]
        self.world.run_until(lambda: not process.is_up, within_ms=within_ms)

    def begin_stop(self, node_id: int) -> None:
        """SIGTERM; the node may take its time."""
        self.processes[node_id].stop()

    def pause(self, node_id: int) -> None:
        self.processes[node_id].pause()

    def wake(self, node_id: int) -> None:
        self.processes[node_id].wake()

    def lose_power(self, node_id: int) -> None:
        self.processes[node_id].lose_power()

    def wipe(self, node_id: int) -> None:
        self.processes[node_id].wipe()

    # What happens between nodes.

    def cut(self, node_id: int, other_id: int, *, one_way: bool = False) -> None:
        """Neither reaches the other; with `one_way` only the first no longer reaches the second."""
        self._cut(host_of(node_id), host_of(other_id), one_way=one_way)

    def heal(self, node_id: int, other_id: int) -> None:
        """Both ways."""
        self.network.heal(host_of(node_id), host_of(other_id))
        self.network.heal(host_of(other_id), host_of(node_id))

    def isolate(self, node_id: int, *, also_from: Iterable[str] = ()) -> None:
        """No other node reaches this one nor is reached by it; clients are other hosts."""
        others = [host_of(other) for other in self.processes if other != node_id]
        for other in (*others, *also_from):
            self._cut(host_of(node_id), other, one_way=False)

    def heal_all(self) -> None:
        """No cut, no hold and no slow link is left anywhere."""
        self.network.heal_all()

    def hold(self, source_id: int, target_id: int, purpose: str) -> None:
        """Keep back bytes from source to target on links of that purpose, whoever opened them."""
        self.network.hold(host_of(source_id), host_of(target_id), purpose)

    def release(self, source_id: int, target_id: int, purpose: str) -> None:
        self.network.release(host_of(source_id), host_of(target_id), purpose)

    # Inside.

    def _cut(self, source: str, target: str, *, one_way: bool) -> None:
        self.network.cut(source, target)
        if not one_way:
            self.network.cut(target, source)

    def _factory(self, layout: SimNodeLayout) -> NodeFactory:
        def make(ports: Ports) -> Node:
            return Node(
                settings=NodeSettings.of(self.texts(layout.node_id), cluster_id=CLUSTER_ID),
                disk=ports.disk,
                outbox=ports.outbox,
                trace=ports.trace,
                random=ports.random,
                wall_ms=ports.wall_ms,
            )

        return make
