"""Who may speak to a controller: real brokers refuse strangers, and a node with a wrong secret."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import SystemRandom

import pytest

from tests.process.cluster import ProcessCluster
from tests.process.ports import HOST
from tests.process.target import IS_KAFKA
from tests.process.test_broker_start import run_to_the_end, write
from tests.process.waiting import PATIENCE_S, wait_until
from tidelog.client.shells.wire_connection import WireConnection
from tidelog.cluster.cluster import PROGRAM
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.links import IntroductionFailed, Outgoing
from tidelog.core.wire.member_proof import MemberProof
from tidelog.core.wire.scram import Credentials
from tidelog.worlds.simulator import node_requests

pytestmark = [
    pytest.mark.skipif(IS_KAFKA, reason="Apache Kafka has listeners and authorizers for this"),
    pytest.mark.xdist_group("membership"),
]

WRONG_SECRET = "a secret that nobody else was given"
TOPIC = "orders"


def connect(cluster: ProcessCluster, node_id: int) -> WireConnection:
    port = int(cluster.nodes[node_id].address.rpartition(":")[2])
    return WireConnection(HOST, port, client_id="stranger", timeout_s=PATIENCE_S)


def proof(secret: str) -> MemberProof:
    return MemberProof(Credentials.of(secret), user="stranger", random=SystemRandom())


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessCluster]:
    with ProcessCluster(directory=tmp_path_factory.mktemp("cluster")) as running:
        running.create_topic(TOPIC, partitions=1)
        yield running


@pytest.mark.scenario("X-49")
@pytest.mark.parametrize("name", ["Vote", "AlterPartition", "BrokerRegistration", "Envelope"])
def test_a_stranger_is_refused_and_nothing_changes(cluster: ProcessCluster, name: str) -> None:
    controller = cluster.active_controller()
    view = cluster.partition_view(TOPIC, 0, via=controller)
    assert view is not None
    with cluster.wire(controller) as wire:
        topic_id = wire.ask("Metadata", 12, topics=[{"name": TOPIC}]).topics[0].topic_id
    requests: dict[str, Outgoing] = {
        "Vote": node_requests.vote(quorum_epoch=1_000, voter=controller),
        "AlterPartition": node_requests.alter_partition(
            topic_id=topic_id, leader=view.leader, broker_epoch=0
        ),
        "BrokerRegistration": node_requests.registration(),
        "Envelope": node_requests.envelope(topic="stolen"),
    }

    with connect(cluster, controller) as stranger:
        answer = stranger.request(*requests[name])

    code = getattr(answer, "error_code", None)
    assert code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert cluster.active_controller() == controller
    assert cluster.partition_view(TOPIC, 0, via=controller) == view
    assert cluster.known_brokers(controller) == [1, 2, 3]
    with cluster.wire(controller) as wire:
        [found] = wire.ask(
            "Metadata", 12, topics=[{"name": "stolen"}], allow_auto_topic_creation=False
        ).topics
    assert found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_who_knows_the_secret_is_a_member_and_who_guesses_is_dropped(
    cluster: ProcessCluster,
) -> None:
    secret = cluster.launcher.directory.read_secret()
    controller = cluster.active_controller()
    with connect(cluster, controller) as member:
        member.introduce(proof(secret))
        answer = member.request(*node_requests.vote(quorum_epoch=0, voter=controller))
        assert getattr(answer, "error_code", None) == ErrorCode.NONE

    with connect(cluster, controller) as stranger:
        with pytest.raises(IntroductionFailed, match=r"another tidelog\.cluster\.secret"):
            stranger.introduce(proof(WRONG_SECRET))
        with pytest.raises(ConnectionError):
            stranger.request(*node_requests.registration())


def test_the_secret_stands_in_one_file_that_only_its_owner_reads(cluster: ProcessCluster) -> None:
    directory = cluster.launcher.directory
    secret = directory.read_secret()

    assert directory.secret_path.stat().st_mode & 0o777 == 0o600
    others = [
        path
        for path in directory.root.rglob("*")
        if path.is_file() and path != directory.secret_path
    ]
    assert len(others) > len(cluster.node_ids)
    assert not [path for path in others if secret.encode() in path.read_bytes()]


@pytest.mark.scenario("X-49")
def test_a_node_with_a_wrong_secret_never_joins(tmp_path: Path) -> None:
    outcast = 3
    wrong = {outcast: {"tidelog.cluster.secret": WRONG_SECRET}}
    cluster = ProcessCluster(directory=tmp_path, settings_of=wrong)
    try:
        cluster.launch(kind=PROGRAM)
        wait_until(lambda: cluster.known_brokers(1) == [1, 2], "1 and 2 to form a cluster")
        said = "the other node has another tidelog.cluster.secret"
        wait_until(lambda: said in cluster.log_text(outcast), "node 3 to say what is wrong")
        refused = "PeerNotAuthenticated"
        wait_until(lambda: refused in cluster.log_text(1), "node 1 to say that it refused 3")

        topic = {"name": TOPIC, "num_partitions": 1, "replication_factor": 2}
        cluster.ask_for_topic(topic, by=1)

        assert cluster.known_brokers(1) == cluster.known_brokers(2) == [1, 2]
        assert "RegisteredHere" not in cluster.log_text(outcast)
        assert cluster.is_running(outcast)
    finally:
        cluster.close()


def test_several_nodes_do_not_start_without_a_secret(tmp_path: Path) -> None:
    config = write(
        tmp_path / "broker.toml",
        f'node.id = 1\ncluster.id = "orders-cluster"\nlog.dirs = "{tmp_path}/data"\n'
        'controller.quorum.voters = "1@127.0.0.1:9092,2@127.0.0.1:9093"\n',
    )

    refused = run_to_the_end("--config", config)

    assert refused.returncode == 2
    [line] = refused.stderr.splitlines()
    assert "tidelog.cluster.secret: must be set" in line
    assert "tidelog.cluster.secret.file" in line
