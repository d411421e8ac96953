"""Copies and snapshots of an image: whatever its history was, they tell the same facts."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.core.metadata.given import broker, image, state, topic, topic_id
from tidelog.core.metadata.cluster import PartitionState
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.metadata.records import (
    FENCED,
    NO_LEADER,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    MetadataRecord,
    PartitionChangeRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    UnregisterBrokerRecord,
    decode_record,
    encode_record,
)


def any_broker(cluster: ClusterImage, random: Random) -> list[MetadataRecord]:
    known = [b for b in cluster.brokers.values() if random.random() < 0.5]
    if not known:
        record: RegisterBrokerRecord = broker(random.randrange(5), rack=random.choice([None, "a"]))
        record.broker_epoch = 1 + max((b.broker_epoch for b in cluster.brokers.values()), default=0)
        record.incarnation_id = random.randbytes(16)
        return [record]
    chosen = random.choice(known)
    if random.random() < 0.2:
        return [
            UnregisterBrokerRecord(broker_id=chosen.broker_id, broker_epoch=chosen.broker_epoch)
        ]
    return [
        BrokerRegistrationChangeRecord(
            broker_id=chosen.broker_id,
            broker_epoch=chosen.broker_epoch,
            fenced=random.choice([-1, 0, FENCED]),
            in_controlled_shutdown=random.randrange(2),
        )
    ]


def any_state(random: Random) -> PartitionState:
    replicas = random.sample(range(5), 3)
    return state(*replicas, isr=replicas[: random.randrange(4)])


def any_topic(cluster: ClusterImage, random: Random) -> list[MetadataRecord]:
    number = random.randrange(1, 6)
    if topic_id(number) in cluster.topics_by_id:
        return [RemoveTopicRecord(topic_id=topic_id(number))]
    name = f"t{number}" if number > 2 else f"t.{number}"
    return topic(name, number, *(any_state(random) for _ in range(random.randrange(1, 4))))


def any_partition_change(cluster: ClusterImage, random: Random) -> list[MetadataRecord]:
    if not cluster.topics:
        return []
    chosen = random.choice(list(cluster.topics.values()))
    index = random.randrange(len(chosen.partitions))
    replicas = list(chosen.partitions[index].replicas)
    random.shuffle(replicas)
    cut = random.randrange(4)
    return [
        PartitionChangeRecord(
            partition_id=index,
            topic_id=chosen.topic_id,
            isr=replicas[:cut],
            leader=replicas[0] if cut else NO_LEADER,
            eligible_leader_replicas=replicas[cut : cut + random.randrange(3)],
            last_known_elr=random.choice([None, [], replicas[:1]]),
            leader_recovery_state=random.randrange(-1, 2),
        )
    ]


def any_other(cluster: ClusterImage, random: Random) -> list[MetadataRecord]:
    if random.random() < 0.3:
        return [
            ProducerIdsRecord(broker_id=1, next_producer_id=cluster.next_producer_id + 1_000),
            ClearElrRecord(topic_name=random.choice(["", *cluster.topics])),
        ]
    kind, name = random.choice([(4, ""), (4, "1"), *((2, name) for name in cluster.topics)])
    value = random.choice([None, "1", "2"])
    return [ConfigRecord(resource_type=kind, resource_name=name, name="x", value=value)]


def any_image(seed: int) -> ClusterImage:
    random = Random(seed)
    cluster = image()
    if random.random() < 0.5:
        assert cluster.index.leaderless() == [], "from now on it is kept up to date"
    for _ in range(random.randrange(40)):
        step = random.choice([any_broker, any_topic, any_partition_change, any_other])
        for record in step(cluster, random):
            cluster.apply(record)
        cluster.check()
    return cluster


def rebuilt(cluster: ClusterImage) -> ClusterImage:
    made = ClusterImage()
    for record in cluster.records():
        made.apply(decode_record(encode_record(record)))
    return made


@given(st.integers(0, 2**32))
def test_the_records_of_a_snapshot_rebuild_the_image(seed: int) -> None:
    cluster = any_image(seed)

    again = rebuilt(cluster)

    again.check()
    assert again == cluster
    assert again.topics_by_id.keys() == cluster.topics_by_id.keys()


@given(st.integers(0, 2**32), st.integers(0, 2**32))
def test_a_copy_is_equal_and_goes_its_own_way(seed: int, later: int) -> None:
    cluster = any_image(seed)

    copy = cluster.copy()

    copy.check()
    assert copy == cluster
    before = rebuilt(copy)
    random = Random(later)
    for _ in range(5):
        for step in (any_topic, any_partition_change, any_other):
            for record in step(cluster, random):
                cluster.apply(record)
    copy.check()
    assert copy == before


def test_two_images_with_different_facts_are_not_equal() -> None:
    one = image(broker(1), *topic("t", 1, state(1)))

    assert one != image(broker(1), *topic("t", 1, state(1), state(1)))
    assert one != image(broker(1, fenced=True), *topic("t", 1, state(1)))
    assert one == image(broker(1), *topic("t", 1, state(1)))
