"""Three brokers under test: Tidelog and Apache Kafka with the same handles and the same settings.

Everything about them is asked over the wire, so that both are looked at in the same way.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import tidelog
from bench.brokers import KAFKA, KAFKA_HEAP, SETTINGS, TIDELOG
from tests.kafka import KafkaCluster
from tests.process.wire import WireClient

BROKERS = 3
PATIENCE_S = 300.0
PAUSE_S = 0.02
PREFERRED = 0
METADATA_LOG = "__cluster_metadata"
MIN_INSYNC = {"name": "min.insync.replicas", "value": "2"}


class NotInTime(Exception):
    """The cluster did not get where the benchmark needs it."""


class Cluster(ABC):
    """Three brokers of one make, 1 to 3."""

    name: str
    replication_factor = BROKERS

    def __init__(self, addresses: Mapping[int, str]) -> None:
        self.addresses = dict(addresses)

    @property
    def address(self) -> str:
        """All brokers, as clients want it."""
        return ",".join(self.addresses.values())

    @property
    def pids(self) -> list[int]:
        """Of those that run, in order."""
        found = [self.pid(broker_id) for broker_id in self.addresses]
        return [pid for pid in found if pid is not None]

    @abstractmethod
    def pid(self, broker_id: int) -> int | None:
        """None: it does not run."""

    @abstractmethod
    def log_path(self, broker_id: int) -> Path: ...

    @abstractmethod
    def kill(self, *broker_ids: int) -> None:
        """kill -9."""

    @abstractmethod
    def stop(self, broker_id: int) -> None:
        """SIGTERM, until it has ended."""

    @abstractmethod
    def start(self, *broker_ids: int) -> None:
        """Their processes only."""

    def log_lines(self, broker_id: int) -> list[str]:
        path = self.log_path(broker_id)
        return path.read_text(errors="replace").splitlines() if path.exists() else []

    # What the cluster says.

    def ask(self, api: str, version: int, *, at: int | None = None, **fields: Any) -> Any:
        """The answer of that broker, or of the first that answers at all."""
        for broker_id in self.addresses if at is None else [at]:
            if self.pid(broker_id) is not None:
                with suppress(OSError), WireClient(self.addresses[broker_id]) as wire:
                    return wire.ask(api, version, **fields)
        return None

    def partitions(self, topic: str, *, at: int | None = None) -> dict[int, Any]:
        """What Metadata tells of each partition; empty while nobody can say."""
        answer = self.ask("Metadata", 12, at=at, topics=[{"name": topic}])
        if answer is None or answer.topics[0].error_code:
            return {}
        return {each.partition_index: each for each in answer.topics[0].partitions}

    def controller(self) -> int | None:
        """The active controller: the leader of the metadata log."""
        requested = {"topic_name": METADATA_LOG, "partitions": [{"partition_index": 0}]}
        answer = self.ask("DescribeQuorum", 1, topics=[requested])
        if answer is None or answer.error_code or not answer.topics:
            return None
        leader: int = answer.topics[0].partitions[0].leader_id
        return leader if leader in self.addresses else None

    def known_brokers(self, broker_id: int) -> set[int]:
        """The brokers that this one tells its clients of."""
        answer = self.ask("Metadata", 12, at=broker_id, topics=[])
        return set() if answer is None else {broker.node_id for broker in answer.brokers}

    # What the benchmarks wait for and make.

    def wait_until_formed(self) -> None:
        everybody = set(self.addresses)
        wait(
            lambda: all(self.known_brokers(each) == everybody for each in everybody),
            "all brokers to know each other",
        )

    def wait_until_in_sync(self, topic: str) -> None:
        """Until every broker says that all copies of all partitions are in sync."""

        def is_in_sync() -> bool:
            for broker_id in self.addresses:
                found = self.partitions(topic, at=broker_id).values()
                if not found or any(
                    each.error_code or set(each.isr_nodes) != set(each.replica_nodes)
                    for each in found
                ):
                    return False
            return True

        wait(is_in_sync, f"all copies of {topic}")

    def create_topic(self, name: str, assignment: list[list[int]]) -> None:
        """One partition for each list of replicas, of which the first is preferred."""
        wanted = [
            {"partition_index": index, "broker_ids": brokers}
            for index, brokers in enumerate(assignment)
        ]
        topic = {
            "name": name,
            "num_partitions": -1,
            "replication_factor": -1,
            "configs": [MIN_INSYNC],
        }
        answer = self.ask(
            "CreateTopics", 7, topics=[{**topic, "assignments": wanted}], timeout_ms=30_000
        )
        if answer is None or answer.topics[0].error_code:
            raise NotInTime(f"{self.name} does not create {name}: {answer}")
        self.wait_until_in_sync(name)

    def elect_preferred(self, topic: str, leaders: Mapping[int, int]) -> None:
        """Until each partition is led by the broker that it is given."""

        def are_leading() -> bool:
            found = self.partitions(topic)
            if {index: each.leader_id for index, each in found.items()} == dict(leaders):
                return True
            requested = [{"topic": topic, "partitions": sorted(leaders)}]
            self.ask(
                "ElectLeaders",
                2,
                election_type=PREFERRED,
                topic_partitions=requested,
                timeout_ms=30_000,
            )
            return False

        wait(are_leading, f"the preferred leaders of {topic}")


def wait(
    condition: Callable[[], bool],
    what: str,
    *,
    within_s: float = PATIENCE_S,
    pause_s: float = PAUSE_S,
) -> None:
    """Until it is true."""
    deadline_s = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline_s:
            raise NotInTime(f"waited {within_s:g} s in vain for {what}")
        time.sleep(pause_s)


class TidelogCluster(Cluster):
    """Processes of this very checkout, with the settings that everybody gets."""

    name = TIDELOG

    def __init__(self, cluster: tidelog.Cluster) -> None:
        super().__init__({each: node.address for each, node in cluster.nodes.items()})
        self.cluster = cluster

    def pid(self, broker_id: int) -> int | None:
        return self.cluster.nodes[broker_id].pid

    def log_path(self, broker_id: int) -> Path:
        return self.cluster.nodes[broker_id].log_path

    def kill(self, *broker_ids: int) -> None:
        self.cluster.kill(*broker_ids)

    def stop(self, broker_id: int) -> None:
        self.cluster.stop(broker_id)

    def start(self, *broker_ids: int) -> None:
        self.cluster.restart(*broker_ids, wait=False)


class ThreeKafkas(Cluster):
    """Combined KRaft nodes."""

    name = KAFKA

    def __init__(self, kafka: KafkaCluster) -> None:
        self._nodes = {node.node_id: node for node in kafka.nodes}
        super().__init__({each: node.address for each, node in self._nodes.items()})

    def pid(self, broker_id: int) -> int | None:
        node = self._nodes[broker_id]
        return node.pid if node.is_running else None

    def log_path(self, broker_id: int) -> Path:
        return self._nodes[broker_id].directory / "broker.log"

    def kill(self, *broker_ids: int) -> None:
        for broker_id in broker_ids:
            self._nodes[broker_id].kill()

    def stop(self, broker_id: int) -> None:
        self._nodes[broker_id].stop()

    def start(self, *broker_ids: int) -> None:
        for broker_id in broker_ids:
            self._nodes[broker_id].start()


@contextmanager
def running_cluster(name: str, settings: Mapping[str, str] | None = None) -> Iterator[Cluster]:
    """Three brokers that know each other, in a directory that is removed afterwards."""
    merged = {**SETTINGS, **(settings or {})}
    if name == KAFKA:
        with KafkaCluster(brokers=BROKERS, settings=merged, heap=KAFKA_HEAP) as kafka:
            cluster = ThreeKafkas(kafka)
            cluster.wait_until_formed()
            yield cluster
        return
    with tidelog.Cluster(BROKERS, settings=merged, faults=False) as ours:
        yield TidelogCluster(ours)


@contextmanager
def directory_for_bench() -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="tidelog-bench-"))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)
