"""The image: what each record makes of it, and the changes that it tells."""

from __future__ import annotations

import pytest

from tests.unit.core.metadata.given import DIRECTORY, apply, broker, image, state, topic, topic_id
from tidelog.core.metadata.changes import (
    BrokerChanged,
    BrokerRegistered,
    BrokerUnregistered,
    ConfigChanged,
    EligibleLeadersCleared,
    FeatureLevelChanged,
    PartitionChanged,
    PartitionCreated,
    ProducerIdsReserved,
    TopicCreated,
    TopicDeleted,
)
from tidelog.core.metadata.cluster import ConfigResource, ResourceType
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.metadata.records import (
    FENCED,
    NO_LEADER,
    UNFENCED,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    FeatureLevelRecord,
    NoOpRecord,
    PartitionChangeRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)

ID = topic_id(1)


def test_a_registered_broker_is_known_with_its_address_and_directories() -> None:
    cluster = ClusterImage()

    change = cluster.apply(broker(3, rack="a", fenced=True))

    known = cluster.brokers[3]
    assert change == BrokerRegistered(
        broker_id=3, broker_epoch=3, rack="a", is_fenced=True, endpoints=known.endpoints
    )
    endpoint = known.endpoint("PLAINTEXT")
    assert endpoint is not None
    assert (endpoint.host, endpoint.port) == ("host-3", 9092)
    assert known.endpoint("SSL") is None
    assert known.log_directories == (DIRECTORY,)
    assert not known.is_active
    assert cluster.alive_brokers() == []


def test_a_broker_is_unfenced_fenced_and_leaves() -> None:
    cluster = image(broker(3, fenced=True))

    change = cluster.apply(
        BrokerRegistrationChangeRecord(broker_id=3, broker_epoch=3, fenced=UNFENCED)
    )
    assert change == BrokerChanged(
        broker_id=3, broker_epoch=3, is_fenced=False, in_controlled_shutdown=False
    )
    assert [each.is_active for each in cluster.brokers.values()] == [True]

    cluster.apply(
        BrokerRegistrationChangeRecord(broker_id=3, broker_epoch=3, in_controlled_shutdown=1)
    )
    assert [each.is_active for each in cluster.brokers.values()] == [False]
    assert [alive.broker_id for alive in cluster.alive_brokers()] == [3]

    cluster.apply(BrokerRegistrationChangeRecord(broker_id=3, broker_epoch=3, fenced=FENCED))
    assert cluster.alive_brokers() == []


def test_a_broker_epoch_never_goes_back() -> None:
    cluster = image(broker(3))

    another = broker(3)
    another.incarnation_id = bytes(15) + b"\x01"

    with pytest.raises(AssertionError, match="broker epochs grow"):
        cluster.apply(another)


def test_a_process_may_register_again_as_itself() -> None:
    cluster = image(broker(3))
    again = broker(3, rack="b", fenced=False)
    again.incarnation_id = cluster.brokers[3].incarnation_id

    cluster.apply(again)

    assert cluster.brokers[3].rack == "b"


def test_a_broker_is_forgotten() -> None:
    cluster = image(broker(3))

    change = cluster.apply(UnregisterBrokerRecord(broker_id=3, broker_epoch=3))

    assert change == BrokerUnregistered(broker_id=3, broker_epoch=3)
    assert cluster.brokers == {}


@pytest.mark.parametrize("name", ["t", ""], ids=["one topic", "all topics"])
def test_eligible_and_last_known_leaders_are_forgotten_together(name: str) -> None:
    cluster = image(broker(1), broker(2), *topic("t", 1, state(1, 2), state(1, 2)))
    shrunk = PartitionChangeRecord(
        partition_id=1, topic_id=ID, isr=[1], eligible_leader_replicas=[2], last_known_elr=[2]
    )
    apply(cluster, [shrunk])

    change = cluster.apply(ClearElrRecord(topic_name=name))

    assert isinstance(change, EligibleLeadersCleared)
    (changed,) = change.partitions
    assert (changed.index, changed.partition_epoch, changed.leader_epoch) == (1, 2, 0)
    after = cluster.partition("t", 1)
    assert after is not None
    assert (after.isr, after.eligible_leader_replicas, after.last_known_leaders) == ((1,), (), ())
    untouched = cluster.partition("t", 0)
    assert untouched is not None
    assert untouched.partition_epoch == 0


