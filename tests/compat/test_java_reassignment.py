"""kafka-reassign-partitions of Kafka moves partitions between three brokers, and back."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.compat.test_java_tools_cluster import cluster, partitions, talk, tool, works
from tests.golden.cluster import Cluster
from tests.golden.cluster_talk import ClusterTalk
from tests.kafka import Tool
from tests.process.client_verbs import CommandLine

__all__ = ["cluster", "talk"]

pytestmark = pytest.mark.java
REASSIGN = Tool.REASSIGN_PARTITIONS


@pytest.fixture
def in_file(tmp_path: Path) -> InFile:
    return InFile(tmp_path)


class InFile:
    """The files that the tool reads."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def plan(self, topic: str, *replicas: Sequence[int]) -> str:
        moves = [
            {"topic": topic, "partition": index, "replicas": list(each)}
            for index, each in enumerate(replicas)
        ]
        return self._write("plan.json", {"version": 1, "partitions": moves})

    def topics(self, *names: str) -> str:
        listed = [{"topic": name} for name in names]
        return self._write("topics.json", {"version": 1, "topics": listed})

    def _write(self, name: str, document: object) -> str:
        path = self._directory / name
        path.write_text(json.dumps(document))
        return str(path)


def replicas_of(cluster: Cluster, topic: str) -> list[str]:
    described = partitions(works(cluster, Tool.TOPICS, "--describe", "--topic", topic))
    return [replicas for _, _, replicas, _, _ in described]


@pytest.mark.scenario("X-40")
def test_a_plan_is_generated_executed_with_a_throttle_and_verified(
    cluster: Cluster, talk: ClusterTalk, in_file: InFile
) -> None:
    topic = talk.placed_topic([1, 2], [2, 1])
    to_move = ("--topics-to-move-json-file", in_file.topics(topic.name))

    generated = works(cluster, REASSIGN, "--generate", *to_move, "--broker-list", "2,3")

    proposed = json.loads(generated.split("Proposed partition reassignment configuration\n")[1])
    assert {tuple(sorted(each["replicas"])) for each in proposed["partitions"]} == {(2, 3)}

    plan = in_file.plan(topic.name, [3, 2], [2, 3])
    execute = ("--execute", "--reassignment-json-file", plan, "--throttle", "50000000")
    started = works(cluster, REASSIGN, *execute)
    assert "Successfully started partition reassignments" in started
    talk.wait_for_partition(topic.name, 0, leader=3, isr=[2, 3])
    talk.wait_for_partition(topic.name, 1, leader=2, isr=[2, 3])

    verified = works(cluster, REASSIGN, "--verify", "--reassignment-json-file", plan)

    assert verified.count("is completed.") == 2, verified
    assert "Clearing topic-level throttles on topic" in verified
    assert replicas_of(cluster, topic.name) == ["3,2", "2,3"]


@pytest.mark.scenario("X-40")
def test_a_reassignment_that_cannot_end_is_listed_and_cancelled(
    cluster: Cluster, talk: ClusterTalk, in_file: InFile
) -> None:
    """Its new replica is on a broker that is down; the tool itself would not begin such a one."""
    topic = talk.placed_topic([1, 2])
    plan = in_file.plan(topic.name, [1, 3])
    talk.stop_node(3)
    partition = {"partition_index": 0, "replicas": [1, 3]}
    asked = {"topics": [{"name": topic.name, "partitions": [partition]}], "timeout_ms": 10_000}
    talk.quietly("AlterPartitionReassignments", 0, **asked)

    listed = works(cluster, REASSIGN, "--list")
    verified = works(cluster, REASSIGN, "--verify", "--reassignment-json-file", plan)
    described = works(cluster, Tool.TOPICS, "--describe", "--topic", topic.name)
    # Throttles are cleared on every broker, and one is down.
    cancel = ("--cancel", "--preserve-throttles", "--reassignment-json-file", plan)
    cancelled = works(cluster, REASSIGN, *cancel)
    nothing = works(cluster, REASSIGN, "--list")
    talk.start_node(3)

    assert f"{topic.name}-0: replicas: 1,3,2. adding: 3. removing: 2." in listed
    assert "is still in progress." in verified
    assert re.search(r"Adding Replicas: 3\s+Removing Replicas: 2", described)
    assert f"Successfully cancelled partition reassignment for: {topic.name}-0" in cancelled
    assert "No partition reassignments found." in nothing
    assert replicas_of(cluster, topic.name) == ["1,2"]


def test_a_plan_with_an_unknown_broker_is_refused(
    cluster: Cluster, talk: ClusterTalk, in_file: InFile
) -> None:
    topic = talk.placed_topic([1, 2])
    plan = in_file.plan(topic.name, [1, 9])

    result = tool(cluster, REASSIGN, "--execute", "--reassignment-json-file", plan)

    assert result.exit_code != 0
    assert "Unknown broker id 9" in result.output + result.errors
    assert replicas_of(cluster, topic.name) == ["1,2"]


def test_the_command_line_moves_a_topic_on_any_kafka(cluster: Cluster, talk: ClusterTalk) -> None:
    topic = talk.placed_topic([1, 2])
    tidelog = CommandLine(",".join(f"{each.host}:{each.port}" for each in cluster.nodes.values()))

    planned = tidelog.ok("topic", "reassign", topic.name, "--brokers", "2,3", "--dry-run")
    assert planned.output.splitlines()[1].split() == [f"{topic.name}-0", "1,2", "3,2"]
    moved = tidelog.ok("topic", "reassign", topic.name, "--brokers", "2,3", "--json").lines

    assert moved[0]["target"] == [3, 2] and moved[-1] == {"moved": 1, "of": 1}
    talk.wait_for_partition(topic.name, 0, leader=3, isr=[2, 3])
    assert tidelog.ok("topic", "reassign", "--list").output == "nothing is on the move\n"
