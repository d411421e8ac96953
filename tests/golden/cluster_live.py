"""Live clusters for the oracle, three nodes of Kafka or of Tidelog, and a pass over cases."""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.golden.cases.registry import Case
from tests.golden.cluster import Cluster, SimpleNode
from tests.golden.cluster_talk import LEAVING, NODES, ClusterTalk
from tests.golden.live import KAFKA_SETTINGS, show_progress
from tests.golden.recordings import Steps
from tests.kafka import KafkaCluster
from tests.kafka.broker import START_TIMEOUT_S, KafkaNode
from tests.process.cluster import ProcessCluster
from tests.process.ports import HOST

SETTINGS = {
    # Whoever leads stays leader until a case elects another, and who waits for a processor lives.
    "auto.leader.rebalance.enable": "false",
    "broker.session.timeout.ms": "60000",
    "controller.quorum.fetch.timeout.ms": "10000",
    # A follower's fetch in flight knows nothing of a topic made meanwhile: do not wait long for it.
    "replica.fetch.wait.max.ms": "20",
}
LAST_APIS = ("AlterPartitionReassignments", "UnregisterBroker")
"""Their cases take a node away from all others, so they come at the very end, in this order."""


@contextmanager
def apache_kafka() -> Iterator[Cluster]:
    """Three fresh nodes of Apache Kafka."""
    settings = {**KAFKA_SETTINGS, **SETTINGS}
    options = ["-XX:TieredStopAtLevel=1"]
    with KafkaCluster(brokers=len(NODES), settings=settings, java_options=options) as kafka:
        cluster = Cluster([_kafka_node(node) for node in kafka.nodes])
        _wait_for_all(cluster)
        yield cluster


def _kafka_node(node: KafkaNode) -> SimpleNode:
    def start() -> None:
        node.start()
        node.wait_until_serving(time.monotonic() + START_TIMEOUT_S)

    return SimpleNode(
        node.node_id,
        host=HOST,
        port=node.port,
        controller_port=node.controller_port,
        start=start,
        stop=node.stop,
    )


@contextmanager
def tidelog() -> Iterator[Cluster]:
    """Three fresh Tidelog processes, each started from a configuration file of its own."""
    with (
        TemporaryDirectory(prefix="tidelog-") as directory,
        ProcessCluster(directory=Path(directory), settings=SETTINGS) as processes,
    ):
        yield Cluster([_tidelog_node(processes, node_id) for node_id in processes.node_ids])


def _tidelog_node(processes: ProcessCluster, node_id: int) -> SimpleNode:
    host, _, port = processes.nodes[node_id].address.rpartition(":")
    return SimpleNode(
        node_id,
        host=host,
        port=int(port),
        controller_port=int(port),
        start=lambda: processes.start_serving(node_id),
        stop=lambda: processes.stop_node(node_id),
        secret=processes.launcher.directory.read_secret(),
    )


def _wait_for_all(cluster: Cluster) -> None:
    talk = ClusterTalk(cluster, "warm-up")
    talk.wait_for_brokers(*NODES)
    talk.close()


def run_all(cases: Sequence[Case], cluster: Cluster, *, label: str) -> dict[str, Steps]:
    """Hold every conversation; those with several acts go through them together."""
    last = [case for api in LAST_APIS for case in cases if case.api == api]
    play = _Play(cluster, label, len(cases))
    play.begin([case for case in cases if case.api not in LAST_APIS])
    if play.unfinished:
        play.move(lambda talk: talk.stop_node(LEAVING))
        play.go_on()
        play.move(lambda talk: talk.start_node(LEAVING))
        play.go_on()
    assert not play.unfinished, f"more than three acts: {list(play.unfinished)}"
    play.begin(last)
    return {case.name: play.told[case.name] for case in cases}


class _Play:
    """Where each conversation stands."""

    def __init__(self, cluster: Cluster, label: str, count: int) -> None:
        self.told: dict[str, Steps] = {}
        self.unfinished: dict[str, tuple[ClusterTalk, Any]] = {}
        self._cluster = cluster
        self._label = label
        self._count = count

    def begin(self, cases: Sequence[Case]) -> None:
        for case in cases:
            talk = ClusterTalk(self._cluster, case.name)
            with _blaming(case.name):
                acts = case.run(talk)
                if inspect.isgenerator(acts):
                    next(acts)
                    self.unfinished[case.name] = (talk, acts)
                else:
                    self._end(case.name, talk)

    def move(self, act: Any) -> None:
        """Between acts: connections to a node that leaves would be of no use."""
        for talk, _ in self.unfinished.values():
            talk.close()
        talk = ClusterTalk(self._cluster, "stage")
        act(talk)
        talk.close()

    def go_on(self) -> None:
        for name, (talk, acts) in list(self.unfinished.items()):
            with _blaming(name):
                if next(acts, self) is self:
                    del self.unfinished[name]
                    self._end(name, talk)

    def _end(self, name: str, talk: ClusterTalk) -> None:
        talk.close()
        self.told[name] = json.loads(json.dumps(talk.steps))
        show_progress(self._label, len(self.told), self._count, name)


@contextmanager
def _blaming(name: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        error.add_note(f"in case {name}")
        raise
