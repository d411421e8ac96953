"""Kafka's own command line tools look after a cluster of three brokers."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.golden import cluster_live
from tests.golden.cluster import Cluster
from tests.golden.cluster_talk import NODES, ClusterTalk
from tests.kafka import Tool, ToolResult, run_tool
from tests.process.target import IS_KAFKA
from tests.process.waiting import wait_until

pytestmark = pytest.mark.java


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Three nodes from configuration files; leaders stay where they are until they are elected."""
    with cluster_live.apache_kafka() if IS_KAFKA else cluster_live.tidelog() as three:
        yield three


@pytest.fixture
def talk(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[ClusterTalk]:
    """Makes topics and waits for what tools do not wait for."""
    conversation = ClusterTalk(cluster, request.node.name.replace("_", "-")[:60])
    yield conversation
    conversation.close()


def tool(cluster: Cluster, which: Tool, *arguments: str) -> ToolResult:
    servers = ",".join(f"{node.host}:{node.port}" for node in cluster.nodes.values())
    return run_tool(which, ["--bootstrap-server", servers, *arguments])


def works(cluster: Cluster, which: Tool, *arguments: str) -> str:
    result = tool(cluster, which, *arguments)
    assert result.exit_code == 0, result.output + result.errors
    return result.output


def partitions(described: str) -> list[tuple[str, ...]]:
    """Partition, leader, replicas, in-sync replicas and eligible ones, as the tool shows them."""
    line = r"Partition: (\d+)\tLeader: (\S+)\tReplicas: (\S+)\tIsr: (\S*)\tElr: (\S*)\t"
    return re.findall(line, described)


def count_at(node: int, talk: ClusterTalk) -> int:
    """As many partitions of its topic as this node knows."""
    asked = {"topics": [{"name": talk.name()}], "allow_auto_topic_creation": False}
    answer = talk.quietly("Metadata", 9, on=(node, "quiet"), **asked)
    return len(answer["topics"][0]["partitions"])


def test_topics_are_created_on_brokers_and_described_with_their_replicas(
    cluster: Cluster, talk: ClusterTalk
) -> None:
    name = talk.name()
    placed = ("--replica-assignment", "3:1:2,1:2:3")
    works(cluster, Tool.TOPICS, "--create", "--topic", name, *placed)
    talk.wait_for_partition(name, 0, leader=3, isr=[1, 2, 3])
    talk.wait_for_partition(name, 1, leader=1, isr=[1, 2, 3])

    described = works(cluster, Tool.TOPICS, "--describe", "--topic", name)

    assert re.search(r"PartitionCount: 2\s+ReplicationFactor: 3", described)
    assert partitions(described) == [
        ("0", "3", "3,1,2", "3,1,2", ""),
        ("1", "1", "1,2,3", "1,2,3", ""),
    ]


def test_placed_by_the_controller_every_broker_leads_its_share(
    cluster: Cluster, talk: ClusterTalk
) -> None:
    shape = ("--partitions", "6", "--replication-factor", "3")
    works(cluster, Tool.TOPICS, "--create", "--topic", talk.name(), *shape)
    wait_until(lambda: all(count_at(node, talk) == 6 for node in NODES), "six partitions")

    described = partitions(works(cluster, Tool.TOPICS, "--describe", "--topic", talk.name()))

    assert sorted(replicas.split(",")[0] for _, _, replicas, _, _ in described) == list("112233")
    assert all(sorted(replicas) == sorted("1,2,3") for _, _, replicas, _, _ in described)


def test_a_leader_is_elected_back_when_its_broker_returns(
    cluster: Cluster, talk: ClusterTalk
) -> None:
    """In vain while it is away, then with success, then there is nothing to do."""
    topic, alone = talk.placed_topic([3, 1, 2]), talk.placed_topic([3], short="alone")
    preferred = ("--election-type", "preferred", "--topic", topic.name, "--partition", "0")

    talk.stop_node(3)
    in_vain = tool(cluster, Tool.LEADER_ELECTION, *preferred)
    unavailable = works(cluster, Tool.TOPICS, "--describe", "--unavailable-partitions")
    behind = works(cluster, Tool.TOPICS, "--describe", "--under-replicated-partitions")

    assert in_vain.exit_code != 0
    assert "PreferredLeaderNotAvailableException" in in_vain.output
    assert f"Topic: {alone.name}\tPartition: 0\tLeader: none" in unavailable
    assert topic.name not in unavailable
    assert f"Topic: {topic.name}\tPartition: 0\tLeader: 1\tReplicas: 3,1,2\tIsr: 1,2" in behind

    talk.start_node(3)
    talk.wait_for_partition(topic.name, 0, leader=1, isr=[1, 2, 3])
    done = works(cluster, Tool.LEADER_ELECTION, *preferred)
    talk.wait_for_partition(topic.name, 0, leader=3, isr=[1, 2, 3])
    again = works(cluster, Tool.LEADER_ELECTION, *preferred)

    assert "Successfully completed leader election (PREFERRED)" in done
    assert "Valid replica already elected" in again


def test_the_quorum_is_described(cluster: Cluster, talk: ClusterTalk) -> None:
    leader = talk.active_controller()
    followers = sorted(node for node in NODES if node != leader)

    status = works(cluster, Tool.METADATA_QUORUM, "describe", "--status")
    assert re.search(rf"LeaderId:\s+{leader}\n", status)
    assert re.search(r"LeaderEpoch:\s+\d+\n", status)
    assert re.search(r"HighWatermark:\s+\d+\n", status)
    assert [int(n) for n in re.findall(r'"id": (\d+)', status)] == list(NODES)
    assert re.search(r"CurrentObservers:\s+\[\]", status)

    table = works(cluster, Tool.METADATA_QUORUM, "describe", "--replication").splitlines()
    rows = [line.split() for line in table[1:] if line.strip()]
    assert [(int(row[0]), row[-1]) for row in rows] == [
        (leader, "Leader"),
        *((node, "Follower") for node in followers),
    ]
    assert all(re.fullmatch(r"[\w-]{22}", row[1]) for row in rows)


def test_features_are_described(cluster: Cluster) -> None:
    shown = works(cluster, Tool.FEATURES, "describe")
    levels = dict(re.findall(r"Feature: (\S+)\s.*FinalizedVersionLevel: (\S+)", shown))
    assert levels["metadata.version"] == "4.3-IV0"
    assert levels["eligible.leader.replicas.version"] == "1"


def test_every_broker_shows_its_versions(cluster: Cluster) -> None:
    shown = works(cluster, Tool.BROKER_API_VERSIONS)
    assert sorted(re.findall(r"\(id: (\d+) rack: null", shown)) == ["1", "2", "3"]
    for api in ("ElectLeaders(43): 0 to 2 [usable: 2]", "DescribeQuorum(55): 0 to 2 [usable: 2]"):
        assert shown.count(api) == len(NODES)
