"""`tidelog.Cluster` for tests: unhurried settings, and questions to one broker of one's choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

from tests.process.broker import serves
from tests.process.waiting import PATIENCE_S, wait_until
from tests.process.wire import WireClient
from tidelog.cluster import processes
from tidelog.cluster.admin_fanout import unfenced
from tidelog.cluster.cluster import Cluster
from tidelog.cluster.layout import NodePlan, Setting
from tidelog.core.model.errors import ErrorCode

BOTH_ROLES = "broker,controller"
METADATA_TOPIC = "__cluster_metadata"

UNHURRIED: dict[str, Setting] = {
    "broker.session.timeout.ms": 30_000,
    "controller.quorum.fetch.timeout.ms": 6_000,
    "controller.quorum.request.timeout.ms": 6_000,
    "replica.lag.time.max.ms": 300_000,
}
"""Nobody is given up who only waits for a processor: that would move leaders under a test that did
not ask for it. Who was killed is found out at once, since nobody listens at its address."""


class PartitionView(NamedTuple):
    """A partition as one broker's Metadata has it."""

    leader: int
    leader_epoch: int
    replicas: list[int]
    isr: list[int]


class ProcessCluster(Cluster):
    """`with ProcessCluster(directory=...) as cluster:` comes when all brokers know each other.

    `roles` has one entry for each node, 1 and up. `settings_of` has what is different for a node.
    Without `faults` the brokers have no fault gates. At the end every node is killed.
    """

    def __init__(
        self,
        *,
        directory: Path,
        roles: Sequence[str] = (BOTH_ROLES, BOTH_ROLES, BOTH_ROLES),
        settings: Mapping[str, Setting] | None = None,
        settings_of: Mapping[int, Mapping[str, Setting]] | None = None,
        faults: bool = False,
    ) -> None:
        super().__init__(
            nodes=[
                NodePlan(id=node_id, roles=tuple(each.split(",")))
                for node_id, each in enumerate(roles, start=1)
            ],
            data=directory,
            settings={"default.replication.factor": 1, **UNHURRIED, **(settings or {})},
            settings_of=settings_of,
            faults=faults,
        )

    def __enter__(self) -> Self:
        self.start(timeout_s=PATIENCE_S)
        return self

    def close(self) -> None:
        if self.members.is_started:
            self.launcher.kill(self.node_ids)
        super().close()

    # What one broker says.

    def wire(self, broker_id: int) -> WireClient:
        return WireClient(self.nodes[broker_id].address)

    def known_brokers(self, broker_id: int) -> list[int]:
        """Those that are not fenced, as this one has it; none if it does not answer.

        Metadata is not asked: it lists a broker for a while after it was fenced, and one that has
        just woken up believes that nothing has happened.
        """
        views = self.queries.fanout.clusters([broker_id])
        return sorted(unfenced(views[broker_id])) if broker_id in views else []

    def active_controller(self) -> int:
        """As soon as anybody knows one."""
        return wait_until(self.controller, "an active controller") or 0

    def partition_view(self, topic: str, partition: int, *, via: int) -> PartitionView | None:
        """As one broker has it now; None if it cannot say."""
        with suppress(OSError), self.wire(via) as wire:
            answer = wire.ask("Metadata", 12, topics=[{"name": topic}])
            for each in answer.topics[0].partitions:
                if each.partition_index == partition:
                    return PartitionView(
                        leader=each.leader_id,
                        leader_epoch=each.leader_epoch,
                        replicas=list(each.replica_nodes),
                        isr=list(each.isr_nodes),
                    )
        return None

    def log_text(self, node_id: int) -> str:
        return self.nodes[node_id].log_path.read_text(errors="replace")

    # Topics.

    def ask_for_topic(self, topic: Mapping[str, Any], *, by: int) -> None:
        """CreateTopics for a name that is new, as plain data; comes back when it is committed.

        A broker asks the controller again if that does not answer for long. It may have made the
        topic by then, and says that it is there already.
        """
        with self.wire(by) as wire:
            [made] = wire.ask("CreateTopics", 7, topics=[dict(topic)], timeout_ms=60_000).topics
        is_made = made.error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
        assert is_made, made.error_message

    def create_topic(self, name: str, *, partitions: int, **configs: str) -> None:
        """With a copy on every broker; comes back when all of them lead and follow."""
        brokers = self.broker_ids
        wanted = [{"name": key.replace("_", "."), "value": text} for key, text in configs.items()]
        topic = {"name": name, "num_partitions": partitions, "replication_factor": len(brokers)}
        self.ask_for_topic({**topic, "configs": wanted}, by=brokers[0])
        for partition in range(partitions):
            self.wait_until_in_sync(name, partition)

    def wait_until_in_sync(self, topic: str, partition: int) -> None:
        """Until every broker says that all of them hold a copy and one leads."""
        brokers = list(self.broker_ids)

        def is_in_sync() -> bool:
            views = [self.partition_view(topic, partition, via=each) for each in brokers]
            return all(each is not None and sorted(each.isr) == brokers for each in views)

        wait_until(is_in_sync, f"all copies of {topic}-{partition}")

    # Processes.

    def wait_until_formed(self) -> None:
        """Until every broker names all of them."""
        self.wait_ready(timeout_s=PATIENCE_S)

    def launch_node(self, node_id: int) -> None:
        """Start the process only, over what its directory holds."""
        self.restart(node_id, wait=False)

    def rejoin(self, node_id: int) -> None:
        """Start it; comes back when all brokers know each other."""
        self.launch_node(node_id)
        self.wait_until_formed()

    def start_serving(self, node_id: int) -> None:
        """Start it; comes back when its Metadata names a live broker. Others may be dead."""
        self.launch_node(node_id)
        host, _, port = self.nodes[node_id].address.rpartition(":")
        wait_until(lambda: serves(host, int(port)), f"broker {node_id} to serve")

    def stop_node(self, node_id: int) -> int:
        """SIGTERM: the graceful end. Returns the exit code."""
        self.stop(node_id)
        return self.exit_code(node_id)

    def exit_code(self, node_id: int) -> int:
        """Of a process that ends, or has ended."""
        process = processes.read_pid_file(self.launcher.directory.pid(node_id))
        assert process is not None and process.ended_within(PATIENCE_S), f"node {node_id} runs on"
        code = processes.exit_code(process)
        assert code is not None
        return code
