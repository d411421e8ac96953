"""kafka-python's admin client: topics, partitions, configs, records, producers."""

from __future__ import annotations

from collections.abc import Iterator

import kafka
import pytest
from kafka import errors
from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic

from tests.compat.clients import DELIVERY_S, LIBRARIES, Message
from tests.process.fixtures import NewTopic as MakeTopic
from tests.process.waiting import wait_until


@pytest.fixture
def admin(bootstrap: str) -> Iterator[kafka.KafkaAdminClient]:
    client = kafka.KafkaAdminClient(bootstrap_servers=bootstrap)
    yield client
    client.close()


def test_a_topics_life(admin: kafka.KafkaAdminClient) -> None:
    """Created, described, grown, refused twice, deleted."""
    name = "kafka-python-life"
    admin.create_topics([NewTopic(name, 2, 1, topic_configs={"retention.ms": "1234567"})])
    with pytest.raises(errors.TopicAlreadyExistsError):
        admin.create_topics([NewTopic(name, 2, 1)])
    wait_until(lambda: name in admin.list_topics(), "the topic")

    admin.create_partitions({name: NewPartitions(5)})

    def partitions() -> int:
        (described,) = admin.describe_topics([name])
        return len(described["partitions"])

    wait_until(lambda: partitions() == 5, "five partitions")
    with pytest.raises(errors.InvalidPartitionsError):
        admin.create_partitions({name: NewPartitions(3)})
    admin.delete_topics([name])
    wait_until(lambda: name not in admin.list_topics(), "the topic's absence")
    with pytest.raises(errors.UnknownTopicOrPartitionError):
        admin.delete_topics([name])


def test_the_cluster_is_described(admin: kafka.KafkaAdminClient, bootstrap: str) -> None:
    cluster = admin.describe_cluster()
    (node,) = cluster["brokers"]
    assert f"{node['host']}:{node['port']}" == bootstrap
    assert len(cluster["cluster_id"]) == 22


def test_topic_partitions_are_described(
    admin: kafka.KafkaAdminClient, new_topic: MakeTopic
) -> None:
    name = new_topic(partitions=3)
    answer = admin.describe_topic_partitions([name])
    topics = answer["topics"] if isinstance(answer, dict) else answer
    (topic,) = topics
    assert [p["partition_index"] for p in topic["partitions"]] == [0, 1, 2]
    assert {p["leader_id"] for p in topic["partitions"]} == {1}


def test_configs_are_described_and_altered(
    admin: kafka.KafkaAdminClient, new_topic: MakeTopic
) -> None:
    name = new_topic()
    change = ConfigResource(ConfigResourceType.TOPIC, name, {"max.message.bytes": "1000"})

    admin.alter_configs([change])

    def bytes_max() -> str | None:
        """None when it is not set: by default this client shows only what is."""
        asked = ConfigResource(ConfigResourceType.TOPIC, name)
        (described,) = admin.describe_configs([asked])["topic"].values()
        value: str | None = described.get("max.message.bytes", {"value": None})["value"]
        return value

    wait_until(lambda: bytes_max() == "1000", "the new config")
    admin.reset_configs(
        [ConfigResource(ConfigResourceType.TOPIC, name, {"max.message.bytes": None})]
    )
    wait_until(lambda: bytes_max() is None, "the default")


def test_records_are_deleted(
    admin: kafka.KafkaAdminClient, bootstrap: str, new_topic: MakeTopic
) -> None:
    name = new_topic()
    LIBRARIES[0].produce(bootstrap, name, "none", [Message(b"%d" % n) for n in range(10)])
    partition = kafka.TopicPartition(name, 0)
    admin.delete_records({partition: 4})
    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap)
    assert consumer.beginning_offsets([partition]) == {partition: 4}
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    found = consumer.poll(timeout_ms=DELIVERY_S * 1000)[partition]
    assert [record.offset for record in found] == [4, 5, 6, 7, 8, 9]
    consumer.close()


def test_producers_are_described(
    admin: kafka.KafkaAdminClient, bootstrap: str, new_topic: MakeTopic
) -> None:
    name = new_topic()
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True)
    for n in range(3):
        producer.send(name, b"%d" % n).get(DELIVERY_S)
    partition = kafka.TopicPartition(name, 0)
    (state,) = admin.describe_producers([partition])[partition].active_producers
    assert (state.producer_epoch, state.last_sequence) == (0, 2)
    assert state.current_transaction_start_offset == -1
    producer.close()
