"""Topics on three nodes: every node takes the request, the active controller decides."""

from __future__ import annotations

from typing import Any

from tests.golden.cases.registry import cluster_case
from tests.golden.cluster_talk import NODES, ClusterTalk

EDGES = (2, 7)


def create(talk: ClusterTalk, version: int, *placements: list[int], **options: Any) -> Any:
    """Create a topic with these replicas by way of a node."""
    assignments = [
        {"partition_index": index, "broker_ids": replicas}
        for index, replicas in enumerate(placements)
    ]
    wish = {"num_partitions": -1, "replication_factor": -1, "assignments": assignments}
    wish |= {"name": talk.name(), **options.pop("topic", {})}
    return talk.ask("CreateTopics", version, topics=[wish], timeout_ms=10_000, **options)


@cluster_case("CreateTopics", *EDGES)
def by_way_of_every_node(talk: ClusterTalk, version: int) -> None:
    """Whoever is asked, the controller decides; all nodes know the topic soon."""
    for node in NODES:
        name = talk.name(f"t{node}")
        create(talk, version, [node, 1 + node % 3], topic={"name": name}, on=node)
        talk.wait_for_partition(name, 0, leader=node, isr=[node, 1 + node % 3])
        talk.ask("Metadata", 9, topics=[{"name": name}], on=node, shown=without_controller)


@cluster_case("CreateTopics", *EDGES)
def with_more_replicas_than_nodes(talk: ClusterTalk, version: int) -> None:
    """Four replicas do not fit on three nodes."""
    create(talk, version, topic={"num_partitions": 1, "replication_factor": 4})


@cluster_case("CreateTopics", *EDGES)
def on_an_unknown_node(talk: ClusterTalk, version: int) -> None:
    """A replica on a node that does not exist."""
    create(talk, version, [1, 9])


@cluster_case("CreateTopics", *EDGES)
def with_one_node_twice(talk: ClusterTalk, version: int) -> None:
    """Two replicas of a partition on one node."""
    create(talk, version, [2, 2])


@cluster_case("CreateTopics", *EDGES)
def with_unequal_replicas(talk: ClusterTalk, version: int) -> None:
    """Partitions with different numbers of replicas."""
    create(talk, version, [1, 2], [3])


@cluster_case("CreateTopics", 7)
def placed_by_the_controller(talk: ClusterTalk, version: int) -> None:
    """Three replicas on three nodes are everywhere, in some order."""
    create(talk, version, topic={"num_partitions": 3, "replication_factor": 3})


@cluster_case("CreateTopics", 7)
def that_exists_already(talk: ClusterTalk, version: int) -> None:
    """Every node refuses a name that is taken."""
    topic = talk.placed_topic([1, 2, 3])
    for node in NODES:
        create(talk, version, [1], topic={"name": topic.name}, on=node)


def without_controller(plain: Any) -> Any:
    """Kafka's brokers name one of themselves at random as the controller."""
    return {**plain, "controller_id": "<some-broker>"}


@cluster_case("Metadata", 1, 9, 13)
def of_a_replicated_topic(talk: ClusterTalk, version: int) -> None:
    """All nodes tell the same leaders, replicas and in-sync replicas."""
    topic = talk.placed_topic([1, 2, 3], [2, 3, 1], [3, 1, 2])
    for node in NODES:
        asked = [{"name": topic.name}]
        talk.ask("Metadata", version, topics=asked, on=node, shown=without_controller)


@cluster_case("DescribeTopicPartitions", 0)
def of_a_replicated_topic_page_by_page(talk: ClusterTalk, version: int) -> None:
    """Every node can tell them, and nobody is an eligible leader outside the in-sync replicas."""
    topic = talk.placed_topic([3, 1, 2], [2, 3, 1])
    for node in NODES:
        asked = [{"name": topic.name}]
        talk.ask("DescribeTopicPartitions", version, topics=asked, on=node)


@cluster_case("DescribeCluster", 0, 1, 2)
def of_three_nodes(talk: ClusterTalk, version: int) -> None:
    """All nodes tell the same brokers."""
    for node in NODES:
        talk.ask("DescribeCluster", version, on=node, shown=without_controller)


@cluster_case("CreatePartitions", 0, 3)
def placed_on_nodes(talk: ClusterTalk, version: int) -> None:
    """More partitions with replicas by hand, asked of every node."""
    topic = talk.placed_topic([1, 2])
    for count, node in enumerate(NODES, start=2):
        replicas = [node, 1 + node % 3]
        wish = {"name": topic.name, "count": count, "assignments": [{"broker_ids": replicas}]}
        talk.ask("CreatePartitions", version, topics=[wish], timeout_ms=10_000, on=node)
        talk.wait_for_partition(topic.name, count - 1, leader=node, isr=replicas)
    talk.ask("Metadata", 9, topics=[{"name": topic.name}], shown=without_controller)


@cluster_case("CreatePartitions", 3)
def placed_badly(talk: ClusterTalk, version: int) -> None:
    """Too few replicas, one node twice, and a node that does not exist."""
    topic = talk.placed_topic([1, 2])
    for replicas in ([1], [1, 1], [1, 9]):
        wish = {"name": topic.name, "count": 2, "assignments": [{"broker_ids": replicas}]}
        talk.ask("CreatePartitions", version, topics=[wish], timeout_ms=10_000)


@cluster_case("DeleteTopics", 1, 6)
def by_way_of_another_node(talk: ClusterTalk, version: int) -> None:
    """A node that is not the controller passes the request on."""
    topic = talk.placed_topic([1, 2, 3])
    named = {"topics": [{"name": topic.name}]} if version >= 6 else {"topic_names": [topic.name]}
    standby = talk.standby_controller()
    talk.ask("DeleteTopics", version, timeout_ms=10_000, on=standby, **named)
    talk.ask("DeleteTopics", version, timeout_ms=10_000, on=standby, **named)


@cluster_case("IncrementalAlterConfigs", 0, 1)
def of_a_topic_by_way_of_every_node(talk: ClusterTalk, version: int) -> None:
    """Topic settings may be changed anywhere; bad ones are refused anywhere."""
    topic = talk.placed_topic([1, 2, 3])
    for node in NODES:
        for value in ("60000", "soon"):
            change = {"name": "retention.ms", "config_operation": 0, "value": value}
            resource = {"resource_type": 2, "resource_name": topic.name, "configs": [change]}
            talk.ask("IncrementalAlterConfigs", version, resources=[resource], on=node)


@cluster_case("DescribeConfigs", 4)
def of_another_broker(talk: ClusterTalk, version: int) -> None:
    """A broker tells its own settings only."""
    resource = {"resource_type": 4, "resource_name": "2", "configuration_keys": ["node.id"]}
    talk.ask("DescribeConfigs", version, resources=[resource], on=1)
    talk.ask("DescribeConfigs", version, resources=[resource], on=2)
