"""confluent-kafka's admin client: topics, partitions, configs, offsets and records."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from tests.compat.clients import DELIVERY_S, LIBRARIES, Message
from tests.process.fixtures import NewTopic as MakeTopic
from tests.process.waiting import wait_until


@pytest.fixture
def admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap})


def only(futures: dict[Any, Any]) -> Any:
    """The result of the only item."""
    (future,) = futures.values()
    return future.result(DELIVERY_S)


def code_of(futures: dict[Any, Any]) -> int:
    """The error code that the only item fails with."""
    with pytest.raises(KafkaException) as failed:
        only(futures)
    code: int = failed.value.args[0].code()
    return code


def test_a_topics_life(admin: AdminClient, bootstrap: str) -> None:
    """Created, described, grown, refused twice, deleted.

    Whoever asks for a topic by its name knows it from then on, and librdkafka asks every second for
    known topics that are gone, in words that make them anew. So a client of its own looks.
    """
    name = "confluent-life"
    only(admin.create_topics([NewTopic(name, 2, 1, config={"retention.ms": "1234567"})]))
    assert code_of(admin.create_topics([NewTopic(name, 2, 1)])) == KafkaError.TOPIC_ALREADY_EXISTS

    only(admin.create_partitions([NewPartitions(name, 5)]))
    fewer = admin.create_partitions([NewPartitions(name, 3)])
    assert code_of(fewer) == KafkaError.INVALID_PARTITIONS

    def partitions() -> list[int]:
        looking = AdminClient({"bootstrap.servers": bootstrap})
        found = looking.list_topics(name, timeout=DELIVERY_S).topics[name].partitions
        return sorted(found) if all(p.error is None for p in found.values()) else []

    assert wait_until(lambda: len(partitions()) == 5, "five partitions")
    only(admin.delete_topics([name]))
    wait_until(
        lambda: name not in admin.list_topics(timeout=DELIVERY_S).topics, "the topic's absence"
    )
    assert code_of(admin.delete_topics([name])) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_topics_are_described(admin: AdminClient, new_topic: MakeTopic) -> None:
    from confluent_kafka import TopicCollection

    name = new_topic(partitions=3)
    described = only(admin.describe_topics(TopicCollection([name])))
    assert described.name == name
    assert not described.is_internal
    assert [p.id for p in described.partitions] == [0, 1, 2]
    for partition in described.partitions:
        assert partition.leader.id == 1
        assert [node.id for node in partition.replicas] == [1]
        assert [node.id for node in partition.isr] == [1]


def test_the_cluster_is_described(admin: AdminClient, bootstrap: str) -> None:
    cluster = admin.describe_cluster().result(DELIVERY_S)
    (node,) = cluster.nodes
    assert (node.id, f"{node.host}:{node.port}") == (1, bootstrap)
    assert cluster.controller.id == 1
    assert len(cluster.cluster_id) == 22


def test_configs_are_described_and_altered(admin: AdminClient, new_topic: MakeTopic) -> None:
    name = new_topic(segment_bytes="2000000")
    resource = ConfigResource(ResourceType.TOPIC, name)
    before = only(admin.describe_configs([resource]))
    assert (before["segment.bytes"].value, before["segment.bytes"].is_default) == ("2000000", False)
    assert (before["max.message.bytes"].value, before["flush.ms"].is_default) == ("1048588", True)
    change = ConfigResource(
        ResourceType.TOPIC,
        name,
        incremental_configs=[
            ConfigEntry("retention.ms", "1000", incremental_operation=AlterConfigOpType.SET),
            ConfigEntry("segment.bytes", None, incremental_operation=AlterConfigOpType.DELETE),
            ConfigEntry(
                "cleanup.policy", "compact", incremental_operation=AlterConfigOpType.APPEND
            ),
        ],
    )

    only(admin.incremental_alter_configs([change]))

    def settled() -> bool:
        after = only(admin.describe_configs([resource]))
        return bool(
            after["retention.ms"].value == "1000"
            and after["segment.bytes"].value == "1073741824"
            and after["cleanup.policy"].value in ("delete,compact", "compact,delete")
        )

    wait_until(settled, "the new configs")


def test_a_bad_config_is_refused(admin: AdminClient, new_topic: MakeTopic) -> None:
    for key, value in (("retention.ms", "soon"), ("no.such.config", "1"), ("segment.bytes", "3")):
        change = ConfigResource(
            ResourceType.TOPIC,
            new_topic(),
            incremental_configs=[
                ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
            ],
        )
        code = code_of(admin.incremental_alter_configs([change]))
        assert code == KafkaError.INVALID_CONFIG, key


def test_the_brokers_configs_are_described(admin: AdminClient) -> None:
    configs = only(admin.describe_configs([ConfigResource(ResourceType.BROKER, "1")]))
    assert configs["node.id"].value == "1"
    assert configs["message.max.bytes"].value == "1048588"


def test_offsets_are_listed_and_records_deleted(
    admin: AdminClient, bootstrap: str, new_topic: MakeTopic
) -> None:
    name = new_topic()
    LIBRARIES[0].produce(bootstrap, name, "none", [Message(b"%d" % n) for n in range(10)])
    partition = TopicPartition(name, 0)
    assert only(admin.list_offsets({partition: OffsetSpec.latest()})).offset == 10

    deleted = only(admin.delete_records([TopicPartition(name, 0, 4)]))

    assert deleted.low_watermark == 4
    assert only(admin.list_offsets({partition: OffsetSpec.earliest()})).offset == 4
    beyond = admin.delete_records([TopicPartition(name, 0, 11)])
    assert code_of(beyond) == KafkaError.OFFSET_OUT_OF_RANGE


def test_validate_only_makes_nothing(admin: AdminClient) -> None:
    only(admin.create_topics([NewTopic("only-validated", 1, 1)], validate_only=True))
    assert "only-validated" not in admin.list_topics(timeout=DELIVERY_S).topics