def test_where_nobody_is_in_sync_the_eligible_leaders_stay() -> None:
    """Otherwise a changed minimum would leave a partition without anybody who may ever lead."""
    cluster = image(broker(1), broker(2), *topic("t", 1, state(1, 2)))
    offline = PartitionChangeRecord(
        partition_id=0, topic_id=ID, leader=-1, isr=[], eligible_leader_replicas=[1, 2]
    )
    apply(cluster, [offline])

    change = cluster.apply(ClearElrRecord(topic_name="t"))

    assert change == EligibleLeadersCleared(partitions=())
    after = cluster.partition("t", 0)
    assert after is not None
    assert after.eligible_leader_replicas == (1, 2)


def test_a_topic_is_found_by_name_and_by_id_until_it_is_deleted() -> None:
    cluster = image(broker(1))
    created, partition = topic("a.b", 1, state(1))

    assert cluster.apply(created) == TopicCreated(topic="a.b", topic_id=ID)
    assert cluster.apply(partition) == PartitionCreated(
        topic="a.b", topic_id=ID, index=0, leader=1, leader_epoch=0, partition_epoch=0,
        replicas=(1,), isr=(1,), eligible_leader_replicas=(), leader_is_recovering=False,
    )  # fmt: skip
    config = ConfigRecord(resource_type=2, resource_name="a.b", name="x", value="1")
    apply(cluster, [config])
    assert cluster.topics["a.b"] is cluster.topics_by_id[ID]
    assert cluster.partition("a.b", 0) == state(1)
    assert cluster.partition("a.b", 1) is None
    assert cluster.partition("a.b", -1) is None
    assert cluster.colliding_names == {"a_b": ["a.b"]}

    change = cluster.apply(RemoveTopicRecord(topic_id=ID))

    assert change == TopicDeleted(topic="a.b", topic_id=ID, partitions_count=1)
    assert not cluster.topics
    assert not cluster.topics_by_id
    assert not cluster.configs
    assert not cluster.colliding_names
    assert cluster.partition("a.b", 0) is None
    cluster.check()


def test_a_deleted_name_may_come_back_under_another_id() -> None:
    cluster = image(broker(1), *topic("t", 1, state(1)))

    apply(cluster, [RemoveTopicRecord(topic_id=ID), *topic("t", 2, state(1), state(1))])

    assert cluster.topics["t"].topic_id == topic_id(2)
    assert len(cluster.topics["t"].partitions) == 2


def test_naming_a_leader_begins_a_leader_epoch_even_if_it_is_the_same() -> None:
    cluster = image(broker(1), *topic("t", 1, state(1)))

    change = cluster.apply(PartitionChangeRecord(partition_id=0, topic_id=ID, leader=1))

    assert change == PartitionChanged(
        topic="t", topic_id=ID, index=0, leader=1, leader_epoch=1, partition_epoch=1,
        replicas=(1,), isr=(1,), eligible_leader_replicas=(), leader_is_recovering=False,
    )  # fmt: skip
    after = cluster.partition("t", 0)
    assert after is not None
    assert (after.leader_epoch, after.partition_epoch) == (1, 1)


def test_a_change_of_the_isr_alone_keeps_the_leader_epoch() -> None:
    cluster = image(broker(1), broker(2), *topic("t", 1, state(1, 2)))

    apply(
        cluster,
        [PartitionChangeRecord(partition_id=0, topic_id=ID, isr=[1], eligible_leader_replicas=[2])],
    )

    after = cluster.partition("t", 0)
    assert after is not None
    assert (after.leader, after.leader_epoch, after.partition_epoch) == (1, 0, 1)
    assert (after.isr, after.eligible_leader_replicas) == ((1,), (2,))


