"""A node leaves and comes back: elections, in-sync replicas, and requests with old leader epochs.

After the first `yield` node 3 is stopped, after the second it is back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.golden.batches import batch
from tests.golden.cases.asking import producing
from tests.golden.cases.registry import cluster_case
from tests.golden.cluster_cases.leadership import (
    LATEST,
    epoch_end_at,
    fetch_at,
    list_at,
    produce_at,
)
from tests.golden.cluster_cases.topics import without_controller
from tests.golden.cluster_talk import ClusterTalk
from tests.golden.talk import Topic

LEFT = (1, 2)
NOBODY = -1
PREFERRED, UNCLEAN = 0, 1


def elect(talk: ClusterTalk, version: int, topic: Topic, kind: int, *indexes: int) -> Any:
    asked = [{"topic": topic.name, "partitions": list(indexes)}]
    fields: dict[str, Any] = {"topic_partitions": asked, "timeout_ms": 10_000}
    if version >= 1:
        fields["election_type"] = kind
    return talk.ask("ElectLeaders", version, on=2, **fields)


def show(talk: ClusterTalk, topic: Topic, node: int = 1) -> None:
    """The topic's partitions as everybody sees them now."""
    asked = [{"name": topic.name}]
    talk.ask("Metadata", 12, on=node, topics=asked, shown=without_controller)
    talk.ask("DescribeTopicPartitions", 0, on=node, topics=asked)


@cluster_case("ElectLeaders", 0, 2)
def when_the_preferred_replica_comes_back(talk: ClusterTalk, version: int) -> Iterator[None]:
    """Elected in vain while it is away, then with success, then there is nothing to do."""
    topic = talk.placed_topic([3, 1, 2])
    yield
    talk.wait_for_partition(topic.name, 0, leader=1, isr=[1, 2], nodes=LEFT)
    elect(talk, version, topic, PREFERRED, 0)
    yield
    talk.wait_for_partition(topic.name, 0, leader=1, isr=[1, 2, 3])
    elect(talk, version, topic, PREFERRED, 0)
    talk.wait_for_partition(topic.name, 0, leader=3, isr=[1, 2, 3])
    elect(talk, version, topic, PREFERRED, 0)
    show(talk, topic)


@cluster_case("ElectLeaders", 1, 2)
def when_the_only_replica_is_away(talk: ClusterTalk, version: int) -> Iterator[None]:
    """Nobody can lead, clean or not; the replica leads again when it is back."""
    topic = talk.placed_topic([3])
    yield
    talk.wait_for_partition(topic.name, 0, leader=NOBODY, isr=[], nodes=LEFT)
    for kind in (PREFERRED, UNCLEAN):
        elect(talk, version, topic, kind, 0)
    show(talk, topic)
    yield
    talk.wait_for_partition(topic.name, 0, leader=3, isr=[3])
    show(talk, topic)


@cluster_case("Metadata", 0, 1, 9, 13)
def while_a_node_is_away(talk: ClusterTalk, version: int) -> Iterator[None]:
    """Leaders have moved, in-sync replicas are fewer, replicas are offline, one leader is gone."""
    topic = talk.placed_topic([3, 1, 2], [1, 2, 3])
    alone = talk.placed_topic([3], short="alone")
    both = [{"name": topic.name}, {"name": alone.name}]
    asked: dict[str, Any] = {"topics": both, "shown": without_controller}
    yield
    talk.wait_for_partition(topic.name, 0, leader=1, isr=[1, 2], nodes=LEFT)
    talk.wait_for_partition(topic.name, 1, leader=1, isr=[1, 2], nodes=LEFT)
    talk.wait_for_partition(alone.name, 0, leader=NOBODY, isr=[], nodes=LEFT)
    for node in LEFT:
        talk.ask("Metadata", version, on=node, **asked)
    yield
    for partition, leader in ((0, 1), (1, 1)):
        talk.wait_for_partition(topic.name, partition, leader=leader, isr=[1, 2, 3])
    talk.wait_for_partition(alone.name, 0, leader=3, isr=[3])
    talk.ask("Metadata", version, on=3, **asked)


