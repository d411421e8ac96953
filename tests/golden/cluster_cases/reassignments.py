"""Reassignments among three nodes: done, waiting for a node that is down, and called off."""

from __future__ import annotations

from typing import Any

from tests.golden.cases.reassignments import moves
from tests.golden.cases.registry import cluster_case
from tests.golden.cluster_talk import ClusterTalk
from tests.golden.talk import Topic


def reassign(
    talk: ClusterTalk, version: int, topic: Topic, *targets: list[int] | None, **fields: Any
) -> Any:
    asked = [moves(topic.name, *targets)]
    return talk.ask(
        "AlterPartitionReassignments", version, topics=asked, timeout_ms=10_000, **fields
    )


def ongoing(talk: ClusterTalk, topic: Topic, *indexes: int) -> Any:
    asked = {"name": topic.name, "partition_indexes": list(indexes or (0,))}
    return talk.ask("ListPartitionReassignments", 0, topics=[asked], timeout_ms=10_000)


def described(talk: ClusterTalk, topic: Topic, *replicas: int) -> Any:
    """Once the node that is asked knows of these replicas."""
    topics = [{"name": topic.name}]

    def is_known() -> bool:
        answer = talk.quietly("DescribeTopicPartitions", 0, on=1, topics=topics)
        return bool(answer["topics"][0]["partitions"][0]["replica_nodes"] == list(replicas))

    talk.wait_for(is_known, f"{topic.name} on {replicas}")
    return talk.ask("DescribeTopicPartitions", 0, topics=topics)


@cluster_case("AlterPartitionReassignments", 0, 1)
def to_another_node(talk: ClusterTalk, version: int) -> None:
    """1 is replaced by 3, then everything is as if it had been made so."""
    topic = talk.placed_topic([1, 2])
    reassign(talk, version, topic, [2, 3])
    talk.wait_for_partition(topic.name, 0, leader=2, isr=[2, 3])
    ongoing(talk, topic)
    described(talk, topic, 2, 3)


@cluster_case("AlterPartitionReassignments", 0, 1)
def to_another_order(talk: ClusterTalk, version: int) -> None:
    """Done at once; the leader stays until somebody elects the preferred one."""
    topic = talk.placed_topic([1, 2])
    reassign(talk, version, topic, [2, 1])
    ongoing(talk, topic)
    described(talk, topic, 2, 1)


@cluster_case("AlterPartitionReassignments", 1)
def to_fewer_replicas(talk: ClusterTalk, version: int) -> None:
    """Done at once, without the leader."""
    topic = talk.placed_topic([1, 2, 3])
    reassign(talk, version, topic, [3, 2])
    talk.wait_for_partition(topic.name, 0, leader=3, isr=[2, 3])
    described(talk, topic, 3, 2)


@cluster_case("AlterPartitionReassignments", 1)
def with_the_number_of_replicas_kept(talk: ClusterTalk, version: int) -> None:
    """More and fewer are refused, as many are not."""
    topic = talk.placed_topic([1, 2], [1, 2], [1, 2])
    kept = {"allow_replication_factor_change": False}
    reassign(talk, version, topic, [1, 2, 3], [2], [2, 1], **kept)
    ongoing(talk, topic, 0, 1, 2)


@cluster_case("AlterPartitionReassignments", 0, 1)
def to_a_node_that_is_down_and_back(talk: ClusterTalk, version: int) -> None:
    """It begins, shows what comes and goes, and is cancelled; once more is once too often."""
    topic = talk.placed_topic([1, 2])
    talk.stop_node(3)
    reassign(talk, version, topic, [1, 3])
    ongoing(talk, topic)
    described(talk, topic, 1, 3, 2)
    reassign(talk, version, topic, None)
    ongoing(talk, topic)
    described(talk, topic, 1, 2)
    reassign(talk, version, topic, None)
    talk.start_node(3)


@cluster_case("AlterPartitionReassignments", 1)
def to_another_target_on_the_way(talk: ClusterTalk, version: int) -> None:
    """First to one that is down, then to that one and one more."""
    topic = talk.placed_topic([1])
    talk.stop_node(3)
    reassign(talk, version, topic, [3])
    ongoing(talk, topic)
    reassign(talk, version, topic, [3, 2])
    ongoing(talk, topic)
    talk.start_node(3)


@cluster_case("AlterPartitionReassignments", 1)
def back_by_another_target(talk: ClusterTalk, version: int) -> None:
    """Not cancelled, but sent where it was before."""
    topic = talk.placed_topic([1, 2])
    talk.stop_node(3)
    reassign(talk, version, topic, [1, 3])
    reassign(talk, version, topic, [1, 2])
    ongoing(talk, topic)
    talk.start_node(3)
