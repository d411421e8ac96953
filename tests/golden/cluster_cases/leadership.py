"""Who answers for a partition: the leader, a follower, or a node that has no replica of it."""

from __future__ import annotations

from typing import Any

from tests.golden.batches import batch
from tests.golden.cases.asking import fetching, producing
from tests.golden.cases.registry import cluster_case
from tests.golden.cluster_talk import NODES, ClusterTalk
from tests.golden.talk import Topic

LATEST, EARLIEST = -1, -2


def produce_at(
    talk: ClusterTalk, node: int, version: int, topic: Topic, partition: int = 0, **options: Any
) -> Any:
    fields = producing(version, topic, batch("a"), partition, **options)
    return talk.ask("Produce", version, on=node, **fields)


def fetch_at(
    talk: ClusterTalk, node: int, version: int, topic: Topic, offset: int = 0, **options: Any
) -> Any:
    return talk.ask("Fetch", version, on=node, **fetching(version, topic, offset, **options))


def list_at(
    talk: ClusterTalk, node: int, version: int, topic: Topic, timestamp: int, **options: Any
) -> Any:
    replica_id = options.pop("replica_id", -1)
    asked = {"partition_index": 0, "timestamp": timestamp, **options}
    topics = [{"name": topic.name, "partitions": [asked]}]
    return talk.ask("ListOffsets", version, on=node, replica_id=replica_id, topics=topics)


def epoch_end_at(
    talk: ClusterTalk, node: int, version: int, topic: Topic, leader_epoch: int, **options: Any
) -> Any:
    replica_id = options.pop("replica_id", -1)
    asked = {"partition": 0, "leader_epoch": leader_epoch, **options}
    topics = [{"topic": topic.name, "partitions": [asked]}]
    fields: dict[str, Any] = {"topics": topics}
    if version >= 3:
        fields["replica_id"] = replica_id
    return talk.ask("OffsetForLeaderEpoch", version, on=node, **fields)


@cluster_case("Produce", 3, 9, 10, 12, 13)
def at_every_node(talk: ClusterTalk, version: int) -> None:
    """The leader takes it; followers and strangers name the leader, from version 10 on."""
    topic = talk.placed_topic([2, 3])
    for node in (2, 3, 1):
        produce_at(talk, node, version, topic)


@cluster_case("Produce", 3, 13)
def with_every_kind_of_acks(talk: ClusterTalk, version: int) -> None:
    """One, all and none; then all three records are there."""
    topic = talk.placed_topic([1, 2, 3])
    for acks in (1, -1):
        produce_at(talk, 1, version, topic, acks=acks)
    talk.tell("Produce", version, on=1, **producing(version, topic, batch("a"), acks=0))
    talk.wait_for_readers_at(1, topic, 3)
    list_at(talk, 1, 7, topic, LATEST)


@cluster_case("Produce", 13)
def without_acks_to_a_follower(talk: ClusterTalk, version: int) -> None:
    """There is no answer that could say so: the connection is closed."""
    topic = talk.placed_topic([1, 2])
    talk.tell("Produce", version, on=2, **producing(version, topic, batch("a"), acks=0))


@cluster_case("Produce", 13)
def to_partitions_of_several_leaders(talk: ClusterTalk, version: int) -> None:
    """One request, three partitions: each has its own outcome, leaders are named once."""
    topic = talk.placed_topic([1, 2], [2, 1], [2, 3])
    data = [{"index": index, "records": batch("a")} for index in range(3)]
    topics = [{"topic_id": topic.id, "partition_data": data}]
    talk.ask("Produce", version, on=1, acks=-1, timeout_ms=10_000, topic_data=topics)


@cluster_case("Fetch", 4, 10, 11, 12, 13, 15, 16, 18)
def at_the_leader_a_follower_and_a_stranger(talk: ClusterTalk, version: int) -> None:
    """Followers serve consumers from version 11 on; a stranger names the leader from 12 on."""
    topic = talk.placed_topic([2, 3])
    talk.fill_at(2, topic, "a", "b")
    talk.wait_for_readers_at(3, topic, 2)
    for node in (2, 3, 1):
        fetch_at(talk, node, version, topic)


@cluster_case("Fetch", 9, 12, 18)
def with_leader_epochs(talk: ClusterTalk, version: int) -> None:
    """The right epoch is fine, a future one is unknown, at the leader and elsewhere."""
    topic = talk.placed_topic([1, 2])
    talk.fill_at(1, topic, "a")
    talk.wait_for_readers_at(2, topic, 1)
    for node in NODES:
        for leader_epoch in (0, 5):
            fetch_at(talk, node, version, topic, current_leader_epoch=leader_epoch)


@cluster_case("Fetch", 12, 18)
def from_a_follower_out_of_range(talk: ClusterTalk, version: int) -> None:
    """A follower cannot say whether an offset beyond its end will be there."""
    topic = talk.placed_topic([1, 2])
    talk.fill_at(1, topic, "a")
    talk.wait_for_readers_at(2, topic, 1)
    for node in (1, 2):
        fetch_at(talk, node, version, topic, offset=9)