@cluster_case("DescribeTopicPartitions", 0)
def with_an_eligible_leader_outside(talk: ClusterTalk, version: int) -> Iterator[None]:
    """Below min.insync.replicas, the one that left stays eligible until it is back."""
    topic = talk.placed_topic([1, 3], [3, 1], configs={"min.insync.replicas": "2"})
    yield
    for partition in (0, 1):
        talk.wait_for_partition(topic.name, partition, leader=1, isr=[1], nodes=LEFT)
    talk.ask("DescribeTopicPartitions", version, topics=[{"name": topic.name}])
    yield
    for partition in (0, 1):
        talk.wait_for_partition(topic.name, partition, leader=1, isr=[1, 3])
    talk.ask("DescribeTopicPartitions", version, topics=[{"name": topic.name}])


@cluster_case("Produce", 3, 9, 13)
def with_too_few_in_sync_replicas(talk: ClusterTalk, version: int) -> Iterator[None]:
    """All is refused before it is written, one is not; readers see it when the other is back."""
    topic = talk.placed_topic([1, 3], configs={"min.insync.replicas": "2"})
    produce_at(talk, 1, version, topic, acks=-1)
    yield
    talk.wait_for_partition(topic.name, 0, leader=1, isr=[1], nodes=LEFT)
    for acks in (-1, 1):
        produce_at(talk, 1, version, topic, acks=acks)
    fetch_at(talk, 1, 12, topic)
    list_at(talk, 1, 7, topic, LATEST)
    yield
    talk.wait_for_partition(topic.name, 0, leader=1, isr=[1, 3])
    talk.wait_for_readers_at(1, topic, 2)
    produce_at(talk, 1, version, topic, acks=-1)
    fetch_at(talk, 1, 12, topic)


@cluster_case("Produce", 9, 13)
def to_a_partition_without_a_leader(talk: ClusterTalk, version: int) -> Iterator[None]:
    """Nobody can be named."""
    topic = talk.placed_topic([3])
    yield
    talk.wait_for_partition(topic.name, 0, leader=NOBODY, isr=[], nodes=LEFT)
    talk.ask("Produce", version, on=1, **producing(version, topic, batch("a")))
    fetch_at(talk, 1, 12, topic)
    list_at(talk, 1, 7, topic, LATEST)
    yield


@cluster_case("Fetch", 9, 12, 16, 18)
def with_an_old_leader_epoch(talk: ClusterTalk, version: int) -> Iterator[None]:
    """The new leader fences the old epoch; the old leader, back as a follower, does so too."""
    topic = talk.placed_topic([3, 1, 2])
    talk.fill_at(3, topic, "a", "b")
    yield
    talk.wait_for_partition(topic.name, 0, leader=1, isr=[1, 2], nodes=LEFT)
    talk.wait_for_readers_at(1, topic, 2)
    for leader_epoch in (0, 1, 2):
        fetch_at(talk, 1, version, topic, current_leader_epoch=leader_epoch)
    yield
    talk.wait_for_partition(topic.name, 0, leader=1, isr=[1, 2, 3])
    talk.wait_for_readers_at(3, topic, 2)
    for leader_epoch in (0, 1, 2):
        fetch_at(talk, 3, version, topic, current_leader_epoch=leader_epoch)


@cluster_case("Fetch", 12, 18)
def across_leader_epochs(talk: ClusterTalk, version: int) -> Iterator[None]:
    """Last fetched epochs that match, that end earlier, and that never were."""
    topic = talk.placed_topic([3, 1])
    talk.fill_at(3, topic, "a", "b")
    yield
    talk.wait_for_partition(topic.name, 0, leader=1, isr=[1], nodes=LEFT)
    talk.fill_at(1, topic, "c")
    for offset, last_epoch in ((2, 0), (3, 0), (3, 1), (4, 1), (3, 2), (2, 1)):
        fetch_at(talk, 1, version, topic, offset=offset, last_fetched_epoch=last_epoch)
    yield


