"""A cluster of real broker processes from configuration files, on free loopback ports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from tests.process.broker import BrokerFailed, BrokerProcess, Setting
from tests.process.ports import HOST, free_port
from tests.process.waiting import wait_until
from tests.process.wire import WireClient
from tidelog.core.model.errors import ErrorCode

CLUSTER_ID = "a-cluster-of-tests"
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


class Standing(NamedTuple):
    """What the cluster says of one partition."""

    leader: int
    leader_epoch: int
    replicas: list[int]
    isr: list[int]


class ClusterProcesses:
    """`with ClusterProcesses(directory=...) as cluster:` comes when all brokers know each other.

    `roles` has one entry for each node, 1 and up. `settings_of` has what is different for a node.
    A restarted node keeps port and directory.
    """

    def __init__(
        self,
        *,
        directory: Path,
        roles: Sequence[str] = (BOTH_ROLES, BOTH_ROLES, BOTH_ROLES),
        settings: Mapping[str, Setting] | None = None,
        settings_of: Mapping[int, Mapping[str, Setting]] | None = None,
        arguments: Sequence[str] = (),
    ) -> None:
        self._directory = directory
        self._roles = dict(enumerate(roles, start=1))
        self._settings = dict(settings or {})
        self._settings_of = dict(settings_of or {})
        self._arguments = arguments
        self.nodes: dict[int, BrokerProcess] = {}

    def __enter__(self) -> Self:
        self._make_nodes()
        try:
            for node in self.nodes.values():
                node.launch()
            self.wait_until_formed()
        except BaseException as error:
            self.kill_all()
            error.add_note(self.logs())
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill_all()
        if error is not None:
            error.add_note(self.logs())

    # Looking at it.

    @property
    def broker_ids(self) -> list[int]:
        return [node_id for node_id, roles in self._roles.items() if "broker" in roles]

    @property
    def bootstrap(self) -> str:
        """All brokers, as clients want it."""
        return ",".join(self.nodes[broker_id].address for broker_id in self.broker_ids)

    def wire(self, broker_id: int) -> WireClient:
        return WireClient(self.nodes[broker_id].address)

    def known_brokers(self, broker_id: int) -> list[int]:
        """Those that are not fenced, as this one has it; none if it does not answer.

        Metadata is not asked: it lists a broker for a while after it was fenced, and one that has
        just woken up believes that nothing has happened.
        """
        with suppress(OSError), self.wire(broker_id) as wire:
            told = wire.ask("DescribeCluster", 0).brokers
            return sorted(broker.broker_id for broker in told)
        return []

    def active_controller(self) -> int:
        """As soon as anybody knows one; of several the newest, since a former one may not know."""
        topics = [{"topic_name": METADATA_TOPIC, "partitions": [{"partition_index": 0}]}]

        def newest() -> tuple[int, int] | None:
            told: list[tuple[int, int]] = []
            for node_id, node in self.nodes.items():
                with suppress(OSError):
                    if node.is_running:
                        with self.wire(node_id) as wire:
                            answer = wire.ask("DescribeQuorum", 2, topics=topics)
                        told += [
                            (int(found.leader_epoch), int(found.leader_id))
                            for topic in answer.topics
                            for found in topic.partitions
                            if found.error_code == 0 and found.leader_id >= 0
                        ]
            return max(told, default=None)

        return wait_until(newest, "an active controller")[1]

    def standing(self, topic: str, partition: int, *, told_by: int) -> Standing | None:
        """As one broker tells it now; None if it cannot say."""
        with suppress(OSError), self.wire(told_by) as wire:
            answer = wire.ask("Metadata", 12, topics=[{"name": topic}])
            for each in answer.topics[0].partitions:
                if each.partition_index == partition:
                    return _standing(each)
        return None

    def logs(self) -> str:
        return "\n".join(
            f"node {node_id} said:\n{node.last_log_lines()}" for node_id, node in self.nodes.items()
        )

    # What is done to it.

    def ask_for_topic(self, topic: Mapping[str, Any], *, by: int) -> None:
        """CreateTopics for a name that is new, as plain data; comes back when it is committed.

        A broker asks the controller again if that does not answer for long. It may have made the
        topic by then, and says that it is there already.
        """
        with self.wire(by) as wire:
            [told] = wire.ask("CreateTopics", 7, topics=[dict(topic)], timeout_ms=60_000).topics
        is_made = told.error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
        assert is_made, told.error_message

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
        brokers = self.broker_ids

        def is_in_sync() -> bool:
            told = [self.standing(topic, partition, told_by=each) for each in brokers]
            return all(each is not None and sorted(each.isr) == brokers for each in told)

        wait_until(is_in_sync, f"all copies of {topic}-{partition}")

    def kill(self, node_id: int) -> None:
        """kill -9."""
        self.nodes[node_id].kill()

    def restart(self, node_id: int) -> None:
        """Over what its directory holds; comes back when all brokers know each other."""
        self.nodes[node_id].launch()
        self.wait_until_formed()

    def kill_all(self) -> None:
        for node in self.nodes.values():
            node.kill()

    def wait_until_formed(self) -> None:
        """Until every broker names all of them."""

        def is_formed() -> bool:
            for node_id, node in self.nodes.items():
                if not node.is_running:
                    raise BrokerFailed(f"node {node_id} ended\n{node.last_log_lines()}")
            return all(self.known_brokers(each) == self.broker_ids for each in self.broker_ids)

        wait_until(is_formed, "all brokers to know each other")

    # Inside.

    def _make_nodes(self) -> None:
        ports = {node_id: free_port() for node_id in self._roles}
        voters = ",".join(
            f"{node_id}@{HOST}:{ports[node_id]}"
            for node_id, roles in self._roles.items()
            if "controller" in roles
        )
        self.nodes = {
            node_id: BrokerProcess(
                directory=self._directory / f"node-{node_id}",
                arguments=self._arguments,
                port=ports[node_id],
                settings={
                    "node.id": node_id,
                    "cluster.id": CLUSTER_ID,
                    "process.roles": roles,
                    "controller.quorum.voters": voters,
                    **UNHURRIED,
                    **self._settings,
                    **self._settings_of.get(node_id, {}),
                },
            )
            for node_id, roles in self._roles.items()
        }


def _standing(partition: Any) -> Standing:
    return Standing(
        leader=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        replicas=list(partition.replica_nodes),
        isr=list(partition.isr_nodes),
    )
