"""What a client believes about a cluster, and that it never believes older news again."""

from __future__ import annotations

from typing import Any

from tests.unit.client.fake_answers import metadata
from tests.unit.client.fake_cluster import FakeCluster
from tidelog.client.cluster_metadata import ClusterMetadata, Leader
from tidelog.client.config import Address
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.messages.api_00_produce import NodeEndpoint
from tidelog.core.wire.messages.api_03_metadata import MetadataRequest, MetadataRequestTopic

P0 = TopicPartition("t", 0)


def metadata_answer(cluster: FakeCluster) -> Any:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    return metadata(cluster, cluster.brokers[1], request)


def fresh() -> tuple[FakeCluster, ClusterMetadata]:
    cluster = FakeCluster()
    cluster.create("t")
    known = ClusterMetadata((Address("first", 1),))
    return cluster, known


def test_before_anybody_has_answered_the_given_addresses_are_asked() -> None:
    _, known = fresh()
    assert known.nodes() == [("first:1", Address("first", 1))]


def test_news_are_new_leader_epochs_and_new_topics_only() -> None:
    cluster, known = fresh()

    assert known.apply(metadata_answer(cluster))
    assert not known.apply(metadata_answer(cluster))
    cluster["t-0"].elect(2)
    assert known.apply(metadata_answer(cluster))
    assert known.leader(P0) == Leader(2, 1)


def test_an_older_leader_epoch_is_not_believed_any_more() -> None:
    cluster, known = fresh()
    old = metadata_answer(cluster)
    cluster["t-0"].elect(2)
    known.apply(metadata_answer(cluster))

    known.apply(old)

    assert known.leader(P0) == Leader(2, 1)


def test_old_news_after_a_rebootstrap_are_not_believed_either() -> None:
    cluster, known = fresh()
    old = metadata_answer(cluster)
    cluster["t-0"].elect(2)
    known.apply(metadata_answer(cluster))
    known.forget_brokers()
    assert known.nodes() == [("first:1", Address("first", 1))]

    known.apply(old)

    assert known.leader(P0) == Leader(None, 1)


def test_a_topic_of_the_same_name_begins_with_its_own_leader_epochs() -> None:
    cluster, known = fresh()
    cluster["t-0"].elect(2)
    known.apply(metadata_answer(cluster))
    cluster.topics["t"] = bytes(15) + b"\x63"
    cluster["t-0"].leader_epoch = 0
    cluster["t-0"].leader = 3

    assert known.apply(metadata_answer(cluster))
    assert known.leader(P0) == Leader(3, 0)


def test_a_hint_is_taken_if_it_is_newer_and_says_where_the_leader_is() -> None:
    cluster, known = fresh()
    known.apply(metadata_answer(cluster))
    endpoint = NodeEndpoint(node_id=9, host="b9", port=9092)

    assert not known.learn_leader(P0, Leader(9, 1), []), "nobody knows broker 9"
    assert not known.learn_leader(P0, Leader(2, 0), []), "not newer"
    assert known.learn_leader(P0, Leader(9, 1), [endpoint])

    assert known.leader(P0) == Leader(9, 1)
    assert known.address(9) == Address("b9", 9092)


def test_a_leader_epoch_that_somebody_mentioned_hides_the_older_leader() -> None:
    cluster, known = fresh()
    known.apply(metadata_answer(cluster))

    assert known.see_leader_epoch(P0, 4)
    assert known.leader(P0) == Leader(None, 4)
    assert not known.see_leader_epoch(P0, 3)


def test_a_partition_without_a_leader_has_none() -> None:
    cluster, known = fresh()
    cluster["t-0"].elect(None)
    known.apply(metadata_answer(cluster))
    assert known.leader(P0) == Leader(None, 1)