def test_a_partition_can_lose_its_leader() -> None:
    cluster = image(broker(1), *topic("t", 1, state(1)))
    record = PartitionChangeRecord(
        partition_id=0, topic_id=ID, isr=[], leader=NO_LEADER, last_known_elr=[1]
    )

    apply(cluster, [record])

    after = cluster.partition("t", 0)
    assert after is not None
    assert after.leader is None
    assert after.last_known_leaders == (1,)


def test_a_setting_is_set_and_removed() -> None:
    cluster = image(broker(1), *topic("t", 1, state(1)))

    def setting(value: str | None) -> ConfigRecord:
        return ConfigRecord(resource_type=2, resource_name="t", name="n", value=value)

    change = cluster.apply(setting("5"))
    assert change == ConfigChanged(resource_type=2, resource_name="t", name="n", value="5")
    assert cluster.topic_config("t") == {"n": "5"}

    apply(cluster, [setting(None), setting(None)])
    assert cluster.topic_config("t") == {}
    assert cluster.configs == {}


def test_a_brokers_settings_and_the_clusters_are_apart() -> None:
    cluster = image(broker(1))

    for name, value in (("", "all"), ("1", "one")):
        cluster.apply(ConfigRecord(resource_type=4, resource_name=name, name="n", value=value))

    assert cluster.cluster_config() == {"n": "all"}
    assert cluster.broker_config(1) == {"n": "one"}
    assert cluster.broker_config(2) == {}
    assert ConfigResource(ResourceType.BROKER, "1") in cluster.configs


def test_features_are_agreed_on_and_switched_off() -> None:
    cluster = ClusterImage()

    change = cluster.apply(FeatureLevelRecord(name="group.version", feature_level=1))
    assert change == FeatureLevelChanged(name="group.version", level=1)
    assert cluster.features == {"group.version": 1}

    cluster.apply(FeatureLevelRecord(name="group.version", feature_level=0))
    assert cluster.features == {}


def test_producer_ids_only_go_forward() -> None:
    cluster = image(broker(1))

    change = cluster.apply(ProducerIdsRecord(broker_id=1, next_producer_id=1_000))
    assert change == ProducerIdsReserved(broker_id=1, next_producer_id=1_000)
    assert cluster.next_producer_id == 1_000

    with pytest.raises(AssertionError, match="given once"):
        cluster.apply(ProducerIdsRecord(broker_id=1, next_producer_id=1_000))


def test_nothing_changes_nothing() -> None:
    assert ClusterImage().apply(NoOpRecord()) is None


def test_a_name_that_is_there_cannot_be_created_again() -> None:
    cluster = image(broker(1), *topic("t", 1, state(1)))

    with pytest.raises(AssertionError):
        cluster.apply(TopicRecord(name="t", topic_id=topic_id(2)))


@pytest.mark.parametrize(
    "record",
    [
        PartitionChangeRecord(partition_id=0, topic_id=ID, isr=[1, 9]),
        PartitionChangeRecord(partition_id=0, topic_id=ID, isr=[2]),  # the leader 1 is outside
        PartitionChangeRecord(partition_id=0, topic_id=ID, replicas=[1, 1]),
        PartitionChangeRecord(partition_id=0, topic_id=ID, eligible_leader_replicas=[1]),
        PartitionChangeRecord(partition_id=0, topic_id=ID, directories=[bytes(16)]),
        ConfigRecord(resource_type=2, resource_name="nobody", name="n", value="1"),
    ],
    ids=["isr outside", "leader outside", "twice", "both lists", "directories", "orphan"],
)
def test_the_check_condemns_an_impossible_cluster(
    record: PartitionChangeRecord | ConfigRecord,
) -> None:
    cluster = image(broker(1), broker(2), *topic("t", 1, state(1, 2)))
    cluster.check()

    cluster.apply(record)

    with pytest.raises(AssertionError):
        cluster.check()