@cluster_case("Fetch", 14, 18)
def as_a_replica_that_is_none(talk: ClusterTalk, version: int) -> None:
    """A node that has no replica of the partition asks as if it had one."""
    topic = talk.placed_topic([1, 2])
    talk.fill_at(1, topic, "a")
    replica: dict[str, Any] = {"replica_id": 3}
    if version >= 15:
        replica = {"replica_state": {"replica_id": 3, "replica_epoch": talk.broker_epoch(3)}}
    fetch_at(talk, 1, version, topic, request=replica, current_leader_epoch=0)


@cluster_case("Fetch", 14, 18)
def as_a_replica_from_another_follower(talk: ClusterTalk, version: int) -> None:
    """Replicas copy from leaders only."""
    topic = talk.placed_topic([1, 2, 3])
    talk.fill_at(1, topic, "a")
    replica: dict[str, Any] = {"replica_id": 3}
    if version >= 15:
        replica = {"replica_state": {"replica_id": 3, "replica_epoch": talk.broker_epoch(3)}}
    fetch_at(talk, 2, version, topic, request=replica, current_leader_epoch=0)


@cluster_case("Fetch", 18)
def as_a_replica_of_an_old_life(talk: ClusterTalk, version: int) -> None:
    """A follower's broker epoch is not checked when it only reads."""
    topic = talk.placed_topic([1, 2])
    talk.fill_at(1, topic, "a")
    replica = {"replica_state": {"replica_id": 2, "replica_epoch": 0}}
    fetch_at(talk, 1, version, topic, request=replica, current_leader_epoch=0)


@cluster_case("Fetch", 18)
def as_a_replica_that_has_diverged(talk: ClusterTalk, version: int) -> None:
    """A last fetched epoch that the leader never had is told where to go back to."""
    topic = talk.placed_topic([1, 2])
    talk.fill_at(1, topic, "a", "b")
    replica = {"replica_state": {"replica_id": 2, "replica_epoch": talk.broker_epoch(2)}}
    options: dict[str, Any] = {"request": replica, "current_leader_epoch": 0}
    fetch_at(talk, 1, version, topic, offset=2, last_fetched_epoch=3, **options)
    fetch_at(talk, 1, version, topic, offset=7, last_fetched_epoch=0, **options)


@cluster_case("ListOffsets", 1, 4, 7, 11)
def at_other_nodes(talk: ClusterTalk, version: int) -> None:
    """Only the leader tells offsets to consumers."""
    topic = talk.placed_topic([2, 3])
    talk.fill_at(2, topic, "a")
    for node in (2, 3, 1):
        list_at(talk, node, version, topic, LATEST)


@cluster_case("ListOffsets", 4, 11)
def with_leader_epochs_of_all_kinds(talk: ClusterTalk, version: int) -> None:
    """The right epoch, and one that is not there yet."""
    topic = talk.placed_topic([1, 2])
    for node in (1, 2):
        for leader_epoch in (0, 5):
            list_at(talk, node, version, topic, EARLIEST, current_leader_epoch=leader_epoch)


@cluster_case("ListOffsets", 4, 11)
def as_replicas_and_debuggers(talk: ClusterTalk, version: int) -> None:
    """Replicas ask the leader; the debugging replica id may ask any replica."""
    topic = talk.placed_topic([1, 2])
    talk.fill_at(1, topic, "a")
    talk.wait_for_readers_at(2, topic, 1)
    for replica_id in (2, -2):
        for node in NODES:
            list_at(talk, node, version, topic, LATEST, replica_id=replica_id)


@cluster_case("OffsetForLeaderEpoch", 2, 4)
def at_other_nodes_too(talk: ClusterTalk, version: int) -> None:
    """Only the leader knows where epochs end."""
    topic = talk.placed_topic([2, 3])
    talk.fill_at(2, topic, "a")
    for node in (2, 3, 1):
        epoch_end_at(talk, node, version, topic, 0)


@cluster_case("OffsetForLeaderEpoch", 4)
def with_leader_epochs_of_every_kind(talk: ClusterTalk, version: int) -> None:
    """The right epoch, and one that is not there yet."""
    topic = talk.placed_topic([1, 2])
    for node in (1, 2):
        for leader_epoch in (0, 5):
            epoch_end_at(talk, node, version, topic, 0, current_leader_epoch=leader_epoch)


@cluster_case("OffsetForLeaderEpoch", 4)
def as_a_debugger_anywhere(talk: ClusterTalk, version: int) -> None:
    """The debugging replica id at a follower."""
    topic = talk.placed_topic([1, 2])
    epoch_end_at(talk, 2, version, topic, 0, replica_id=-2)


@cluster_case("DeleteRecords", 0, 2)
def at_all_nodes(talk: ClusterTalk, version: int) -> None:
    """Only the leader deletes, and it answers when every replica has."""
    topic = talk.placed_topic([2, 3])
    talk.fill_at(2, topic, "a", "b")
    asked = [{"partition_index": 0, "offset": 1}]
    topics = [{"name": topic.name, "partitions": asked}]
    for node in (3, 1, 2):
        talk.ask("DeleteRecords", version, on=node, topics=topics, timeout_ms=10_000)


@cluster_case("DescribeProducers", 0)
def at_a_follower_and_a_stranger(talk: ClusterTalk, version: int) -> None:
    """Only the leader tells its producers."""
    topic = talk.placed_topic([2, 3])
    topics = [{"name": topic.name, "partition_indexes": [0]}]
    for node in (2, 3, 1):
        talk.ask("DescribeProducers", version, on=node, topics=topics)