@cluster_case("OffsetForLeaderEpoch", 2, 4)
def of_epochs_gone_by(talk: ClusterTalk, version: int) -> Iterator[None]:
    """Each epoch ends where the next begins."""
    topic = talk.placed_topic([3, 1])
    talk.fill_at(3, topic, "a", "b")
    yield
    talk.wait_for_partition(topic.name, 0, leader=1, isr=[1], nodes=LEFT)
    talk.fill_at(1, topic, "c")
    for leader_epoch in (0, 1, 2):
        epoch_end_at(talk, 1, version, topic, leader_epoch)
    epoch_end_at(talk, 1, version, topic, 0, current_leader_epoch=0)
    epoch_end_at(talk, 1, version, topic, 0, current_leader_epoch=1)
    yield


@cluster_case("ListOffsets", 4, 11)
def with_an_old_epoch(talk: ClusterTalk, version: int) -> Iterator[None]:
    """The new leader fences the old epoch and tells its own."""
    topic = talk.placed_topic([3, 1])
    talk.fill_at(3, topic, "a")
    yield
    talk.wait_for_partition(topic.name, 0, leader=1, isr=[1], nodes=LEFT)
    for leader_epoch in (0, 1, 2):
        list_at(talk, 1, version, topic, LATEST, current_leader_epoch=leader_epoch)
    yield


@cluster_case("CreateTopics", 5, 7)
def on_a_node_that_is_away(talk: ClusterTalk, version: int) -> Iterator[None]:
    """Allowed by hand if another replica lives, refused if none does; three do not fit on two."""
    yield
    wishes: list[dict[str, Any]] = [
        {"name": talk.name(f"t{number}"), "num_partitions": -1, "replication_factor": -1}
        | {"assignments": [{"partition_index": 0, "broker_ids": replicas}]}
        for number, replicas in enumerate(([1, 3], [3, 1], [3]))
    ]
    wishes.append({"name": talk.name("three"), "num_partitions": 1, "replication_factor": 3})
    for wish in wishes:
        talk.ask("CreateTopics", version, on=2, topics=[wish], timeout_ms=10_000)
    for number in (0, 1):
        talk.wait_for_partition(talk.name(f"t{number}"), 0, leader=1, isr=[1], nodes=LEFT)
        asked = [{"name": talk.name(f"t{number}")}]
        talk.ask("DescribeTopicPartitions", 0, topics=asked)
    yield


@cluster_case("DescribeCluster", 0, 2)
def while_one_is_away(talk: ClusterTalk, version: int) -> Iterator[None]:
    """Only those who are there, unless fenced brokers are asked for."""
    yield
    talk.ask("DescribeCluster", version, on=1, shown=without_controller)
    if version >= 2:
        fields = {"include_fenced_brokers": True}
        talk.ask("DescribeCluster", version, on=1, shown=without_controller, **fields)
    yield


@cluster_case("UnregisterBroker", 0)
def that_is_away(talk: ClusterTalk, version: int) -> None:
    """It is forgotten, out of every in-sync and eligible set, and comes back as a new one."""
    topic = talk.placed_topic([1, 3], configs={"min.insync.replicas": "2"})
    alone = talk.placed_topic([3], short="alone")
    talk.stop_node(3)
    talk.wait_for_partition(topic.name, 0, leader=1, isr=[1], nodes=LEFT)
    talk.wait_for_partition(alone.name, 0, leader=NOBODY, isr=[], nodes=LEFT)
    show(talk, topic)
    for _ in range(2):
        talk.ask("UnregisterBroker", version, on=1, broker_id=3)
    talk.wait_until_forgotten(3, nodes=LEFT)
    fields = {"include_fenced_brokers": True}
    talk.ask("DescribeCluster", 2, on=1, shown=without_controller, **fields)
    show(talk, topic)
    show(talk, alone)
    talk.start_node(3)
    talk.wait_for_partition(topic.name, 0, leader=1, isr=[1, 3])
    talk.wait_for_partition(alone.name, 0, leader=3, isr=[3])
    show(talk, topic)
